"""Run folders on the hub: the files that a task needs, at one commit, checked as files of strangers."""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.platform import LONGEST_FILE, DataError, HubPlace, hub_file, name_fault, user_path
from mrag_eval.retrieval.saved._folder import RunFolder
from mrag_eval.retrieval.saved._manifest import MANIFEST, ManifestEntry, read_manifest
from mrag_eval.retrieval.saved._settings import fingerprint_of

# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

# Bytes of the largest file of rows that is downloaded unasked.
LARGEST = 8 << 30
_OTHER = "name another revision after the @, or ask its owner to push it again"


class HubFolder(RunFolder):
    """Open a run folder in a dataset of the hub, to read only.

    ``name`` is the dataset at its commit, also if ``place`` names a tag, or no revision at all. The manifest is read at
    once, and a task's file when its rows are.
    """

    remedy = _OTHER

    def __init__(self, place: HubPlace) -> None:
        """Raise DataError, in one line, if there is no such dataset, revision or manifest, or the hub is not there."""
        pushed = "a run folder is pushed by: mrag-eval retrieve --tasks ... -o FOLDER --push hub:ORG/NAME"
        manifest, commit = hub_file(place, MANIFEST, LONGEST_FILE, pushed)
        self.path = manifest.parent
        self.asked, self.place = place, place.at(commit)
        self.name = str(self.place)
        self.tasks = read_manifest(manifest, f"{self.name}: {MANIFEST}", name_fault)

    def entry_for(self, task: str, fingerprint: str) -> ManifestEntry:
        """Return the task's rows. Raise DataError if they were not finished, or if the entry contradicts itself."""
        entry = super().entry_for(task, fingerprint)
        if entry.sha256 is None:
            raise DataError(f"{self.name}: the rows of task {task} were pushed before they were complete", _OTHER)
        if fingerprint_of(entry.settings) != entry.fingerprint:
            raise DataError(f"{self.name}: the fingerprint of task {task} is not that of its settings", _OTHER)
        return entry

    def located(self, entry: ManifestEntry) -> tuple[Path, str]:
        """Return the file of a task's rows, downloaded once."""
        return hub_file(self.place, entry.file, LARGEST, self.remedy)[0], f"{self.name}: {entry.file}"

    def command(self, task: str) -> str:
        """Return the command that retrieves for a task on this machine."""
        return f"mrag-eval retrieve --tasks {task} -o FOLDER"

    def origin(self) -> dict[str, Any]:
        """Return repository and commit, and the revision that was asked for if it is another name of the commit."""
        asked = self.asked.revision
        named = {"revision": asked} if asked not in (None, self.place.revision) else {}
        return {"repository": self.place.repo, "commit": self.place.revision, **named}


def run_folder_at(text: str) -> RunFolder:
    """Return the run folder on this machine, or in a dataset of the hub (``hub:ORG/NAME@REVISION``).

    Raises DataError if there is none.
    """
    place = HubPlace.named(text, "retrieval.run_folder")
    if place is None:
        return RunFolder.existing(user_path(text, "retrieval.run_folder"))
    return _opened(place, os.environ.get("HF_ENDPOINT"), os.environ.get("HF_HOME"))


# The tasks of a run take their rows from the same commit, even if something is pushed in between.
@lru_cache(maxsize=16)
def _opened(place: HubPlace, _endpoint: str | None, _home: str | None) -> HubFolder:
    folder = HubFolder(place)
    if place.revision is None:
        log.warning(
            "retrieval.run_folder: %s is read at commit %s; to read the same rows later, name it: %s",
            place, folder.place.revision, folder.name,
        )  # fmt: skip
    return folder
