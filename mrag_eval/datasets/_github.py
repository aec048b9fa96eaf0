"""Files of public GitHub repositories, pinned by commit and fetched once."""

from __future__ import annotations

import os
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from mrag_eval.platform import DataError, Wait, cache_dir, replaced, whole

BASE_URL = "https://raw.githubusercontent.com"
_TIMEOUT = 60
_PART = 1 << 20


def github_file(benchmark: str, repository: str, commit: str, path: str) -> Path:
    """Return the file ``path`` of a repository (``owner/name``) at a commit, cached or downloaded into the cache.

    Raises DataError with the offline alternative. Under ``HF_HUB_OFFLINE`` nothing is downloaded.
    """
    target = cache_dir() / "github" / repository / commit / path
    if target.is_file():
        return target
    way_out = f"go online, or use a copy of github.com/{repository}: --metadata data.path=FOLDER"
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() in ("1", "true", "yes", "on"):
        raise DataError(f"{benchmark}: {repository}, file {path}: not in the cache, and HF_HUB_OFFLINE is set", way_out)
    url = f"{BASE_URL}/{repository}/{commit}/{urllib.parse.quote(path)}"
    try:
        with (
            Wait(f"downloading {path} from github.com/{repository}", unit="MB") as wait,
            urllib.request.urlopen(url, timeout=_TIMEOUT) as response,
        ):
            size = response.headers.get("Content-Length") or ""
            wait.total = -(-int(size) // _PART) if size.isdigit() else None
            content = whole(_Counted(response, wait), Path(path))
    except (OSError, ValueError) as error:
        raise DataError(f"{benchmark}: GitHub did not give {repository}, file {path} ({error})", way_out) from None
    with replaced(target) as part:
        part.write_bytes(content)
    return target


class _Counted:
    """A response whose megabytes are counted as they arrive."""

    def __init__(self, response: Any, wait: Wait) -> None:
        self._response, self._wait = response, wait

    def read(self, size: int) -> bytes:
        content = bytearray()
        while part := self._response.read(min(_PART, size - len(content))):
            content += part
            self._wait.add()
        return bytes(content)
