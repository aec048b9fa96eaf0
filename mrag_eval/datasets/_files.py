"""Reading of benchmark files: plain or gzip-compressed, from disk or from the Hugging Face hub, with actionable
errors.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import os
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from mrag_eval.platform import (
    CUT_OFF,
    DataError,
    Wait,
    cache_dir,
    check_unique,
    decode,
    filled_lines,
    json_from,
    json_line,
    lines_of,
    no_file,
    readable,
    regular,
    replaced,
    told_apart,
    whole,
)

# Characters of the longest cell of a CSV file.
LONGEST_CELL = 16 << 20
_COMMIT = re.compile(r"[0-9a-f]{40}")


def require_path(path: Path, benchmark: str) -> Path:
    """Return ``path`` if it exists, else raise a DataError that names its key."""
    if not path.exists():
        raise DataError(
            f"{benchmark}: data.path={path} does not exist",
            "give the file or folder of a local copy: --metadata data.path=PATH",
        )
    return path


def file_in(path: Path, names: Sequence[str], where: str, next_step: str) -> Path:
    """Return ``path`` if it is a file, else the first of ``names`` in this folder; raise DataError if it has none.

    ``where`` begins the error, such as ``xrag: FOLDER``.
    """
    if not path.is_dir():
        return path
    found = next((path / name for name in names if (path / name).is_file()), None)
    if found is None:
        raise DataError(f"{where} has no file {names[0]}", next_step)
    return found


def open_bytes(path: Path) -> BinaryIO | gzip.GzipFile:
    """Open a file for reading, decompressing ``*.gz``. Raises DataError where there is none to read, or a pipe."""
    try:
        return gzip.open(regular(path), "rb") if path.suffix == ".gz" else regular(path).open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be opened ({error.strerror or error})", "name a readable file") from None


def read_bytes(path: Path) -> bytes:
    """Return the (decompressed) content of a file."""
    try:
        with open_bytes(path) as handle:
            return whole(handle, path)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error})", CUT_OFF) from None


def read_json(path: Path) -> tuple[Any, str]:
    """Return the value of a JSON file and the SHA-256 of its (decompressed) content.

    The parsed value is shared: do not change it.
    """
    status = path.stat() if path.is_file() else None
    if status is None:
        raise DataError(f"{path}: {no_file(path)}", "name a JSON file that is there")
    return _read_json(path, status.st_mtime_ns, status.st_size)


# Leaves of one group read the same files in succession.
@lru_cache(maxsize=64)
def _read_json(path: Path, _mtime_ns: int, _size: int) -> tuple[Any, str]:
    raw = read_bytes(path)
    return json_from(decode(raw, str(path)), str(path)), hashlib.sha256(raw).hexdigest()


def iter_jsonl(
    path: Path, read: Collection[str] | None = None, *, nan: bool = False, tolerant: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield (line number from 1, record) of a JSON Lines file, streamed; blank lines are skipped.

    Only keys that are ``read`` must come once, by default all. With ``nan``, ``NaN`` is a missing value; if
    ``tolerant``, the DataError of a line that is no record is yielded in its place.
    """
    for number, raw in filled_lines(open_bytes(path), path):
        try:
            yield number, json_line(raw, f"{path}, line {number}", lax="NaN" if nan else "", read=read)
        except DataError as error:
            if not tolerant:
                raise
            yield number, error


def sha256_file(path: Path) -> str:
    """Return the SHA-256 of a file's (decompressed) content, streamed."""
    digest = hashlib.sha256()
    with readable(path, CUT_OFF), open_bytes(path) as handle:
        while block := handle.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def iter_csv(
    path: Path, columns: Iterable[str], delimiter: str | None = ",", *, tolerant: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield (row number from 1, record) of a CSV file with a header, streamed; columns beyond ``columns`` are allowed.

    Without a ``delimiter``, the head tells it. If ``tolerant``, the DataError of a row with other columns is yielded in
    its place.
    """
    # one prompt may exceed csv's default limit of 128 KiB per cell
    csv.field_size_limit(LONGEST_CELL)
    try:
        with io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="") as handle:
            lines = lines_of(handle, path)
            if delimiter is None:
                head = next(lines, "")
                delimiter = max(",;\t|", key=lambda mark: len(next(csv.reader([head], delimiter=mark), ())))
                lines = itertools.chain([head], lines)
            reader = csv.DictReader(lines, delimiter=delimiter)
            for name in columns:
                if name not in (reader.fieldnames or ()):
                    found = ", ".join(reader.fieldnames or ()) or "none"
                    raise DataError(f"{path}: column '{name}' is missing; found: {found}")
            check_unique(reader.fieldnames or (), columns, path)
            reader.fieldnames = told_apart(reader.fieldnames or ())
            for number, row in enumerate(reader, start=1):
                if not (None in row or None in row.values()):
                    yield number, row
                    continue
                wrong = DataError(f"{path}, row {number}: {len(reader.fieldnames or ())} columns expected", _ROW)
                if not tolerant:
                    raise wrong
                yield number, wrong
    except UnicodeDecodeError:
        decode(read_bytes(path), str(path))
        raise
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise DataError(f"{path}: cannot be read ({error})", CUT_OFF) from None


_ROW = "correct that row, or leave it out; a cell with a separator is in quotes"


@contextmanager
def parquet(path: Path) -> Iterator[Any]:
    """Open a file as ``pyarrow.parquet.ParquetFile``; raise DataError if it, or what the block reads of it, is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]})", CUT_OFF) from None


