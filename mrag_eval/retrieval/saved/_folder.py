"""A folder of retrieved rows: retrieve once, evaluate many models.

``manifest.json`` holds every task's retrieval settings; ``<task>.jsonl`` holds one line per row, with everything
that the row was given; ``<task>.trec`` is the ranking for other tools (``<task>.reranked.trec`` that of the second
stage). Lines are written batch by batch, so that an interrupted step continues where it stopped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from mrag_eval.config import Differs
from mrag_eval.core import CONTROL, RagDoc, Ranked, Retrieved, check_id
from mrag_eval.datasets import sha256_file
from mrag_eval.platform import (
    ConfigError,
    DataError,
    build_lock,
    fault_in,
    hidden,
    json_value,
    lines_of,
    path_fault,
    replaced,
    with_names_of_one_line,
    write_whole,
)
from mrag_eval.retrieval.saved._manifest import FORMAT, MANIFEST, ManifestEntry, read_manifest
from mrag_eval.retrieval.saved._records import as_record, from_record, row_hash
from mrag_eval.retrieval.saved._settings import differing_settings, faults_of

# Fields of a manifest's entry that may hold addresses of models and services.
_WITH_ADDRESSES = ("settings", "index", "agent", "models")


class RunFolder:
    """Open a folder of retrieved rows to read or write. Raise DataError if it is damaged or newer.

    ``name`` is the folder, and ``remedy`` the next step for damaged rows, in messages.
    """

    remedy = "retrieve again with --overwrite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = str(path)
        self.tasks: dict[str, ManifestEntry] = self._manifest() if (path / MANIFEST).exists() else {}

    @classmethod
    def existing(cls, path: Path) -> RunFolder:
        """Return the folder. Raise DataError if it is not a run folder."""
        folder = path.expanduser()
        if not (folder / MANIFEST).is_file():
            why = "there is no such folder" if not folder.exists() else f"no {MANIFEST} there"
            raise DataError(
                f"retrieval.run_folder: {folder} holds no retrieved rows ({why})",
                "make it: mrag-eval retrieve --tasks ... -o FOLDER   (for a TREC run, set kind: precomputed and run:)",
            )
        return cls(folder)

    # ---------------------------------------------------------------- writing

    def begin(self, task: str, entry: ManifestEntry, *, overwrite: bool = False) -> tuple[set[str], set[str]]:
        """Begin a task; return the ids of rows of an earlier start: those that are there, and those that failed.

        The latter are removed. Raises ConfigError, naming the differences, if the folder holds rows of this task under
        other settings.
        """
        known = self.tasks.get(task)
        differing = [] if known is None else differing_settings(entry.settings, known.settings)
        if differing and not overwrite:
            raise ConfigError(
                f"{self.path} holds task {task} as retrieved under other settings (now | there): "
                f"{shown_differing(differing)}",
                "name another folder, or retrieve again with --overwrite",
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if not self.tasks and next(self.path.rglob("results_*.json"), None) is not None:
                raise ConfigError(f"{self.path} holds results of a run", "name another folder with -o")
            self._check_ours(entry, known)
            have: set[str] = set()
            failed: set[str] = set()
            if known is None or differing or overwrite:
                (self.path / entry.file).unlink(missing_ok=True)
            else:
                models = {role: _last(known.models.get(role, {}), marks) for role, marks in entry.models.items()}
                names = {role: {**known.names.get(role, {}), **marks} for role, marks in entry.names.items()}
                entry = replace(entry, models=models, names=names)
                entry = replace(entry, translation=known.translation, came_back=known.came_back)
                have, failed = _repair(self.path / entry.file)
            self._note(task, replace(entry, rows=len(have), sha256=None))
        except OSError as error:
            raise _not_writable(self.path, error) from None
        return have, failed

    def _check_ours(self, entry: ManifestEntry, known: ManifestEntry | None) -> None:
        """Raise ConfigError for a file in the way that the manifest does not list, and for a link out of the folder."""
        stem = Path(entry.file).stem
        for name in (entry.file, f"{stem}.trec", f"{stem}.reranked.trec"):
            path = self.path / name
            fault = path_fault(self.path, name)
            if fault is None and known is None and path.exists():
                fault = "was not written by mrag-eval retrieve"
            if fault is not None:
                raise ConfigError(f"{path} {fault}, so it is not replaced", "name another folder with -o")

    def append(self, task: str, docs: Sequence[RagDoc], found: Sequence[Retrieved]) -> None:
        """Write a batch of rows; they are on disk when this returns."""
        # the marks of this start come last
        models = {role: [*marks][-1] for role, marks in self.tasks[task].models.items()}
        named = {"models": models} if models else {}
        lines = [_line({**as_record(doc, row), **named}) for doc, row in zip(docs, found, strict=True)]
        try:
            with (self.path / self.tasks[task].file).open("ab") as out:
                out.write(b"".join(lines))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise _not_writable(self.path, error) from None

    def note(self, task: str, **changes: Any) -> None:
        """Record facts that become known of a task while its rows are retrieved."""
        self._note(task, replace(self.tasks[task], **changes))

    def finish(self, task: str, *, single_ranking: bool) -> ManifestEntry:
        """Hash the task's file and write its rankings for other tools; quota modes have none."""
        entry = self.tasks[task]
        path = self.path / entry.file
        path.touch()
        rankings: dict[str, list[tuple[str, tuple[Ranked, ...]]]] = {"trec": [], "reranked.trec": []}
        rows = []
        for record in records_of(path):
            row = from_record(record)
            rows.append(replace(row, passages=(), ranking=(), trace=None))
            if single_ranking and row.ranking:
                rankings["trec"].append((record["id"], row.ranking))
            if row.reranked is not None and row.reranked.ranking:
                rankings["reranked.trec"].append((record["id"], row.reranked.ranking))
        for suffix, lists in rankings.items():
            target = path.with_name(f"{path.stem}.{suffix}")
            if lists:
                write_trec(target, lists, task)
            else:
                target.unlink(missing_ok=True)
        self.note(task, rows=len(rows), sha256=sha256_file(path), faults=faults_of(rows))
        return self.tasks[task]

    def _manifest(self) -> dict[str, ManifestEntry]:
        path = self.path / MANIFEST
        return read_manifest(path, str(path), partial(path_fault, self.path))

    def _note(self, task: str, entry: ManifestEntry) -> None:
        with build_lock(self.path / MANIFEST, wait=True):
            # another process may have added its own tasks in the meantime
            there = self._manifest() if (self.path / MANIFEST).exists() else {}
            self.tasks = {**there, task: entry}
            tasks = {name: asdict(one) for name, one in self.tasks.items()}
            # data are written as they are: they are read back
            tasks = {name: one | hidden({key: one[key] for key in _WITH_ADDRESSES}) for name, one in tasks.items()}
            body = {"format": FORMAT, "tasks": tasks}
            text = json.dumps(body, indent=1, ensure_ascii=False)
            write_whole(self.path / MANIFEST, text, errors="surrogatepass")

    # ---------------------------------------------------------------- reading

    def entry_for(self, task: str, fingerprint: str) -> ManifestEntry:
        """Return the task's own rows, else those of another task that was retrieved for under the same settings."""
        same = (entry for entry in self.tasks.values() if entry.fingerprint == fingerprint)
        entry = self.tasks.get(task) or next(same, None)
        if entry is None:
            raise DataError(
                f"{self.name} holds no rows of task {task} (it has: {', '.join(self.tasks) or 'none'})",
                f"retrieve them: {self.command(task)}",
            )
        return entry

    def rows(self, task: str, entry: ManifestEntry, docs: Sequence[RagDoc]) -> list[Retrieved]:
        """Return the records of these rows, in their order; see :meth:`made`."""
        return [row for row, _ in self.made(task, entry, docs)]

    def made(
        self, task: str, entry: ManifestEntry, docs: Sequence[RagDoc]
    ) -> list[tuple[Retrieved, Mapping[str, str]]]:
        """Return the records of these rows, in their order, each with the marks of the models that made it, by role.

        Raises DataError if rows are missing, naming and counting them, if a row has changed since its
        retrieval or names no model, and if the file is damaged.
        """
        path, shown = self.located(entry)
        wanted = {doc.id: doc for doc in docs}
        found: dict[str, tuple[Retrieved, Mapping[str, str]]] = {}
        count = 0
        for record in records_of(path, entry.sha256, shown, self.remedy):
            count += 1
            doc = wanted.get(record["id"])
            if doc is None:
                continue
            if doc.id in found:
                raise DataError(f"{shown}: row '{doc.id}' is there twice", self.remedy)
            if record["row"] != row_hash(doc):
                raise DataError(
                    f"{shown}: row '{doc.id}' of task {task} has changed since it was retrieved for",
                    f"retrieve again: {self.command(task)} --overwrite",
                )
            try:
                row = from_record(record)
            except (KeyError, TypeError, ValueError, AttributeError, DataError) as error:
                raise DataError(f"{shown}: row '{doc.id}' cannot be read ({fault_in(error)})", self.remedy) from None
            found[doc.id] = row, _models_of(record, entry, shown, self.remedy)
        if entry.sha256 is not None and count != entry.rows:
            raise DataError(f"{shown} has {count:,} rows, its manifest says {entry.rows:,}", self.remedy)
        missing = [doc.id for doc in docs if doc.id not in found]
        if missing:
            names = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
            raise DataError(
                f"{shown} lacks {len(missing):,} of the {len(docs):,} rows of task {task} that are to run: {names}",
                f"retrieve the others too: {self.command(task)}   (those there are kept)",
            )
        return [found[doc.id] for doc in docs]

    def located(self, entry: ManifestEntry) -> tuple[Path, str]:
        """Return the file of a task's rows, and its name in messages."""
        path = self.path / entry.file
        return path, str(path)

    def command(self, task: str) -> str:
        """Return the command that retrieves for a task into this folder."""
        return f"mrag-eval retrieve --tasks {task} -o {self.name}"

    def origin(self) -> dict[str, Any]:
        """Return where the folder is from, for the results; empty for a folder on this machine."""
        return {}


