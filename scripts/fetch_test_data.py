"""Fetch the public benchmark files that the tests read: ``python scripts/fetch_test_data.py DIR``.

Every file comes from its own repository at a fixed commit (list: ``test_data.json`` next to this script) and is checked
against its SHA-256 where that is known. Correct files that already exist are left alone, so an interrupted run
continues. Needs only Python's standard library.

Exit codes: 0 everything is there, 1 something is missing or wrong.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = Path(__file__).resolve().parent / "test_data.json"
BASE_URL = "https://raw.githubusercontent.com"
_TRIES = 3
_TIMEOUT = 60


class FetchError(Exception):
    """A file that could not be fetched or has the wrong content."""


class UnreachableError(FetchError):
    """The host does not answer, so no other file will arrive either."""


@dataclass(frozen=True)
class File:
    """One file: ``path`` is its place in the target folder, ``sha256`` that of the decompressed content, or None."""

    path: str
    repository: str
    commit: str
    upstream: str
    sha256: str | None

    def url(self, base: str) -> str:
        """Return its address under ``base``, laid out as ``<base>/<repository>/<commit>/<upstream path>``."""
        return "/".join([base.rstrip("/"), self.repository, self.commit, urllib.parse.quote(self.upstream)])


def read_manifest(path: Path = MANIFEST) -> tuple[list[File], list[dict[str, str]]]:
    """Return the files to fetch, and the files that the tests read but no public repository has."""
    manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    files = [
        File(
            f"{source['folder']}/{entry['path']}",
            source["repository"],
            source["commit"],
            entry["upstream"],
            entry["sha256"],
        )
        for source in manifest["sources"]
        for entry in source["files"]
    ]
    return files, manifest["not_public"]


def content(raw: bytes, name: str) -> bytes:
    """Return the bytes to hash: the content itself, decompressed for ``*.gz``."""
    try:
        return gzip.decompress(raw) if name.endswith(".gz") else raw
    except (OSError, EOFError, zlib.error) as error:
        raise FetchError(f"{name}: not readable as gzip ({error})") from None


def fault(file: File, folder: Path) -> str | None:
    """Return the fault of the copy in ``folder``, or None."""
    target = folder / file.path
    if not target.is_file():
        return "missing"
    try:
        found = content(target.read_bytes(), file.path)
    except FetchError as error:
        return str(error)
    if not found:
        return "empty"
    if file.sha256 is not None and hashlib.sha256(found).hexdigest() != file.sha256:
        return "differs from the published file (SHA-256)"
    return None


def fetch(file: File, folder: Path, base: str) -> None:
    """Download one file, check it, and rename it into place."""
    raw = download(file.url(base))
    compress = file.path.endswith(".gz") and not file.upstream.endswith(".gz")
    found = raw if compress else content(raw, file.path)
    if not found:
        raise FetchError(f"{file.path}: {file.url(base)} is empty")
    digest = hashlib.sha256(found).hexdigest()
    if file.sha256 is not None and digest != file.sha256:
        raise FetchError(f"{file.path}: {file.url(base)} has SHA-256 {digest}, expected {file.sha256}")
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    # mtime=0: the same content gives the same file
    part.write_bytes(gzip.compress(raw, mtime=0) if compress else raw)
    os.replace(part, target)


def download(url: str) -> bytes:
    """Return the content of ``url``; retry failures that may pass."""
    for attempt in range(1, _TRIES + 1):
        try:
            with urllib.request.urlopen(url, timeout=_TIMEOUT) as reply:
                body: bytes = reply.read()
                return body
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise FetchError(f"{url}: HTTP {error.code} {error.reason}") from None
            reason = f"HTTP {error.code}"
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            reason = str(getattr(error, "reason", error))
            if url.startswith("file:"):
                raise FetchError(f"{url}: {reason}") from None
        if attempt < _TRIES:
            time.sleep(2**attempt)
    raise UnreachableError(f"{url}: {reason} (no network, or the host is down: run the same command again)")


def run(folder: Path, *, base: str, check: bool, files: list[File]) -> Iterator[str]:
    """Fetch (or only check) every file; yield one line for each that is missing or wrong afterwards."""
    for number, file in enumerate(files, start=1):
        wrong = fault(file, folder)
        if wrong is None:
            continue
        if check:
            yield f"{file.path}: {wrong}"
            continue
        print(f"[{number}/{len(files)}] {file.path}", file=sys.stderr)
        try:
            fetch(file, folder, base)
        except UnreachableError as error:
            yield str(error)
            yield from (f"{later.path}: not tried" for later in files[number:] if fault(later, folder))
            return
        except FetchError as error:
            yield str(error)


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line; see the module's docstring."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument("--check", action="store_true", help="download nothing, say what is missing or wrong")
    parser.add_argument("--only", metavar="NAME", help="one folder of the list (xquad, click, ...)")
    parser.add_argument("--base-url", default=BASE_URL, help=f"a mirror laid out like {BASE_URL}")
    given = parser.parse_args(arguments)
    files, not_public = read_manifest()
    folders = sorted({file.path.partition("/")[0] for file in files})
    if given.only is not None and given.only not in folders:
        parser.error(f"--only {given.only}: there is {', '.join(folders)}")
    files = [file for file in files if given.only in (None, file.path.partition("/")[0])]
    wrong = list(run(given.folder, base=given.base_url, check=given.check, files=files))
    for line in wrong:
        print(line)
    unhashed = sum(file.sha256 is None for file in files)
    print(
        f"{len(files) - len(wrong)} of {len(files)} files are there ({unhashed} pinned by commit alone, without a hash)"
    )
    if wrong:
        return 1
    print("not in any public repository, so the tests that read them are skipped:")
    for entry in not_public:
        print(f"  {entry['path']}: {entry['what']}")
    print(f"now: export MRAG_TEST_DATA={given.folder.resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
