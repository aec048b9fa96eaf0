"""Wrong inputs: each gives the documented exit code, one line that names the fault, and a next step below it.

The cases are in :mod:`tests.attacks.bad_inputs`, by the place where the input enters. They run in this process; a part
of them is repeated in processes of their own. The first stage runs a part of every group.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from mrag_eval.cli import app, main
from tests.attacks.bad_inputs.case import Case, complaints
from tests.attacks.bad_inputs.commands import COMMANDS
from tests.attacks.bad_inputs.found import ACCEPTED, WITHOUT_A_STEP
from tests.attacks.bad_inputs.place import contents, own_tasks_in, planted, write_place
from tests.attacks.bad_inputs.settings import TASK_FILES
from tests.programs import Programs

GROUPS = (
    "flags",
    "commands",
    "task_files",
    "settings",
    "rows",
    "folders",
    "plans",
    "samples",
    "elsewhere",
    "environment",
)
CASES = [(group, case) for group in GROUPS for case in import_module(f"tests.attacks.bad_inputs.{group}").CASES]
# One of so many of each group is in the first stage.
_STRIDE = 18
# Cases that start fast enough as a process: the harness is not imported.
QUICK = [case for _, case in CASES if case.arguments[0] not in ("run", "retrieve", "build") and not case.shown]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of :mod:`tests.attacks.bad_inputs.place`, for all cases."""
    home = tmp_path_factory.mktemp("bad-inputs")
    (home / "place").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MRAG_CACHE", str(home / "cache"))
        return write_place(home / "place")


@pytest.fixture
def place(written: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, as the working directory, with a config file and a cache of its own."""
    monkeypatch.chdir(written)
    monkeypatch.setenv("HOME", str(written.parent / "home"))
    monkeypatch.setenv("MRAG_CACHE", str(written.parent / "cache"))
    monkeypatch.setenv("MRAG_CONFIG", "models.yaml")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return written


@pytest.fixture(scope="session")
def command() -> object:
    """The parsed command line, which typer otherwise puts together for every call."""
    return typer.main.get_command(app)


def _accepted(*_: object) -> None:
    raise AssertionError("a run with this input was begun")


def _lost_or_made(case: Case, place: Path, before: dict[str, tuple[int, int]]) -> list[str]:
    """Return what the command changed, and remove what it made."""
    after = contents(place)
    made = sorted(after.keys() - before.keys())
    found = [f"{path} was changed or lost" for path in before if before[path] != after.get(path)]
    found += [f"{path} was made" for path in made if not (case.keeps and Path(path).is_relative_to(place / "new"))]
    for path in map(Path, made):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    for path in place.glob("*.building"):
        shutil.rmtree(path)
    return found


def _parameters() -> list[Any]:
    numbers, found = Counter[str](), []
    for group, case in CASES:
        marks = () if numbers[group] % _STRIDE == 0 else pytest.mark.slow
        found.append(pytest.param(group, case, id=f"{group}: {case}"[:100], marks=marks))
        numbers[group] += 1
    return found


@pytest.mark.parametrize(("group", "case"), _parameters())
def test_a_wrong_input_is_answered_by_a_line_and_its_next_step(
    group: str,
    case: Case,
    place: Path,
    command: object,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in case.env.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    own_tasks_in(place, monkeypatch)
    monkeypatch.setattr("mrag_eval.cli._app.app", command)
    if case.arguments[0] == "run":
        monkeypatch.setattr("mrag_eval.harness.evaluate", _accepted)
    with planted(case, place):
        before = contents(place)
        with pytest.raises(SystemExit) as done:
            main(case.arguments)
        found = _lost_or_made(case, place, before)
    said = capsys.readouterr()
    found += complaints(case, int(done.value.code or 0), said.out, said.err)
    assert not found, f"{found}\n{said.err}"


@pytest.mark.slow
@pytest.mark.parametrize("case", QUICK[:: len(QUICK) // 20], ids=lambda case: str(case)[:100])
def test_a_process_of_its_own_answers_in_the_same_way(case: Case, place: Path, programs: Programs) -> None:
    env = {**os.environ, **{name: value for name, value in case.env.items() if value is not None}}
    env = {name: value for name, value in env.items() if case.env.get(name, "") is not None}
    with planted(case, place):
        before = contents(place)
        done = subprocess.run(
            [programs / "mrag-eval", *case.arguments], capture_output=True, text=True, check=False, env=env
        )
        found = _lost_or_made(case, place, before)
    found += complaints(case, done.returncode, done.stdout, done.stderr)
    assert not found, f"{found}\n{done.stderr}"


@pytest.mark.slow
def test_every_setting_of_a_task_refuses_a_wrong_value(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, (content, _, _) in TASK_FILES.items():
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(SystemExit) as done:
        main(["tasks", "--check", "--folder", str(tmp_path)])
    assert done.value.code == 1
    said = capsys.readouterr()
    assert not said.err
    faults = {line.partition(": ")[0]: line.partition(": ")[2] for line in said.out.splitlines()}
    unlike = {
        f"{title}: {faults.get(name, 'accepted')}"
        for name, (_, key, title) in TASK_FILES.items()
        if key not in faults.get(name, "") or "Error" in faults[name]
    }
    assert not unlike


def test_every_command_is_in_the_table_with_more_than_its_flags() -> None:
    used = {tuple(case.arguments[:n]) for group, case in CASES if group != "commands" for n in (1, 2)}
    # these two need the network, or nothing at all
    assert COMMANDS.keys() - used == {("corpus", "bordirlines"), ("corpus", "list")} - used


def test_the_table_has_at_least_400_cases() -> None:
    groups = Counter(group for group, _ in CASES) + Counter({"settings of a task": len(TASK_FILES)})
    print(f"{groups.total():,} wrong inputs:", ", ".join(f"{group} {count}" for group, count in groups.items()))
    assert len({(group, str(case)) for group, case in CASES}) == len(CASES) >= 400


@pytest.mark.parametrize(("inputs", "count"), [(WITHOUT_A_STEP, 35), (ACCEPTED, 20)])
def test_every_input_that_an_attack_found_has_a_case_or_a_test(inputs: Mapping[str, str], count: int) -> None:
    titles = [str(case) for _, case in CASES]
    missing = []
    for what, title in inputs.items():
        module, _, test = title.partition(".")
        if module.startswith("test_"):
            missing += [] if hasattr(import_module(f"tests.attacks.{module}"), test) else [what]
        elif not any(one.startswith(title) for one in titles):
            missing.append(what)
    assert not missing
    assert len(inputs) == count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "encoding"),
    [
        ("tasks", "ascii"),
        ("report full", "ascii"),
        ("compare a b", "ascii"),
        ("doctor", "ascii"),
        ("report full --format json", "latin-1"),
    ],
)
def test_a_terminal_that_knows_few_characters_is_no_fault(
    arguments: str, encoding: str, place: Path, programs: Programs
) -> None:
    env = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run([programs / "mrag-eval", *arguments.split()], capture_output=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.slow
def test_a_working_folder_that_is_not_utf_8_is_named(place: Path, programs: Programs, tmp_path: Path) -> None:
    here = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(here)
    shutil.copy(place / "corpus.jsonl", here + b"/corpus.jsonl")
    case = Case("index build corpus.jsonl idx --kind bm25", ["not UTF-8", "udce9"])
    done = subprocess.run(
        [programs / "mrag-eval", *case.arguments], capture_output=True, text=True, check=False, cwd=os.fsdecode(here)
    )
    assert not complaints(case, done.returncode, done.stdout, done.stderr), done.stderr
    assert not os.path.exists(here + b"/idx")
