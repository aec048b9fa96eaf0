"""Every error gives a next step: all classes, and every place in the code that raises one."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from lm_eval._cli.harness import HarnessCLI

import mrag_eval
from mrag_eval.cli import app
from mrag_eval.platform import ConfigError, CorpusError, DataError, MetricError, MragError, missing_extra, suggesting
from mrag_eval.platform import _errors as errors

ROOT = Path(mrag_eval.__file__).resolve().parents[1]
CLASSES = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, MragError)]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
# Raised in functions that a program calls with values, like a ValueError: the message says which argument is wrong and
# what it must be; there is no command to type. The command line adds the source.
OF_PROGRAMS = {"MetricError"}
# Readers of a benchmark's files: the next step depends on whose file it is; only the caller knows, and adds it
# (`test_readers_get_their_next_step_from_their_caller`).
READERS = ("mrag_eval/datasets/", "mrag_eval/building/territories/_territory_tables.py")


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Every module of the package, by its place."""
    paths = [
        path for folder in ("mrag_eval", "metrics", "retrievers") for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    places = {path.relative_to(ROOT).as_posix(): path for path in paths}
    links = ("mrag_eval/metrics/", "mrag_eval/retrievers/")
    return {place: ast.parse(path.read_text("utf-8")) for place, path in places.items() if not place.startswith(links)}


def raised(modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, ast.Call]]:
    """Yield every call of one of our error classes, with its place."""
    names = {c.__name__ for c in CLASSES}
    for place, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
                yield f"{place}:{node.lineno}", node


def has_next_step(call: ast.Call) -> bool:
    """Return whether the error has a non-empty second argument, or a correction in its message (``did you mean``)."""
    second = [*call.args[1:2], *(k.value for k in call.keywords if k.arg == "next_step")]
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return True
    if second and not (isinstance(second[0], ast.Constant) and not second[0].value):
        return True
    return any(isinstance(n, ast.Name) and n.id in ("did_you_mean", "hint") for n in ast.walk(call.args[0]))


@pytest.mark.parametrize("kind", CLASSES)
def test_a_notebook_shows_fault_and_next_step_without_the_calls(kind: type[MragError]) -> None:
    assert kind("a: b", "c")._render_traceback_() == [f"{kind.__name__}: a: b\n    c"]


def test_there_is_something_to_look_at(modules: dict[str, ast.Module]) -> None:
    places = list(raised(modules))
    assert len(places) > 300
    assert {"mrag_eval/retrieval/_corpora.py", "retrievers/corpora/_corpus.py"} <= {
        place.partition(":")[0] for place, _ in places
    }


