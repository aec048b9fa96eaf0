"""Rows that were retrieved beforehand (``retrieval.run_folder``, or ahead of a run)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from mrag_eval import models
from mrag_eval.config import Retrieval
from mrag_eval.core import Passage, RagDoc, Retrieved
from mrag_eval.datasets import Held
from mrag_eval.platform import ConfigError
from mrag_eval.retrieval._plan import Selection
from mrag_eval.retrieval.saved._folder import RunFolder, shown_differing
from mrag_eval.retrieval.saved._manifest import ManifestEntry
from mrag_eval.retrieval.saved._settings import differing_rows, fingerprint_of
from mrag_eval.retrieval.sources._source import Lacking, Source

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

T = TypeVar("T")


class Saved(Source):
    """Read a task's rows from a run folder, in place of the ``live`` source that would find them.

    ``entry`` is the rows' entry in the folder's manifest; ``differs`` holds settings that differ on purpose.
    """

    def __init__(
        self, live: Source, folder: RunFolder, task: str, entry: ManifestEntry, differs: Mapping[str, str]
    ) -> None:
        self.folder, self.entry, self.differs = folder, entry, differs
        self._live, self._task = live, task
        # role -> the marks of the models that made the rows that were read
        self._made_by: dict[str, set[str]] = {}

    @classmethod
    def of(
        cls,
        live: Source,
        folder: RunFolder,
        task: str,
        settings: Mapping[str, Any],
        retrieval: Retrieval,
        missing: Sequence[str],
    ) -> Saved:
        """Return the rows of a task that has these ``settings``.

        Raises ConfigError, naming each setting that differs, and DataError if the task is missing. Settings in
        ``missing`` are not compared.
        """
        entry = folder.entry_for(task, fingerprint_of(settings))
        differs = differing_rows(settings, entry, missing)
        left = differing_rows(settings, entry, (*missing, *retrieval.run_may_differ))
        if left:
            raise ConfigError(
                f"{folder.name} was retrieved under other settings (here | there): {shown_differing(left)}",
                "retrieve again, or say that they differ on purpose: --metadata "
                f'\'{{"retrieval": {{"run_may_differ": {json.dumps([one.key for one in left[:3]])}}}}}\'',
            )
        if missing and retrieval.run_folder is not None:
            log.info("using saved rows from %s; could not verify (missing here): %s", folder.name, ", ".join(missing))
        values: dict[str, list[str]] = {}
        for one in differs:
            values.setdefault(one.key, []).append(one.values)
        return cls(live, folder, task, entry, {key: "; ".join(each) for key, each in values.items()})

    def select(self, docs: Sequence[RagDoc]) -> Selection:
        """Return the rows that the live source would serve."""
        return self._live.select(docs)

    def check(self, docs: Sequence[RagDoc], missing: Lacking) -> None:
        """Check the live source, as far as it is available."""
        self._live.check(docs, missing)

    def held(self, docs: Sequence[RagDoc]) -> Held:
        """Return the corpus as it was at the time of retrieval: what it lacked of each row."""
        absent = self.entry.absent
        return Held(f"the corpus of {self.folder.name}", lambda doc, name: name not in absent.get(doc.id, ()))

    def retrieve(self, docs: Sequence[RagDoc], translator: models.Translator | None = None) -> list[Retrieved]:
        """Read the rows; nothing is searched, reranked, translated or planned."""
        made = self.folder.made(self._task, self.entry, docs)
        for _, marks in made:
            for role, mark in marks.items():
                self._made_by.setdefault(role, set()).add(mark)
        return [row for row, _ in made]

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        """Return the live source's texts: a folder holds only those that are shown."""
        return self._live.passages(ids)

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the live source's passages."""
        return self._live.identity()

    def record(self) -> dict[str, Any]:
        """Return the index of this machine, else that at the time of retrieval, as the agents always are.

        The agents have the names of the models that made the rows that were read; several of a role are in a list.
        """
        saved = {"index": self.entry.index, "agent": self.entry.agent}
        known = {key: dict(value) for key, value in saved.items() if value is not None}
        named = {role: sorted({*self._made(role, names)}) for role, names in self.entry.names.items()}
        for role, names in named.items():
            known["agent"][role] = names[0] if len(names) == 1 else names
        return {**known, **self._live.record(), **{key: known[key] for key in known if key == "agent"}}

    def models(self) -> dict[str, Any]:
        """Return the models that made the rows that were read, else all of the folder; several of a role in a list."""
        found = {role: self._made(role, seats) for role, seats in self.entry.models.items()}
        return {role: made[0] if len(made) == 1 else made for role, made in found.items()}

    def _made(self, role: str, by_mark: Mapping[str, T]) -> list[T]:
        """Return what the marks of a role stand for, those alone that made rows, if any were read."""
        return [value for mark, value in sorted(by_mark.items()) if mark in self._made_by.get(role, by_mark)]

    def origin(self) -> dict[str, Any]:
        """Return the origin of these rows, for the results."""
        entry = self.entry
        out: dict[str, Any] = {"fingerprint": entry.fingerprint, "sha256": entry.sha256, "version": entry.version}
        out |= self.folder.origin()
        return out | ({"differs": dict(self.differs)} if self.differs else {})
