"""``python -m benchmarks``: the scripts it runs, the rows it gathers, its table and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks._table import FOLDER, known_benchmarks, run_benchmarks, shown_benchmarks
from mrag_eval.platform import ConfigError

SCRIPT = """
import json, sys
sys.path.insert(0, {source!r})
from _rows import growth, row
print("chatter")
quick = "--quick" in sys.argv
path = sys.argv[sys.argv.index("--json") + 1]
{body}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "benchmarks"
    made.mkdir()
    return made


def script(folder: Path, name: str, body: str) -> None:
    source = str(FOLDER)
    (folder / f"{name}.py").write_text(SCRIPT.format(source=source, body=body), encoding="utf-8")


def rows(*calls: str) -> str:
    return f"json.dump([{', '.join(calls)}], open(path, 'w'))"


KEPT = 'row("search", "bare", [1.0, 1.02, 1.04], at_most=1.05, judged=not quick)'
MISSED = 'row("index", "exact", [8.0, 9.0], at_least=10, judged=not quick)'
GROWTH = 'growth("build", [{"n": n, "seconds": n / 100, "peak_mb": 5} for n in (10, 100)], below=1.2, judged=not quick)'


def test_every_script_that_writes_rows_is_listed(folder: Path) -> None:
    script(folder, "one", rows(KEPT))
    (folder / "_private.py").write_text("from _rows import row", encoding="utf-8")
    (folder / "plain.py").write_text("print()", encoding="utf-8")
    assert list(known_benchmarks(folder)) == ["one"]
    real = known_benchmarks(FOLDER)
    assert {"milvus", "bm25", "ranking", "rerank", "char_ngram"} <= set(real)
    assert "_rows" not in real


def test_rows_are_gathered_and_shown(folder: Path) -> None:
    script(folder, "one", rows(KEPT, GROWTH))
    script(folder, "two", rows(KEPT.replace('"search"', '"again"')))
    said: list[str] = []
    measured = run_benchmarks(folder=folder, say=said.append)
    assert measured.ok
    assert [row["work"] for row in measured.rows] == ["search", "again"]
    assert [row["benchmark"] for row in measured.rows] == ["one", "two"]
    assert measured.growth[0]["exponent"] == pytest.approx(1.0)
    assert said[0] == "one ..."
    shown = shown_benchmarks(measured).splitlines()
    assert [cell.strip() for cell in shown[0].strip("|").split("|")] == [
        "work", "measured against", "asked", "found", "machine's noise", "ok",
    ]  # fmt: skip
    assert [cell.strip() for cell in shown[2].strip("|").split("|")] == [
        "search", "bare", "≤ 1.05", "1.02 ×", "1 to 1.04", "yes",
    ]  # fmt: skip
    assert [cell.strip() for cell in shown[7].strip("|").split("|")] == [
        "build (seconds)", "10", "0.1", "5", "1.00", "< 1.2", "yes",
    ]  # fmt: skip
    assert json.loads(json.dumps(measured.as_dict()))["ok"] is True


def test_a_missed_bound_is_no_and_small_sizes_are_not_judged(folder: Path) -> None:
    script(folder, "one", rows(MISSED))
    measured = run_benchmarks(folder=folder)
    assert not measured.ok
    assert "| NO |" in shown_benchmarks(measured)
    quick = run_benchmarks(folder=folder, quick=True)
    assert quick.ok
    assert "(small)" in shown_benchmarks(quick)
    assert "were not applied" in shown_benchmarks(quick)


def test_the_largest_sizes_are_asked_of_scripts_that_have_them(folder: Path) -> None:
    said = rows("row(' '.join(sys.argv[3:]) or 'as ever', 'bare', [1.0])")
    script(folder, "large", f'# takes "--full"\n{said}')
    script(folder, "small", said)
    assert [row["work"] for row in run_benchmarks(folder=folder, full=True).rows] == ["--full", "as ever"]
    assert [row["work"] for row in run_benchmarks(folder=folder).rows] == ["as ever", "as ever"]
    assert '"--full"' in known_benchmarks(FOLDER)["index_growth"].read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="--quick asks for small numbers and --full for the largest"):
        run_benchmarks(folder=folder, quick=True, full=True)


def test_a_script_that_fails_is_named_and_the_next_one_runs(folder: Path) -> None:
    script(folder, "one", "raise SystemExit('no memory left')")
    script(folder, "silent", "pass")
    script(folder, "two", rows(KEPT))
    measured = run_benchmarks(folder=folder)
    assert not measured.ok
    assert set(measured.failed) == {"one", "silent"}
    assert "no memory left" in shown_benchmarks(measured)
    assert len(measured.rows) == 1


def test_a_script_that_lacks_something_is_left_out_with_what_it_said(folder: Path) -> None:
    script(folder, "one", f"{rows()}\nprint('no other program is named: --other PROGRAM')")
    script(folder, "two", rows(KEPT))
    said: list[str] = []
    measured = run_benchmarks(folder=folder, say=said.append)
    assert measured.ok
    assert set(measured.left_out) == {"one"}
    assert "one: left out after" in said[1]
    assert "one was left out:\n    chatter\n    no other program is named: --other PROGRAM" in shown_benchmarks(
        measured
    )


def test_rows_of_a_script_that_ends_with_an_error_are_kept(folder: Path) -> None:
    script(folder, "one", rows(MISSED) + "\nraise SystemExit(1)")
    measured = run_benchmarks(folder=folder)
    assert len(measured.rows) == 1
    assert set(measured.failed) == {"one"}


def test_only_those_named_run(folder: Path) -> None:
    script(folder, "one", rows(KEPT))
    script(folder, "two", rows(KEPT))
    assert list(run_benchmarks(["two"], folder=folder).seconds) == ["two"]
    with pytest.raises(ConfigError, match="no benchmark is named 'tow'; did you mean 'two'"):
        run_benchmarks(["tow"], folder=folder)


@pytest.mark.parametrize(("body", "code"), [(KEPT, 0), (MISSED, 1)])
def test_the_command_and_its_exit_codes(
    body: str,
    code: int,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script(folder, "one", rows(body))
    monkeypatch.setattr(known_benchmarks, "__defaults__", (folder,))
    monkeypatch.setitem(run_benchmarks.__kwdefaults__, "folder", folder)

    assert main(["--list"]) == 0
    assert capsys.readouterr().out == "one\n"
    assert main(["-o", str(tmp_path / "all.json")]) == code
    assert "| work" in capsys.readouterr().out
    written = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert (written["ok"], len(written["rows"])) == (code == 0, 1)
    assert main(["--quick"]) == 0
    assert main(["tow"]) == 2
    assert "no benchmark is named 'tow'" in capsys.readouterr().err
