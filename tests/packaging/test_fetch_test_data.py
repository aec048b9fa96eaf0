"""scripts/fetch_test_data.py with a mirror on disk and a small HTTP server: writing, checking and refusing."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch_test_data.py"
Capture = pytest.CaptureFixture[str]
PLAIN, ZIPPED, SPACED = b"id,text\n1,a\n", b'{"data": []}', b"[]"


@pytest.fixture
def fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the script as a module, with a list of three hand-written files."""
    spec = importlib.util.spec_from_file_location("fetch_test_data", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fetch_test_data", module)
    spec.loader.exec_module(module)
    manifest = {
        "sources": [
            {
                "folder": "one",
                "repository": "owner/one",
                "commit": "c0ffee",
                "files": [
                    {"path": "a.csv", "upstream": "data/a.csv", "sha256": hashlib.sha256(PLAIN).hexdigest()},
                    {"path": "b.json.gz", "upstream": "b.json", "sha256": hashlib.sha256(ZIPPED).hexdigest()},
                ],
            },
            {
                "folder": "two",
                "repository": "owner/two",
                "commit": "beef",
                "files": [{"path": "Korean Law/c.json", "upstream": "Dataset/Korean Law/c.json", "sha256": None}],
            },
        ],
        "not_public": [{"path": "one/made.csv", "what": "made here"}],
    }
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest), encoding="utf-8")
    monkeypatch.setattr(module.read_manifest, "__defaults__", (path,))
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return module


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    root = tmp_path / "mirror"
    for name, raw in (
        ("owner/one/c0ffee/data/a.csv", PLAIN),
        ("owner/one/c0ffee/b.json", ZIPPED),
        ("owner/two/beef/Dataset/Korean Law/c.json", SPACED),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    return root


@pytest.fixture
def server(mirror: Path) -> Iterator[str]:
    """The mirror behind HTTP; paths under /flaky/ answer 503 once before they succeed."""
    seen: set[str] = set()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object, **kwargs: object) -> None:
            super().__init__(*args, directory=str(mirror), **kwargs)  # type: ignore[arg-type]

        def do_GET(self) -> None:
            if self.path.startswith("/flaky/"):
                if self.path not in seen:
                    seen.add(self.path)
                    self.send_error(503)
                    return
                self.path = self.path.removeprefix("/flaky")
            super().do_GET()

        def log_message(self, *_: object) -> None:
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.mark.parametrize("prefix", ["", "/flaky"])
def test_all_files_arrive(prefix: str, fetch: ModuleType, server: str, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out"
    assert fetch.main([str(target), "--base-url", server + prefix]) == 0
    assert (target / "one/a.csv").read_bytes() == PLAIN
    assert gzip.decompress((target / "one/b.json.gz").read_bytes()) == ZIPPED
    assert (target / "two/Korean Law/c.json").read_bytes() == SPACED
    assert not list(target.rglob("*.part"))
    printed = capsys.readouterr().out
    assert "3 of 3 files are there (1 pinned by commit alone" in printed
    assert "one/made.csv: made here" in printed
    assert f"export MRAG_TEST_DATA={target}" in printed
    assert fetch.main([str(target), "--check"]) == 0


def test_existing_files_are_not_fetched_again(fetch: ModuleType, mirror: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out"
    base = ["--base-url", mirror.as_uri()]
    assert fetch.main([str(target), *base]) == 0
    (target / "one/a.csv").unlink()
    capsys.readouterr()
    assert fetch.main([str(target), *base]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if line] == ["[1/3] one/a.csv"]


def test_check_names_missing_and_wrong_files(fetch: ModuleType, mirror: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out"
    assert fetch.main([str(target), "--check"]) == 1
    assert capsys.readouterr().out.count(": missing") == 3
    assert fetch.main([str(target), "--base-url", mirror.as_uri()]) == 0
    (target / "one/a.csv").write_bytes(b"changed")
    (target / "one/b.json.gz").write_bytes(b"no gzip")
    (target / "two/Korean Law/c.json").write_bytes(b"")
    capsys.readouterr()
    assert fetch.main([str(target), "--check"]) == 1
    printed = capsys.readouterr().out
    assert "one/a.csv: differs from the published file" in printed
    assert "one/b.json.gz: not readable as gzip" in printed
    assert "two/Korean Law/c.json: empty" in printed
    assert "0 of 3 files" in printed


def test_another_content_is_refused(fetch: ModuleType, mirror: Path, tmp_path: Path, capsys: Capture) -> None:
    (mirror / "owner/one/c0ffee/data/a.csv").write_bytes(b"something else")
    target = tmp_path / "out"
    assert fetch.main([str(target), "--base-url", mirror.as_uri()]) == 1
    assert "has SHA-256" in capsys.readouterr().out
    assert not (target / "one/a.csv").exists()
    assert (target / "one/b.json.gz").is_file()


def test_a_missing_file_is_named_and_the_others_fetched(
    fetch: ModuleType, server: str, mirror: Path, tmp_path: Path, capsys: Capture
) -> None:
    (mirror / "owner/one/c0ffee/b.json").unlink()
    target = tmp_path / "out"
    assert fetch.main([str(target), "--base-url", server]) == 1
    assert f"{server}/owner/one/c0ffee/b.json: HTTP 404" in capsys.readouterr().out
    assert (target / "two/Korean Law/c.json").is_file()


def test_without_a_network_one_try_is_enough(fetch: ModuleType, tmp_path: Path, capsys: Capture) -> None:
    # nothing listens on port 9 of this machine
    assert fetch.main([str(tmp_path / "out"), "--base-url", "http://127.0.0.1:9"]) == 1
    captured = capsys.readouterr()
    assert "no network" in captured.out
    assert captured.out.count("not tried") == 2
    assert captured.err.count("[") == 1


def test_one_folder_alone(fetch: ModuleType, mirror: Path, tmp_path: Path, capsys: Capture) -> None:
    target = tmp_path / "out"
    assert fetch.main([str(target), "--only", "two", "--base-url", mirror.as_uri()]) == 0
    assert not (target / "one").exists()
    with pytest.raises(SystemExit):
        fetch.main([str(target), "--only", "three"])
    assert "there is one, two" in capsys.readouterr().err


def test_it_needs_the_standard_library_alone() -> None:
    import ast

    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    named |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names


# --- the real list


def _manifest() -> dict[str, object]:
    value: dict[str, object] = json.loads(SCRIPT.with_name("test_data.json").read_text(encoding="utf-8"))
    return value


def test_every_source_is_pinned() -> None:
    sources = _manifest()["sources"]
    assert isinstance(sources, list)
    assert {source["folder"] for source in sources} == {
        "blend",
        "borderlines",
        "click",
        "cross_lingual_cost",
        "mkqa_sample",
        "nomiracl",
        "xquad",
    }
    for source in sources:
        assert len(source["commit"]) == 40
        int(source["commit"], 16)
        paths = [entry["path"] for entry in source["files"]]
        assert len(set(paths)) == len(paths)
        for entry in source["files"]:
            assert entry["sha256"] is None or len(entry["sha256"]) == 64


def test_the_local_files_are_the_published_ones(test_data: Path) -> None:
    out = SCRIPT.parent
    spec = importlib.util.spec_from_file_location("fetch_real", out / "fetch_test_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["fetch_real"] = module
    try:
        spec.loader.exec_module(module)
        files, _ = module.read_manifest()
        assert {file.path: module.fault(file, test_data) for file in files} == {file.path: None for file in files}
    finally:
        del sys.modules["fetch_real"]
