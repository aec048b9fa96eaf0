"""Parsers of replies take time in proportion to the reply, whatever a degenerate model writes into it.

With ``-s`` the growth of every parser is printed.
"""

from __future__ import annotations

import ast
import gc
import math
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

import mrag_eval
from tests.attacks.parsers import EXEMPT, PARSERS, TEXTS, text_of

ROOM = Path(mrag_eval.__file__).parent
# Lengths in characters: the growth is that between the first and the last. Most units go into both evenly, so that both
# texts end alike, and none is so short that what was found for it is kept.
LENGTHS, LONG_LENGTHS = (2_520, 10_080), (9_000, 72_000)
# A parser that is twice as slow on a text twice as long has 1, a quadratic one 2; the middle of the two is the bound.
EXPONENT = 1.5
# Seconds of the processor for which growth is not measured: a quadratic parser is far above it at the longest text.
QUICK = 0.01
ROUNDS, FURTHER_ROUNDS = 20, 3
# A text that leaves a cache of the processor costs more a character, once; only growth that goes on at this many times
# the length is the parser's own.
FURTHER = 4
_NAMES = ("parse_", "extract_", "read_", "fence", "defuse", "split_thinking", "declines", "all_tags", "tagged_pairs")


def seconds(parse: Callable[[str], object], text: str) -> float:
    """Return the processor time of one call."""
    start = process_time()
    parse(text)
    return process_time() - start


def exponent(parse: Callable[[str], object], name: str, lengths: tuple[int, int] = LENGTHS) -> float:
    """Return the growth of a parser's time in the length of a text; 0 if the longest takes no time worth measuring.

    Growth that seems too fast is measured again from the longer text on, and the slower growth of the two counts.
    """
    growth = _growth(parse, name, lengths, ROUNDS)
    return (
        growth
        if growth < EXPONENT
        else min(growth, _growth(parse, name, (lengths[1], lengths[1] * FURTHER), FURTHER_ROUNDS))
    )


def _growth(parse: Callable[[str], object], name: str, lengths: tuple[int, int], rounds: int) -> float:
    """Return the growth between two lengths.

    Other work on the machine can only add to a time, so the least of several counts. It is measured again as long as
    the growth seems too fast; that of a parser which is too slow stays so.
    """
    best = dict.fromkeys(lengths, math.inf)
    growth = math.inf
    for _ in range(rounds):
        for length in lengths:
            best[length] = min(best[length], seconds(parse, text_of(name, length)))
        first, last = (best[length] for length in lengths)
        growth = 0.0 if last < QUICK else math.log(last / max(first, 1e-6), lengths[1] / lengths[0])
        if growth < EXPONENT:
            break
    return growth


def measured(parser: str, lengths: tuple[int, int]) -> dict[str, float]:
    """Return the growth of a parser by text, in its worst form, and print the worst."""
    gc.collect()
    worst = {name: max(exponent(parse, name, lengths) for parse in PARSERS[parser]) for name in TEXTS}
    name = max(worst, key=worst.__getitem__)
    print(f"\n{parser:<62} {name!r:<24} {worst[name]:4.2f}", end="")
    return worst


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
def test_time_grows_with_the_length_of_the_reply(parser: str) -> None:
    slow = {name: round(growth, 2) for name, growth in measured(parser, LENGTHS).items() if growth >= EXPONENT}
    assert not slow, f"{parser} is not linear on {slow}"


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS)
def test_time_grows_with_the_length_of_a_long_reply(parser: str) -> None:
    slow = {name: round(growth, 2) for name, growth in measured(parser, LONG_LENGTHS).items() if growth >= EXPONENT}
    assert not slow, f"{parser} is not linear on {slow}"


def test_a_quadratic_parser_is_noticed() -> None:
    def quadratic(text: str) -> None:
        for at in range(len(text)):
            text[:at].casefold().split()

    assert exponent(quadratic, "x") >= EXPONENT


def parsers_in(path: Path) -> list[str]:
    """Return the functions of a module that read a text which a model wrote, by their names and first parameter."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        first = node.args.args[0] if isinstance(node, ast.FunctionDef) and node.args.args else None
        if first is None or first.annotation is None or ast.unparse(first.annotation) != "str":
            continue
        assert isinstance(node, ast.FunctionDef)
        if first.arg in ("reply", "response") or (
            first.arg == "text" and node.name.lstrip("_").startswith(_NAMES) and "retrievers" not in path.parts
        ):
            found.append(node.name)
    return found


def test_every_parser_is_listed() -> None:
    found = {
        ".".join((*path.relative_to(ROOM).with_suffix("").parts, name))
        for folder in (ROOM, ROOM / "metrics")
        for path in folder.rglob("*.py")
        for name in parsers_in(path)
    }
    assert found - EXEMPT.keys() == PARSERS.keys(), "list a new parser in tests/attacks/parsers.py"
    assert found >= EXEMPT.keys()
