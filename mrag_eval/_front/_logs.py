"""Logs of a system that is there already: files and rows in memory, read as often as asked for, a row at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import Failure, ModelReply
from mrag_eval.platform import DataError, HttpFault, json_from
from mrag_eval.systems import OWN, PLAIN, Shape, completion_in, holds, in_own_terms, plain, recognised, shape_of_columns

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, Any]
_NEXT = "name the columns: --columns question=COLUMN,answer=COLUMN,contexts=COLUMN"
_ONE_EACH = "give one dictionary a question"


@dataclass(frozen=True)
class Log:
    """A log.

    Attributes:
        name: the file, or ``rows``.
        source: the file, or the rows themselves.
        given: the shape that the user described; None: that of the first row.
        kept: paths of what is kept in rows of another shape than our own, too.
        named: the fields and paths of which the user made that shape.
    """

    name: str
    source: Path | Sequence[Row]
    given: Shape | None = None
    kept: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        rows: Iterable[Row] | DataFrame | str | Path,
        columns: Mapping[str, str] | None = None,
        kept: Sequence[str] = (),
        shape: Shape | None = None,
    ) -> Log:
        """Return a log of a shape; by default that of its first row.

        Raises DataError for a file that is not there, ConfigError for wrong columns.
        """
        shape = shape_of_columns(columns) if columns else shape
        own = (shape, tuple(kept), columns or {})
        if isinstance(rows, str | Path):
            path = Path(rows).expanduser()
            if not path.is_file():
                what = "a folder, not a file" if path.is_dir() else "no such file"
                raise DataError(f"{rows}: {what}", "name a JSON Lines, JSON, CSV or Parquet file, or pass rows")
            return cls(str(rows), path, *own)
        if hasattr(rows, "convert_dtypes"):
            # JSON knows lists and null where a frame has arrays and NaN
            made = json.loads(rows.convert_dtypes().to_json(orient="records", double_precision=15))
            return cls("rows", [{k: v for k, v in row.items() if v is not None} for row in made], *own)
        return cls("rows", [plain(row) for row in rows], *own)

    @cached_property
    def shape(self) -> Shape:
        """Return the shape of the first row that has one. Raises DataError if there is no row, or none has a shape."""
        for _, row in self._raw():
            shape = self.given or recognised(row) or PLAIN
            if shape.fits(row):
                return shape
            if shape is PLAIN and any(key in row for key in ("reply", "passages")):
                return OWN
        where, row = next(self._raw(), ("", {}))
        if not where:
            raise DataError(f"there are no rows{'' if self.name == 'rows' else f' in {self.name}'}", _ONE_EACH)
        what = "has no shape that is known" if self.given is None else f"lacks {' or '.join(self.given.needs)}"
        raise DataError(f"{where}: {what}; its keys: {', '.join(map(str, row))[:200] or 'none'}", _NEXT)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place of each row, and the row in our own terms; rows that are one are joined.

        Raises DataError for a row of another shape than the first.
        """
        shape = self.shape
        if shape.joined_by:
            yield from _joined(self._fitting(shape), shape, self.kept)
            return
        for where, row in self._fitting(shape):
            own, completion = in_own_terms(row, shape, where, self.kept), completion_in(row, shape)
            yield where, own if completion is None else {**own, "reply": _reply(completion)}

    def _fitting(self, shape: Shape) -> Iterator[tuple[str, Row]]:
        for where, row in self._raw():
            if self.given is None and not shape.fits(row) and (other := recognised(row)) not in (None, shape, OWN):
                assert other is not None
                raise DataError(
                    f"{where}: its keys are those of {other.name}, the first row's those of {shape.name}",
                    "save each shape in a file of its own, and score them apart",
                )
            if shape is PLAIN:
                _check_names(row, where)
            yield where, row

    @cached_property
    def mapping(self) -> dict[str, str]:
        """Return field -> the path at which the first row that has it keeps it."""
        found: dict[str, str] = {}
        for _, row in islice(self._raw(), 100):
            for name in self.shape.paths:
                path, _ = self.shape.found(row, name)
                if path:
                    found.setdefault(name, path)
        return found

    def absent(self) -> list[tuple[str, str]]:
        """Return the fields, "" for what else is kept, and paths that the user names and no row has."""
        left = [*self.named.items(), *(("", path) for path in self.kept)]
        for _, row in self._raw() if left else ():
            left = [pair for pair in left if not holds(row, self.shape, *pair)]
            if not left:
                break
        return left

    @cached_property
    def unread(self) -> list[str]:
        """Return the columns, of the first rows, that are not read."""
        from mrag_eval.datasets import QUESTION_KEYS

        kept = {*self.kept, *(path.partition(".")[0] for path in self.kept)}
        read = {*kept, *((*QUESTION_KEYS, "reply", "passages") if self.shape is OWN else ())}
        first = [row for _, row in islice(self._raw(), 100)]
        keys = [key for row in first for key in (row if self.shape is OWN else self.shape.unread(row))]
        return [key for key in dict.fromkeys(keys) if key not in read]

    def _raw(self) -> Iterator[tuple[str, Row]]:
        from mrag_eval.datasets import log_rows

        if not isinstance(self.source, Path):
            rows: Iterator[tuple[str, Any]] = ((f"rows[{i}]", row) for i, row in enumerate(self.source))
        else:
            rows = log_rows(self.source, self.name)
        for where, row in rows:
            if not isinstance(row, Mapping):
                raise DataError(f"{where}: expected a dictionary, got {type(row).__name__}", _ONE_EACH)
            yield where, row