def _last(known: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the marks of a role, those that are asked now at the end."""
    return {**{mark: seat for mark, seat in known.items() if mark not in asked}, **asked}


def _models_of(record: Mapping[str, Any], entry: ManifestEntry, shown: str, remedy: str) -> Mapping[str, str]:
    """Return the marks of the models that made a row, by role; raise DataError, naming the key, for an unknown one."""
    named = record.get("models")
    named = named if isinstance(named, Mapping) else {}
    for role, seats in entry.models.items():
        mark = named.get(role)
        if not isinstance(mark, str) or mark not in seats:
            raise DataError(f"{shown}: row '{record['id']}', models.{role}: {mark!r:.40} is not in {MANIFEST}", remedy)
    return {role: str(named[role]) for role in entry.models}


def file_name(task: str) -> str:
    """Return the file of a task's rows."""
    return re.sub(r"[^\w.+-]", "_", task) + ".jsonl"


def _line(record: Mapping[str, Any]) -> bytes:
    # half a surrogate pair in a question or a passage must survive the round trip
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass") + b"\n"


def records_of(
    path: Path, sha256: str | None = None, shown: str | None = None, remedy: str = RunFolder.remedy
) -> Iterator[dict[str, Any]]:
    """Yield the records of a file of rows; with ``sha256``, raise DataError after the last if the file differs.

    ``shown`` names the file in messages, by default its path, and ``remedy`` is their next step.
    """
    shown = shown or str(path)
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(lines_of(file, path), 1):
                if sha256 is None and not line.endswith(b"\n"):  # the step that wrote it was interrupted there
                    return
                digest.update(line)
                try:
                    record = json_value(line.decode("utf-8", "surrogatepass"))
                except (ValueError, UnicodeDecodeError):
                    record = None
                if not isinstance(record, dict) or not {"id", "row", "passages"} <= record.keys():
                    raise DataError(f"{shown}, line {number}: not a row", remedy)
                check_id(str(record["id"]), f"{shown}, line {number}")
                yield with_names_of_one_line(record)
    except OSError as error:
        raise DataError(f"{shown} cannot be read: {error.strerror or error}", remedy) from None
    if sha256 is not None and digest.hexdigest() != sha256:
        raise DataError(f"{shown} is damaged: its SHA-256 is not the manifest's", remedy)


def _repair(path: Path) -> tuple[set[str], set[str]]:
    """Return the ids in a file that may end within a line: the rows that are there, and those that failed.

    The rest of such a line and the rows that failed are cut off.
    """
    have: set[str] = set()
    failed: set[str] = set()
    if not path.exists():
        return have, failed
    kept, end = [], 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            try:
                record = json_value(line.decode("utf-8", "surrogatepass"))
                row = record["id"]
            except (ValueError, KeyError, TypeError, UnicodeDecodeError):
                break
            if "failures" in record:
                failed.add(row)
            else:
                have.add(row)
                kept.append((end, len(line)))
            end += len(line)
    if failed:
        with path.open("rb") as file, replaced(path) as part, part.open("wb") as out:
            for start, length in kept:
                file.seek(start)
                out.write(file.read(length))
    elif end < path.stat().st_size:
        os.truncate(path, end)
    return have, failed


def shown_differing(differing: Sequence[Differs]) -> str:
    """Return the first few settings that differ, for a message."""
    items = [f"{one.key} ({one.values})" for one in differing]
    return "; ".join(items[:4]) + (f"; and {len(items) - 4} more" if len(items) > 4 else "")


def _not_writable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"{folder} cannot be written to ({error.strerror or error})",
        "make space there, or name another folder: -o FOLDER, or export MRAG_CACHE=FOLDER; its rows are kept",
    )


