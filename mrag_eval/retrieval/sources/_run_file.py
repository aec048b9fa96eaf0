"""Runs of other systems: TREC run files, with spaces or (as BERGEN writes them) tabs between their six columns."""

from __future__ import annotations

import gzip
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrag_eval.platform import DataError, JsonFault, filled_lines, finite_number, is_finite, json_from

_COLUMNS = "query, Q0, passage, rank, score, run"


@dataclass(frozen=True, slots=True)
class RunLine:
    """One passage of a query's list, its line number, and its rank in the file."""

    passage: str
    score: float
    line: int
    rank: int = 0


@dataclass(frozen=True)
class RunFile:
    """A run: per query its passages, best first, in the order of trec_eval: score, then id, both descending.

    What is shown of passages of one score goes by their ranks in the file (:meth:`shown`).

    ``reordered`` counts queries whose ranks disagree with that order, and ``first_reordered`` is the line of the first
    one. ``tag`` is the run's name in the last column; None if its lines disagree.
    """

    path: Path
    sha256: str
    lists: Mapping[str, tuple[RunLine, ...]]
    reordered: int = 0
    first_reordered: int | None = None
    tag: str | None = None

    def shown(self, query: str, k: int) -> list[RunLine]:
        """Return the ``k`` passages that are shown for a query: score descending, then by the file's ranks."""
        return sorted(self.lists.get(query, ()), key=lambda line: (-line.score, line.rank))[:k]


# The first line of a run, and the beginning of one in JSON.
_LINE = re.compile(r"\s*\S+\s+\S+\s+\S+\s+-?\d+\s+[-+.\deE]+\s+\S+[ \t]*")
_JSON = re.compile(r'\s*\{\s*"[^"]*"\s*:\s*\{\s*"[^"]*"\s*:\s*-?[\d.]+')


def is_run(path: str | Path) -> bool:
    """Return whether a file is a run, by its first line; a JSON file as a whole."""
    file = Path(path).expanduser()
    if not file.is_file():
        # a pipe can be read once
        return False
    try:
        head = [text for _, text in itertools.islice(_lines(file), 4)]
        is_json = ".json" in file.suffixes and _JSON.match(" ".join(head))
        return bool(read_run(file) if is_json else head and _LINE.fullmatch(head[0]))
    except (DataError, OSError):
        return False


def read_run(path: str | Path) -> RunFile:
    """Read a run file (``.gz`` too), once per process while it does not change.

    Raises DataError, naming file and line, for another number of columns, a rank or score
    that is no number, a passage or a rank that a query has twice, and a file without lines.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"retrieval.run: there is no file {file}", "name a TREC run file")
    stat = file.stat()
    return _read(file.resolve(), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _read(path: Path, _modified: int, _size: int) -> RunFile:
    passages: dict[str, dict[str, RunLine]] = {}
    ranks: dict[str, dict[int, int]] = {}
    tags: set[str] = set()
    digest = sha256()
    for number, (query, passage, rank, score, tag) in _places(path, digest):
        tags.add(tag)
        own, places = passages.setdefault(query, {}), ranks.setdefault(query, {})
        if passage in own:
            raise DataError(
                f"{path}, line {number}: passage '{passage}' of query '{query}' is on line {own[passage].line} too",
                "keep one line for every query and passage",
            )
        if rank in places:
            raise DataError(
                f"{path}, line {number}: query '{query}' has rank {rank} on line {places[rank]} already",
                "give the hits of a query different ranks",
            )
        own[passage] = RunLine(passage, score, number, rank)
        places[rank] = number
    if not passages:
        raise DataError(f"{path}: the run is empty", f"its lines should have six columns: {_COLUMNS}")
    lists, wrong = {}, []
    for query, own in passages.items():
        lists[query] = tuple(sorted(own.values(), key=lambda line: (line.score, line.passage), reverse=True))
        by_line = {line.line: line.score for line in own.values()}
        in_order = [ranks[query][rank] for rank in sorted(ranks[query])]
        # ties may be in any order
        fault = next((b for a, b in itertools.pairwise(in_order) if by_line[b] > by_line[a]), None)
        if fault is not None:
            wrong.append(fault)
    return RunFile(
        path,
        digest.hexdigest(),
        lists,
        len(wrong),
        min(wrong, default=None),
        tags.pop() or None if len(tags) == 1 else None,
    )


def _places(path: Path, digest: Any) -> Iterator[tuple[int, tuple[str, str, int, float, str]]]:
    """Yield the number and the content of each line; JSON has query -> passage -> score, as packages write it."""
    lines = _lines(path, digest)
    first = next(lines, None)
    if first is not None and first[1].lstrip().startswith("{"):
        value, number = json_from("\n".join([first[1], *(text for _, text in lines)]), str(path)), 0
        for query, scores in value.items():
            if not isinstance(scores, Mapping) or not all(map(is_finite, scores.values())):
                what = f"{path}, query '{query}': a score is no number"
                raise DataError(what, 'a run in JSON is {"q1": {"d1": 2.5}}')
            for rank, passage in enumerate(sorted(scores, key=lambda name: -scores[name]), 1):
                number += 1
                yield number, (str(query), str(passage), rank, float(scores[passage]), "")
        return
    for number, text in itertools.chain([] if first is None else [first], lines):
        yield number, _parsed(path, number, text)


def _lines(path: Path, digest: Any = None) -> Iterator[tuple[int, str]]:
    for number, raw in filled_lines((gzip.open if path.suffix == ".gz" else open)(path, "rb"), path, digest):
        try:
            text = raw.decode("utf-8").strip("\r\n\ufeff")
        except UnicodeDecodeError:
            raise DataError(f"{path}, line {number}: not UTF-8", "save it as UTF-8") from None
        if text.strip():
            yield number, text


def _parsed(path: Path, number: int, text: str) -> tuple[str, str, int, float, str]:
    # ids may contain spaces if the columns are separated by tabs
    columns = [column.strip() for column in text.split("\t")] if "\t" in text else text.split()
    if len(columns) != 6 or not columns[0] or not columns[2]:
        raise DataError(
            f"{path}, line {number}: {len(columns)} columns, a run has six ({_COLUMNS})",
            "correct that line, or leave it out",
        )
    query, _, passage, rank, score, tag = columns
    try:
        place = int(rank)
    except ValueError:
        raise DataError(
            f"{path}, line {number}: the rank {rank!r:.40} is not a whole number", "correct that line, or leave it out"
        ) from None
    try:
        return query, passage, place, finite_number(score), tag
    except JsonFault as fault:
        raise DataError(f"{path}, line {number}: the score {fault}", "correct that line, or leave it out") from None
