"""Run folders on the hub: what is fetched, what is checked, and every fault in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants

from mrag_eval.config import Retrieval, validated
from mrag_eval.platform import ConfigError, HubPlace, MragError
from mrag_eval.retrieval.saved import _hub_folder
from mrag_eval.retrieval.saved._hub_folder import run_folder_at
from mrag_eval.retrieval.saved._settings import fingerprint_of
from tests.retrieval.shared_folder import DOCS, FOUND, SETTINGS, write_folder
from tests.worlds.hub_server import Hub, serving

REPO = "org/rows"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """Yield an empty hub that this process uses, with an empty cache."""
    _hub_folder._opened.cache_clear()
    with serving() as running:
        running.inside(monkeypatch, tmp_path / "hf", token=None)
        yield running


def read(name: str) -> list[Any]:
    """Return the rows of task ``t``, as a run reads them."""
    folder = run_folder_at(name)
    return folder.rows("t", folder.entry_for("t", fingerprint_of(SETTINGS)), DOCS)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("hub:org/name", HubPlace("org/name")),
        ("hub:org/name@v1.0", HubPlace("org/name", "v1.0")),
        ("hub:org/name@refs/pr/1", HubPlace("org/name", "refs/pr/1")),
        ("runs/demo", None),
        ("hub:org", ConfigError),
        ("hub:org/../name", ConfigError),
        ("hub:org/name@", ConfigError),
        ("hub:org/name@../x", ConfigError),
        ("hub:https://huggingface.co/org/name", ConfigError),
    ],
)
def test_a_dataset_is_named_with_its_revision(text: str, place: Any) -> None:
    if place is ConfigError:
        with pytest.raises(ConfigError, match="hub:ORG/NAME@REVISION"):
            HubPlace.named(text, "key")
        with pytest.raises(ConfigError, match="hub:ORG/NAME@REVISION"):
            validated(Retrieval, {"mode": "all", "run_folder": text}, "test")
    else:
        assert HubPlace.named(text, "key") == place
        assert validated(Retrieval, {"mode": "all", "run_folder": Path(text)}, "test").run_folder == text


def test_only_what_a_task_needs_is_fetched_and_once(hub: Hub, tmp_path: Path) -> None:
    write_folder(tmp_path / "run")
    write_folder(tmp_path / "run", "other", settings={**SETTINGS, "rows": {"n": 2, "sha256": "y"}})
    commit = hub.add(REPO, tmp_path / "run", tag="v1")
    assert read(f"hub:{REPO}@{commit}") == FOUND
    got = [path.rpartition("/")[2] for method, path in hub.requests if method == "GET" and "/resolve/" in path]
    assert got == ["manifest.json", "t.jsonl"]
    asked = len(hub.requests)
    _hub_folder._opened.cache_clear()
    assert read(f"hub:{REPO}@{commit}") == FOUND
    assert len(hub.requests) == asked


def test_a_tag_or_no_revision_becomes_a_commit(hub: Hub, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_folder(tmp_path / "run")
    commit = hub.add(REPO, tmp_path / "run", tag="v1")
    assert run_folder_at(f"hub:{REPO}@v1").origin() == {"repository": REPO, "commit": commit, "revision": "v1"}
    assert "is read at commit" not in caplog.text
    folder = run_folder_at(f"hub:{REPO}")
    assert folder.origin() == {"repository": REPO, "commit": commit}
    assert f"to read the same rows later, name it: hub:{REPO}@{commit}" in caplog.text
    # what is pushed meanwhile does not reach the other tasks of this run
    (tmp_path / "run" / "t.jsonl").write_text("", "utf-8")
    hub.add(REPO, tmp_path / "run")
    assert run_folder_at(f"hub:{REPO}") is folder


@pytest.mark.parametrize("revision", ["", "@v1"])
def test_without_a_connection_the_cache_does(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    write_folder(tmp_path / "run")
    hub.add(REPO, tmp_path / "run", tag="v1")
    read(f"hub:{REPO}{revision}")
    _hub_folder._opened.cache_clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert read(f"hub:{REPO}{revision}") == FOUND


def entry(path: Path, **changes: Any) -> None:
    """Change the manifest's entry of task ``t``."""
    content = json.loads((path / "manifest.json").read_text("utf-8"))
    content["tasks"]["t"].update(changes)
    (path / "manifest.json").write_text(json.dumps(content), "utf-8")


def row(path: Path, **changes: Any) -> None:
    """Change the first row, and the manifest with it, as somebody would who means harm."""
    import hashlib

    first, *others = (path / "t.jsonl").read_text("utf-8").splitlines()
    text = "\n".join([json.dumps(json.loads(first) | changes), *others, ""])
    (path / "t.jsonl").write_text(text, "utf-8")
    entry(path, sha256=hashlib.sha256(text.encode()).hexdigest())


def _hit(**changes: Any) -> dict[str, Any]:
    return {"id": "p", "lang": "en", "text": "x", "score": 1.0, "rank": 1, **changes}