def write_trec(path: Path, lists: Iterable[tuple[str, Sequence[Ranked]]], tag: str) -> None:
    """Write the rankings of rows, by their ids; ``tag`` is the run's name in the last column."""
    with replaced(path) as part, part.open("w", encoding="utf-8", errors="backslashreplace") as out:
        for row, ranking in lists:
            for rank, (place, score) in enumerate(zip(ranking, _without_ties(ranking), strict=True), 1):
                # tabs, since ids may hold spaces
                out.write(f"{_column(row)}\tQ0\t{_column(place.id)}\t{rank}\t{score!r}\t{_column(tag)}\n")


def _without_ties(ranking: Sequence[Ranked]) -> Iterator[float]:
    """Yield the scores, lowered where they tie, since readers of such files order ties by the passages' ids.

    A score is lowered by four parts in ten million, which single precision still tells apart (trec_eval's).
    """
    before = written = math.inf
    for place in ranking:
        score = place.score
        if written <= score <= before:
            score = written - max(abs(written) * 4e-7, 1e-30)
        before, written = place.score, score
        yield score


def _column(name: str) -> str:
    """Return an id as one column of one line: tabs, line ends and other control characters are escaped."""
    return name if name.isprintable() else CONTROL.sub(lambda found: repr(found[0])[1:-1], name)