def _reply(completion: Row) -> ModelReply:
    """Return what a chat completion says, or why it says nothing, as a run reads it."""
    from mrag_eval.models import completion_reply

    try:
        said = completion_reply(completion)
    except HttpFault as fault:
        return ModelReply.failed(Failure.of("answer", "", str(fault)))
    reply = ModelReply(said.text)
    reply.outcome, reply.cut_off = said.outcome, said.cut_off
    return reply


def _check_names(row: Row, where: str) -> None:
    """Raise DataError if a row has several columns that may be its question, its answer or another part of it."""
    for name, paths in PLAIN.paths.items():
        found = [path for path in paths if row.get(path) is not None]
        if len(found) > 1 and name not in ("id", "lang"):
            raise DataError(f"{where}: {' or '.join(found)} may be the {name}", _NEXT)


def _joined(rows: Iterable[tuple[str, Row]], shape: Shape, kept: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one row for those that share an id: question and answer of the outermost, contexts of all.

    All rows are in memory until the last is read, as those of a trace may stand anywhere.
    """
    traces: dict[str, tuple[str, dict[str, Any]]] = {}
    roots: dict[str, str] = {}
    of_trace = Shape(shape.name, (), {"trace": shape.joined_by})
    for number, (where, row) in enumerate(rows):
        trace = str(of_trace.found(row, "trace")[1] or f"row {number}")
        is_root = not any(row.get(key) for key in _PARENTS)
        own = in_own_terms(row, shape, where, kept, lenient=not is_root)
        _, whole = traces.setdefault(trace, (where, {}))
        said = [key for key in ("query", "reply") if key in own]
        if is_root and said:
            if trace in roots and any(whole.get(key, own[key]) != own[key] for key in said):
                what = f"trace '{trace}' has two outermost spans, the first is {roots[trace]}"
                raise DataError(f"{where}: {what}", _ROOTS)
            roots.setdefault(trace, where)
        shown = [*whole.get("passages", ()), *own.pop("passages", ())]
        own = {key: value for key, value in own.items() if is_root or (trace not in roots and key not in whole)}
        whole |= own | {"id": trace} | ({"passages": _distinct(shown)} if shown else {})
    yield from (found for found in traces.values() if "query" in found[1] or "reply" in found[1])


_ROOTS = "save each question in a trace of its own, and keep the column that names a span's parent"
_PARENTS = ("parent_id", "parentId", "parent_observation_id", "parentObservationId")


def _distinct(passages: Sequence[Any]) -> list[Any]:
    known: dict[str, Any] = {}
    for passage in passages:
        known.setdefault(json.dumps([passage.get("id"), passage.get("text")]), passage)
    return list(known.values())


def with_rankings(
    rows: Iterator[tuple[str, dict[str, Any]]], run: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows with the passages of a run by their ids, unless they have their own.

    A run leaves out the questions for which nothing was found.
    """
    for where, row in rows:
        if row.get("passages") is None:
            listed = run.get(str(row["id"]), ())
            row = {**row, "passages": [{"id": line.passage, "score": line.score} for line in listed]}
        yield where, row


def read_qrels(path: str | Path) -> dict[str, list[str]]:
    """Return query id -> the ids of relevant documents, of TREC's, BEIR's or BERGEN's judgements.

    Four columns are TREC's (query, iteration, document, grade), three BEIR's (query-id, corpus-id, score), with or
    without their head; JSON is BERGEN's, query -> document -> grade. Grades above 0 are relevant. Raises DataError
    naming the line.
    """
    from mrag_eval.datasets import decode, read_bytes

    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"{path}: no such file", "name a file of judgements: --qrels FILE")
    text = decode(read_bytes(file), str(path))
    found: dict[str, list[str]] = {}
    if text.lstrip().startswith("{"):
        for query, grades in json_from(text, str(path)).items():
            if not isinstance(grades, Mapping):
                # BERGEN's file also names its dataset
                continue
            if not all(isinstance(grade, int | float) for grade in grades.values()):
                raise DataError(f"{path}, query '{query}': a grade is no number", 'e.g. {"q1": {"d1": 1, "d2": 0}}')
            found[str(query)] = [str(name) for name, grade in grades.items() if grade > 0]
        return found
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split("\t") if "\t" in line else line.split()
        if not cells or (number == 1 and not _is_number(cells[-1])):
            continue
        if len(cells) not in (3, 4) or not _is_number(cells[-1]):
            what = f"{len(cells)} columns, judgements have three or four, the last a number"
            raise DataError(f"{path}, line {number}: {what}", "correct that line, or leave it out")
        if float(cells[-1]) > 0:
            found.setdefault(cells[0], []).append(cells[-2])
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
