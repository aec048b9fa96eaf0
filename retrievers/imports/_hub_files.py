"""Files of a dataset on the hub, opened without being downloaded as a whole."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import IO, Any

from mrag_eval.platform import DataError
from mrag_eval.retrievers.corpora._hub_stream import said


@dataclass(frozen=True)
class HubSnapshot:
    """A dataset at one commit; ``files`` are the paths in it."""

    name: str
    commit: str
    files: tuple[str, ...]

    @classmethod
    def named(cls, source: str) -> HubSnapshot:
        """Return the dataset of ``hub:ORG/NAME[@REV]``; raise DataError if the hub does not give it."""
        from huggingface_hub import HfApi

        name, _, revision = source.removeprefix("hub:").partition("@")
        if name.count("/") != 1 or not all(name.split("/")):
            raise DataError(
                f"{source}: not the name of a dataset", "write it as hub:ORG/NAME, or hub:ORG/NAME@REVISION"
            )
        try:
            info = HfApi().dataset_info(name, revision=revision or None)
        except Exception as error:  # network errors depend on the client that the library uses
            offline = os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON")
            raise DataError(
                f"{source} cannot be read: {'HF_HUB_OFFLINE is set' if offline else said(error)}",
                "unset HF_HUB_OFFLINE, or name local files"
                if offline
                else "check the name, the revision and the network",
            ) from None
        return cls(name, str(info.sha), tuple(sorted(file.rfilename for file in info.siblings or ())))

    def open(self, file: str) -> IO[bytes]:
        """Open a file; only the parts that are read are downloaded."""
        from huggingface_hub import HfApi, HfFileSystem

        # file systems are kept by their arguments, and HF_ENDPOINT is none of them
        system: Any = HfFileSystem(endpoint=HfApi().endpoint)
        opened: IO[bytes] = system.open(f"datasets/{self.name}@{self.commit}/{file}", "rb")
        return opened
