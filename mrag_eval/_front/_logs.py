"""Logs of a system that is there already: files and rows in memory, read as often as asked for, a row at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import Failure, ModelReply
from mrag_eval.platform import DataError, HttpFault, no_file, part_files, plain
from mrag_eval.systems import (
    OWN_KEYS,
    Columns,
    LogReading,
    completion_in,
    gathered,
    holds,
    in_own_terms,
    lists_in,
    rows_in,
    value_at,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Row = Mapping[str, Any]
_NEXT = "name the columns: --columns question=COLUMN,answer=COLUMN,contexts=COLUMN"
_ONE_EACH = "give one dictionary a question"
# Key of a row that cannot be read: the error.
UNREAD = "cannot be read"


@dataclass(frozen=True)
class Log:
    """A log.

    Attributes:
        name: the file, or ``rows``.
        source: the file, or the rows themselves.
        named: the parts that the user names, with their paths.
        kept: paths of what is kept of a row beside its parts.
        asked: whether the rows are questions that nobody has answered yet.
        at: the path of the rows in the file, or in each of its lines; "" for the file's own.
        join: the path of what rows share that are one, such as a question's passages on lines of their own; "" if each
            row is one.
    """

    name: str
    source: Path | Sequence[Row]
    named: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[str, ...] = ()
    asked: bool = False
    at: str = ""
    join: str = ""

    @classmethod
    def of(
        cls,
        rows: Iterable[Row] | DataFrame | str | Path,
        columns: Mapping[str, str] | None = None,
        kept: Sequence[str] = (),
        *,
        asked: bool = False,
        at: str = "",
        join: str = "",
    ) -> Log:
        """Return a log. Raises DataError for a file that is not there, ConfigError for wrong columns."""
        named = dict(columns or {})
        if join:
            named.setdefault("id", join)
        Columns(named)
        how = (named, tuple(kept), asked, at, join)
        if isinstance(rows, str | Path):
            path = Path(rows).expanduser()
            if not (path.is_file() or path.is_dir()) or not part_files(path, "queries"):
                raise DataError(f"{rows}: {no_file(path)}", "name a JSON Lines, JSON, CSV or Parquet file")
            return cls(str(rows), path, *how)
        if hasattr(rows, "convert_dtypes"):
            # JSON knows lists and null where a frame has arrays and NaN
            made = json.loads(rows.convert_dtypes().to_json(orient="records", double_precision=15))
            return cls("rows", [{k: v for k, v in row.items() if v is not None} for row in made], *how)
        return cls("rows", [plain(row) for row in rows], *how)

    @cached_property
    def columns(self) -> Columns:
        """Return what the columns of all rows hold."""
        found = Columns(self.named, asked=self.asked)
        for where, row in self._raw():
            if UNREAD not in row:
                found.add(where, row)
        return found

    @cached_property
    def reading(self) -> LogReading:
        """Return where the parts are.

        Raises DataError if there is no row, and if two columns may be one part.
        """
        found = self.columns
        if not found.rows:
            row = next((row for _, row in self._raw()), None)
            if row is not None:
                raise row[UNREAD]
            raise DataError(f"there are no rows{'' if self.name == 'rows' else f' in {self.name}'}", _ONE_EACH)
        return found.reading(self.name)

    def check_question(self) -> None:
        """Raise DataError if no column is the question; the next step is its nested rows if it has any."""
        if {"question", "turns"} & self.reading.paths.keys():
            return
        keys = ", ".join(map(str, self.columns.keys))[:200] or "none"
        first = next((row for _, row in self._raw() if UNREAD not in row), {})
        nested = "" if self.at or self.asked else next(iter(rows_in(first) or lists_in(first)), "")
        raise DataError(
            f"{self.name}: no column is the question; its columns: {keys}",
            f"name the place of the rows: --rows {nested}" if nested else _NEXT,
        )

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the place of each row, and the row in our own terms; rows that are one are joined.

        A row that cannot be read has the error under :data:`UNREAD` alone.
        """
        reading, also = self.reading, self._also
        if reading.spans:
            yield from _joined(((where, row) for where, row in self._raw() if UNREAD not in row), reading, self.kept)
            return
        rows = self._own(reading, also)
        yield from _of_one_id(rows) if self.join else rows

    def _own(self, reading: LogReading, also: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        for where, row in self._raw():
            if UNREAD in row:
                yield where, dict(row)
                continue
            try:
                own, completion = in_own_terms(row, reading, where, self.kept, also=also), completion_in(row, reading)
            except DataError as error:
                yield where, {UNREAD: error} | ({} if (name := reading.found(row, "id")[1]) is None else {"id": name})
                continue
            fault = own.pop("error", None)
            if completion is not None:
                own["reply"] = _reply(completion)
            elif fault and own.get("reply") is None:
                own["reply"] = ModelReply.failed(Failure("answer", "", "error in the log", str(fault)[:200]))
            yield where, own

    @cached_property
    def _also(self) -> tuple[str, ...]:
        """Return the keys of our own questions that are no parts."""
        from mrag_eval.datasets import QUESTION_KEYS

        taken = {
            *OWN_KEYS.values(),
            *(path.partition(".")[0] for paths in self.reading.paths.values() for path in paths),
        }
        return tuple(sorted((QUESTION_KEYS & self.columns.keys.keys()) - taken - {"relevant_ids", "id", "lang"}))

    @cached_property
    def mapping(self) -> dict[str, str]:
        """Return part -> the paths at which rows keep it, of those that are there."""
        if self.reading.spans:
            found: dict[str, str] = {}
            for _, row in self._raw():
                for part in self.reading.paths:
                    if path := self.reading.found(row, part)[0]:
                        found.setdefault(part, path)
            return {part: found[part] for part in self.reading.paths if part in found}
        return {part: "|".join(paths) for part, paths in self.reading.paths.items()}

    def absent(self) -> list[tuple[str, str]]:
        """Return the parts, "" for what else is kept, and paths that the user names and no row has."""
        left = [(part, path) for part, paths in self.named.items() for path in paths.split("|")]
        left += [("", path) for path in self.kept]
        for _, row in self._raw() if left else ():
            left = [pair for pair in left if UNREAD in row or not holds(row, self.reading, *pair)]
            if not left:
                break
        return left

    @cached_property
    def unread(self) -> list[str]:
        """Return the columns that are not read."""
        from mrag_eval.datasets import QUESTION_KEYS

        kept = {*self.kept, *(path.partition(".")[0] for path in self.kept), *QUESTION_KEYS}
        return [key for key in self.reading.unread(self.columns.keys) if key not in kept]

    def _raw(self) -> Iterator[tuple[str, Row]]:
        from mrag_eval.datasets import log_rows, questions_of

        if not isinstance(self.source, Path):
            rows: Iterator[tuple[str, Any]] = ((f"rows[{i}]", row) for i, row in enumerate(self.source))
        elif self.source.is_dir():
            rows = questions_of(self.source)
        else:
            rows = log_rows(self.source, self.name, at=self.at, tolerant=True)
        named = (*self.named.values(), *self.kept, self.join)
        for where, row in rows:
            if isinstance(row, DataError):
                row = {UNREAD: row}
            elif not isinstance(row, Mapping):
                row = {UNREAD: DataError(f"{where}: expected a dictionary, got {type(row).__name__}", _ONE_EACH)}
            else:
                row = gathered(row, named)
            yield where, row


def _of_one_id(rows: Iterable[tuple[str, dict[str, Any]]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one row for those that share an id: the first value of each part, and the contexts of all."""
    known: dict[str, tuple[str, dict[str, Any]]] = {}
    for number, (where, row) in enumerate(rows):
        name = f"row {number}" if row.get("id") is None else str(row["id"])
        _, whole = known.setdefault(name, (where, {}))
        shown = [*whole.get("passages", ()), *row.pop("passages", ())]
        other = next((key for key in ("query", "reply") if row.get(key) and whole.get(key, row[key]) != row[key]), None)
        if other is not None:
            what = (
                f"{where}: it has another {'question' if other == 'query' else 'answer'} than the first row of '{name}'"
            )
            raise DataError(what, "join rows of one question by another column: --join COLUMN")
        if all(isinstance(item, Mapping) and "score" in item for item in shown):
            shown.sort(key=lambda item: -float(item["score"]))
        whole |= {key: value for key, value in row.items() if key not in whole and value not in (None, "")}
        whole |= {"passages": _distinct(shown)} if shown else {}
    yield from known.values()


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


def _joined(
    rows: Iterable[tuple[str, Row]], reading: LogReading, kept: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one row for those that share an id: question and answer of the outermost, contexts of all.

    All rows are in memory until the last is read, as those of a trace may stand anywhere.
    """
    traces: dict[str, tuple[str, dict[str, Any]]] = {}
    roots: dict[str, str] = {}
    for number, (where, row) in enumerate(rows):
        shared = next((found for path in reading.joined_by if (found := value_at(row, path)) is not None), None)
        trace = str(shared or f"row {number}")
        is_root = not any(row.get(key) for key in _PARENTS)
        own = in_own_terms(row, reading, where, kept, lenient=not is_root)
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