def test_no_hint_turns_a_task_into_another_under_its_name(modules: dict[str, ast.Module]) -> None:
    """A task with another mode (closed book, say) measures something else; hints name a task of that mode instead."""
    found = []
    for place, tree in modules.items():
        named = (node for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
        documents = {ast.get_docstring(node, clean=False) for node in named}
        found += [
            f"{place}:{node.lineno} {node.value.strip()}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in documents
            if re.search(r"--metadata retrieval\.mode=|retrieval\.mode=no_ir", node.value)
        ]
    assert found == []


def test_every_place_that_raises_names_the_next_step(modules: dict[str, ast.Module]) -> None:
    silent = [
        f"{place}  {ast.unparse(call)[:140]}"
        for place, call in raised(modules)
        if isinstance(call.func, ast.Name)
        and not (call.func.id == "DataError" and place.startswith(READERS))
        and call.func.id not in OF_PROGRAMS
        and not has_next_step(call)
    ]
    assert silent == [], "give these a second argument, what the reader types or changes next:\n" + "\n".join(silent)


def test_the_walk_tells_errors_with_a_next_step_from_those_without() -> None:
    def call(text: str) -> ast.Call:
        node = ast.parse(text, mode="eval").body
        assert isinstance(node, ast.Call)
        return node

    assert not has_next_step(call("DataError(f'{path}: no')"))
    assert not has_next_step(call("DataError('no', None)"))
    assert not has_next_step(call("DataError('no', '')"))
    assert has_next_step(call("DataError('no', 'do this')"))
    assert has_next_step(call("DataError('no', next_step='do this')"))
    assert has_next_step(call("DataError(f'no {x}{did_you_mean(x, y)}')"))


@pytest.mark.parametrize("kind", CLASSES, ids=lambda c: c.__name__)
def test_every_class_keeps_message_and_next_step(kind: type[MragError]) -> None:
    plain, full = kind("what, where"), kind("what, where", "do this")
    assert (plain.message, plain.next_step, str(plain)) == ("what, where", None, "what, where")
    assert (full.message, full.next_step) == ("what, where", "do this")
    # a traceback (in a notebook, or from the stock lm_eval command) ends with both
    assert str(full).splitlines() == ["what, where", "    do this"]


def test_error_classes_derive_from_pythons_own() -> None:
    assert issubclass(MetricError, ValueError)
    assert isinstance(missing_extra("x", "y"), ImportError)
    assert missing_extra("milvus", "pymilvus").next_step == 'pip install "mrag-eval[milvus]"'


def test_a_next_step_is_added_only_where_there_is_none() -> None:
    with pytest.raises(CorpusError) as caught, suggesting("do that"):
        raise CorpusError("broken")
    assert (caught.value.message, caught.value.next_step) == ("broken", "do that")
    with pytest.raises(DataError) as kept, suggesting("do that"):
        raise DataError("broken", "do this")
    assert kept.value.next_step == "do this"
    with pytest.raises(ValueError, match="other"), suggesting("do that"):
        raise ValueError("other")


@pytest.mark.parametrize(
    ("data", "step"),
    [
        ({"benchmark": "jsonl", "path": "q.jsonl"}, "correct the file"),
        ({"benchmark": "click", "path": "q.jsonl"}, "compare your copy"),
        ({"benchmark": "xquad", "path": "q.jsonl"}, "xquad.de.json"),
    ],
)
def test_readers_get_their_next_step_from_their_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: dict[str, str], step: str
) -> None:
    from mrag_eval.datasets import load_benchmark

    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.jsonl").write_text('{"id": "1"}\n', "utf-8")
    with pytest.raises(DataError) as caught:
        load_benchmark(data)
    assert caught.value.next_step, caught.value.message


def test_readers_of_tables_do_too(tmp_path: Path) -> None:
    from mrag_eval.building.territories._territory_tables import read_tables
    from mrag_eval.datasets import read_lines

    for name in ("territories.csv", "claimants.csv"):
        (tmp_path / name).write_text("name\n", "utf-8")
    with pytest.raises(DataError) as caught:
        read_tables(tmp_path)
    assert "run the same command again" in str(caught.value.next_step)
    (tmp_path / "x.jsonl").write_text("[]\n", "utf-8")
    with pytest.raises(DataError) as caught:
        list(read_lines(tmp_path / "x.jsonl"))
    assert caught.value.next_step


def test_benchmark_blocks_name_keys_and_values() -> None:
    from mrag_eval.datasets import validate_data

    for data in ({"benchmark": "xquad", "seed": -1}, {"benchmark": "click", "nonsense": 1}, {"benchmark": "clik"}):
        with pytest.raises(ConfigError) as caught:
            validate_data(data)
        assert caught.value.next_step or "did you mean" in caught.value.message


def options(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options of a parser of the harness and of its commands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from options(inner)


# Options of other programs, in the commands that messages give for them.
_OF_OTHERS = re.compile(r"\b(pip install|hf download|ray start|milvus-lite server)\b.*")


def test_every_option_that_a_message_names_exists(modules: Mapping[str, ast.Module]) -> None:
    def known(command: Any) -> Iterator[str]:
        yield from (option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts))
        for inner in getattr(command, "commands", {}).values():
            yield from known(inner)

    there = {"--help", "--debug", "--version", *known(typer.main.get_command(app)), *options(HarnessCLI()._parser)}
    named: dict[str, str] = {}
    for place, tree in modules.items():
        described = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr)
        }
        inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
            elif (
                isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in {*described, *inner}
            ):
                text = node.value
            else:
                continue
            for option in re.findall(r"(?<![\w/-])--[a-z][a-z_-]*[a-z]\b", _OF_OTHERS.sub("", text)):
                named.setdefault(option, f"{place}, line {node.lineno}")
    assert len(named) > 60
    assert {option: place for option, place in named.items() if option not in there} == {}
