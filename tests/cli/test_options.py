"""Options that exclude each other, extensions of output files, and the help of ``run``."""

from __future__ import annotations

from typing import get_args

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.config import Retrieval


def said(command: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, command.split(), obj=Session(), env={"COLUMNS": "300"})
    return done.exit_code, " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("report out -o x.pdf", "x.pdf: the file's name must end in one of .html, .md, .csv, .json"),
        ("report out -o x.csv --format md", "md does not fit the name x.csv"),
        ("report out -o x.html --layout xrag", "--layout: cannot be combined with an HTML page"),
        ("report out --territory Ceuta --layout xrag", "--layout: cannot be combined with --territory"),
        ("report out --territory Ceuta -o x.html", "must end in one of .md, .csv, .json"),
        ("compare out", "name two runs"),
        ("compare a b --by group", "--by: cannot be combined with a comparison of two runs"),
        ("compare a b --answers --metric x", "--metric: cannot be combined with --answers"),
        ("compare a b --languages --format csv", "must be md or json"),
        ("compare a --languages --by color", "must be question, group or row"),
        ("gate --baseline a --rules r", "--candidate: is missing"),
        ("gate a", "only --save and --init take runs"),
        ("gate --init f", "--init writes rules for the tasks of runs"),
        ("gate --init f a --save g", "--init: cannot be combined with --save"),
        ("gate --baseline a --candidate b", "--init FILE RUN writes one"),
        ("gate --save f", "--save writes the scores of runs"),
        ("gate --save f a --rules r", "--rules: cannot be combined with --save"),
        ("gate --save f a --html h", "--html: cannot be combined with --save"),
        ("gate --baseline a --candidate b --rules r --answers", "--answers: cannot be combined with a check"),
        ("doctor --config --json", "--json: cannot be combined with --config"),
    ],
)
def test_options_that_do_not_fit_are_named(command: str, fault: str) -> None:
    code, text = said(command)
    assert code == 2
    assert fault in text


@pytest.mark.parametrize("command", ["corpus wikipedia", "corpus kilt", "corpus bordirlines", "index build"])
def test_the_help_names_every_kind_of_index(command: str) -> None:
    kinds = set(get_args(get_args(Retrieval.model_fields["kind"].annotation)[0])) - {"milvus", "precomputed", "own"}
    code, text = said(f"{command} --help")
    told = text.partition("--kind")[2].partition("--")[0]
    assert code == 0
    assert kinds == {kind for kind in kinds if kind in told}


def test_the_help_of_run_is_about_retrieval_and_names_the_harness_s() -> None:
    code, text = said("run --help")
    assert code == 0
    for part in ("retrieval.mode", "retrieval.corpus", "retrieval.run_folder", "--no-retrieve-first", "lm_eval run"):
        assert part in text