def read_squad(path: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the questions of a file of SQuAD v1.1, in the form of the hub's rows, and its SHA-256."""
    from mrag_eval.retrievers import squad_paragraphs

    value, digest = read_json(path)
    try:
        rows = [
            {
                "id": question["id"],
                "title": record["title"],
                "context": record["text"],
                "paragraph": record["id"],
                "question": question["question"],
                "answers": {"text": [answer["text"] for answer in question["answers"]]},
            }
            for _, record, questions in squad_paragraphs(value, str(path))
            for question in questions
        ]
    except (KeyError, TypeError) as error:
        raise DataError(f"{path}: not SQuAD v1.1 JSON (missing {error})") from None
    if not rows:
        raise DataError(f"{path}: holds no question")
    return rows, digest


def require_columns(row: Mapping[str, Any], columns: Iterable[str], where: str, step: str | None = None) -> None:
    """Raise DataError naming the first of ``columns`` that ``row`` lacks, with the next ``step``."""
    for name in columns:
        if name not in row:
            raise DataError(f"{where}: key '{name}' is missing; found: {', '.join(map(str, row)) or 'none'}", step)


def require_text(value: Any, where: str, key: str) -> str:
    """Return ``value`` if it is a non-empty string, else raise DataError."""
    if not isinstance(value, str):
        raise DataError(f"{where}: '{key}' must be text, found {type(value).__name__}")
    if not value.strip():
        raise DataError(f"{where}: '{key}' is empty")
    return value


def hub_dataset(
    benchmark: str,
    repo: str,
    config: str | None,
    split: str,
    revision: str | None,
    columns: Sequence[str],
    key: str = "data.path",
) -> Any:
    """Load a split of a hub dataset and check its columns.

    A failure becomes a DataError with the offline alternative; ``key`` is the setting for a local copy.
    """
    where = f"{repo}" + (f", config {config}" if config else "") + f", split {split}"
    with _fetching(benchmark, f"the Hugging Face hub did not give {where}", key):
        # progress bars and warnings of ``datasets`` are the caller's to configure
        from datasets import load_dataset

        dataset = load_dataset(repo, config, split=split, revision=revision)
    for name in columns:
        if name not in dataset.column_names:
            raise DataError(
                f"{benchmark}: {where}: column '{name}' is missing; found: {', '.join(dataset.column_names)}"
            )
    return dataset


def hub_file(benchmark: str, repo: str, filename: str, revision: str | None) -> Path:
    """Return a file of a hub dataset repository, downloaded once into the hub's own cache."""
    with _fetching(benchmark, f"the Hugging Face hub did not give {repo}, file {filename}"):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(repo, filename, repo_type="dataset", revision=revision))


def web_file(benchmark: str, url: str, key: str = "data.path") -> Path:
    """Return a file of a benchmark's own site, downloaded once into the cache of ``datasets`` and decompressed."""
    with _fetching(benchmark, f"{url} could not be downloaded", key):
        from datasets import DownloadManager

        return Path(DownloadManager().download_and_extract(url))


BASE_URL = "https://raw.githubusercontent.com"
_TIMEOUT = 60
_PART = 1 << 20


def github_file(benchmark: str, repository: str, commit: str, path: str) -> Path:
    """Return the file ``path`` of a repository (``owner/name``) at a commit, cached or downloaded into the cache.

    Raises DataError with the offline alternative. Under ``HF_HUB_OFFLINE`` nothing is downloaded.
    """
    import urllib.parse
    import urllib.request

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


def commit_of(read: Any) -> str | None:
    """Return the commit of a hub dataset, or of a file or folder in the hub's cache; None if it does not tell."""
    if isinstance(read, Path):
        named = [part for before, part in itertools.pairwise(read.parts) if before == "snapshots"]
        return next((part for part in named if _COMMIT.fullmatch(part)), None)
    files = getattr(getattr(read, "info", None), "download_checksums", None) or ()
    found = (_COMMIT.search(str(name).partition("@")[2]) for name in files)
    return next((match[0] for match in found if match), None)


def hub_place(repo: str, revision: str | None, read: Any, **more: str | None) -> dict[str, Any]:
    """Return the place of rows on the hub: the revision asked for, and the commit that ``read`` came from."""
    commit = commit_of(read)
    return {"hub": repo, **more, "revision": revision, **({"commit": commit} if commit else {})}


def is_script_refusal(error: DataError) -> bool:
    """Return whether the hub dataset failed because it is a loading script, which ``datasets`` no longer runs."""
    return "scripts are no longer supported" in str(error.__cause__)


def hub_folder(benchmark: str, repo: str, patterns: Sequence[str], revision: str | None) -> Path:
    """Return the folder with the matching files of a hub dataset repository, in the hub's own cache."""
    with _fetching(benchmark, f"the Hugging Face hub did not give {repo}, files {', '.join(patterns)}"):
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(repo, repo_type="dataset", revision=revision, allow_patterns=list(patterns)))


@contextmanager
def _fetching(benchmark: str, what: str, key: str = "data.path") -> Iterator[None]:
    """Raise DataError if the block fails; ``what`` says at what, and ``key`` is the setting of a local copy."""
    try:
        yield
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise DataError(
            f"{benchmark}: {what} ({type(error).__name__}" + (f": {reason[0][:200]})" if reason else ")"),
            f"go online (unset HF_HUB_OFFLINE), or use a local copy of the files: --metadata {key}=PATH",
        ) from error


def unique_ids(ids: Sequence[str]) -> tuple[list[str], int]:
    """Make ids unique: the second ``x`` becomes ``x~2``, and so on. Return them and the number changed."""
    seen: dict[str, int] = {}
    out = []
    for name in ids:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}~{seen[name]}")
    return out, sum(count - 1 for count in seen.values())