FAULTY: dict[str, tuple[Callable[[Path], object], str]] = {
    "no manifest": (lambda run: (run / "manifest.json").unlink(), "has no file manifest.json"),
    "another manifest": (lambda run: (run / "manifest.json").write_text("{}"), "is no manifest of retrieved rows"),
    "a newer format": (
        lambda run: (run / "manifest.json").write_text('{"format": "rows/9", "tasks": {}}'), "its format is 'rows/9'"
    ),
    "another task": (lambda run: entry(run, fingerprint="f") or _rename(run), "holds no rows of task t (it has: u)"),
    "changed after its manifest": (
        lambda run: (run / "t.jsonl").write_text((run / "t.jsonl").read_text().replace("1890", "1891")),
        "t.jsonl is damaged: its SHA-256 is not the manifest's",
    ),
    "a file that is not there": (lambda run: (run / "t.jsonl").unlink(), "has no file t.jsonl"),
    "a file elsewhere": (lambda run: entry(run, file="../../secret"), "'../../secret' is outside of the folder"),
    "an absolute file": (lambda run: entry(run, file="/etc/passwd"), "'/etc/passwd' is outside of the folder"),
    "the folder itself": (lambda run: entry(run, file="."), "'.' is the folder itself"),
    "a name that no hub takes": (lambda run: entry(run, file="t.jsonl/"), "t.jsonl"),
    "not finished": (lambda run: entry(run, sha256=None), "were pushed before they were complete"),
    "another fingerprint": (lambda run: entry(run, settings={}), "fingerprint of task t is not that of its settings"),
    "settings: a list": (lambda run: entry(run, settings=[]), "tasks: t.settings: input should be a valid dictionary"),
    "rows of others": (lambda run: row(run, row="0" * 16), "row 'q1' of task t has changed"),
    "another id": (lambda run: row(run, id="q9"), "lacks 1 of the 2 rows of task t that are to run: q1"),
    "a text that is none": (lambda run: row(run, passages=[_hit(text=5)]), "row 'q1' cannot be read"),
    "a score that is none": (lambda run: row(run, passages=[_hit(score="high")]), "row 'q1' cannot be read"),
    "a ranking that is none": (lambda run: row(run, ranking=[["p", "d", "en", []]]), "row 'q1' cannot be read"),
    "a trace that is none": (lambda run: row(run, trace=[1]), "row 'q1' cannot be read"),
    "queries that are none": (lambda run: row(run, queries=[{}]), "row 'q1' cannot be read"),
}  # fmt: skip


def _rename(run: Path) -> None:
    content = json.loads((run / "manifest.json").read_text("utf-8"))
    content["tasks"]["u"] = content["tasks"].pop("t")
    (run / "manifest.json").write_text(json.dumps(content), "utf-8")


@pytest.mark.parametrize("what", FAULTY)
def test_what_was_pushed_is_checked_as_a_strangers(hub: Hub, tmp_path: Path, what: str) -> None:
    change, message = FAULTY[what]
    write_folder(tmp_path / "run")
    change(tmp_path / "run")
    commit = hub.add(REPO, tmp_path / "run")
    with pytest.raises(MragError) as caught:
        read(f"hub:{REPO}@{commit}")
    assert message in caught.value.message
    assert f"hub:{REPO}@{commit}" in caught.value.message
    assert "\n" not in caught.value.message
    assert caught.value.next_step
    assert "--overwrite" not in caught.value.next_step or "has changed" in message


def test_what_the_hub_does_not_give_is_one_line(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "run")
    hub.add(REPO, tmp_path / "run")
    hub.add("org/private", tmp_path / "run", private=True)

    def refused(name: str) -> str:
        with pytest.raises(MragError) as caught:
            read(name)
        assert "\n" not in caught.value.message
        assert caught.value.next_step
        return caught.value.message

    assert "has no such dataset, or it needs a token (none is set)" in refused("hub:org/none")
    assert "has no such dataset, or it needs a token (none is set)" in refused("hub:org/private")
    assert refused(f"hub:{REPO}@v9").endswith("the dataset has no revision 'v9'")
    assert "has no revision" in refused(f"hub:{REPO}@{'0' * 40}")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong_token_0123456789")
    assert "does not accept the token" in refused("hub:org/private")
    monkeypatch.delenv("HF_TOKEN")
    hub.refuse = lambda method, path: 403
    assert "does not let this token do that" in refused(f"hub:{REPO}")
    hub.refuse = lambda method, path: None
    monkeypatch.setattr(_hub_folder, "LARGEST", 10)
    assert "files of more than 0.0 GB are not read" in refused(f"hub:{REPO}")
    assert not [path for method, path in hub.requests if method == "GET" and path.endswith("t.jsonl")]
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert refused("hub:org/none") == "hub:org/none: HF_HUB_OFFLINE is set, and it is not in the cache"
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}")
    assert "127.0.0.1:9 cannot be reached" in refused("hub:org/none")
