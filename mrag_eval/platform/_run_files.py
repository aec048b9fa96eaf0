"""Result and sample files of a run, named as lm-evaluation-harness names them, and written whole."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from glob import escape as glob_escape
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile, mkdtemp
from typing import Any

from mrag_eval.platform._errors import ConfigError, UnwrittenError
from mrag_eval.platform._files import replaced
from mrag_eval.platform._secrets import hidden

Row = Mapping[str, Any]


def now_in_name() -> str:
    """Return the time as the names of result files have it."""
    return datetime.now().isoformat().replace(":", "-")


@dataclass(frozen=True)
class RunFiles:
    """The files of one run: their ``folder``, and the time and the first word in the result file's name.

    ``row`` gives a sample its form in the file; ``value`` does so for values that JSON does not know.
    """

    folder: Path
    stamp: str = field(default_factory=now_in_name)
    stem: str = "results"
    row: Callable[[Row], Row] = dict
    value: Callable[[Any], Any] = str

    @classmethod
    def below(cls, output_path: Path, model: str, **rest: Any) -> RunFiles:
        """Return the files that ``--output_path`` names: a folder, in which each model has its own, or a .json file."""
        if output_path.suffix == ".json":
            return cls(output_path.parent, stem=output_path.stem, **rest)
        return cls(output_path / model, **rest)

    @property
    def results(self) -> Path:
        """Return the path of the result file."""
        return self.folder / f"{self.stem}_{self.stamp}.json"

    def samples(self, task: str) -> Path:
        """Return the path of a task's samples."""
        return self.folder / f"samples_{task}_{self.stamp}.jsonl"

    def write(self, results: Mapping[str, Any], samples: Mapping[str, Iterable[Row]]) -> Path:
        """Write the samples and then the results, with known secrets hidden in their texts; return the result file.

        If the folder cannot take them, or does not give back what was written, they are written to a new folder for
        temporary files, and UnwrittenError is raised, which names both folders.
        """
        try:
            self._write(results, samples)
        except OSError as error:
            where = error.filename or self.folder
            raise _rescued(self, results, samples, f"{where}: {error.strerror or error}") from None
        return self.results

    def _write(self, results: Mapping[str, Any], samples: Mapping[str, Iterable[Row]]) -> None:
        for task, rows in samples.items():
            lines = (f"{self._json(self.row(row))}\n" for row in rows)
            _write_lines(self.samples(task), lines, f"samples_{glob_escape(task)}_*")
        if results:
            _write_lines(self.results, [self._json(results, indent=2)], f"{glob_escape(self.stem)}_*")

    def _json(self, content: Mapping[str, Any], indent: int | None = None) -> str:
        return json.dumps(hidden(content, self.value), ensure_ascii=False, indent=indent, default=self.value)

    def missing(self, samples: Mapping[str, int]) -> list[str]:
        """Return the tasks, of those named with their number of rows, whose samples are not on disk to the last one."""
        return [task for task, rows in samples.items() if _count_rows(self.samples(task)) != rows]

    def has_results(self) -> bool:
        """Return whether the result file is on disk and readable."""
        try:
            return bool(json.loads(self.results.read_bytes()))
        except (OSError, ValueError):
            return False


def _write_lines(path: Path, lines: Iterable[str], family: str) -> None:
    """Write the lines. Raises OSError if the file does not give them back."""
    written = sha256()
    with replaced(path, family) as part, part.open("wb") as out:
        for line in lines:
            # half a surrogate pair, which a model may write, becomes a JSON escape
            content = line.encode("utf-8", "backslashreplace")
            written.update(content)
            out.write(content)
        out.flush()
        # some file systems report a full disk only now
        os.fsync(out.fileno())
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    if found.digest() != written.digest():
        raise OSError(errno.EIO, "what was written there cannot be read back", str(path))


def _count_rows(path: Path) -> int | None:
    try:
        with path.open("rb") as lines:
            return sum(isinstance(json.loads(line), dict) for line in lines)
    except (OSError, ValueError):
        return None


def _rescued(
    files: RunFiles, results: Mapping[str, Any], samples: Mapping[str, Iterable[Row]], why: str
) -> UnwrittenError:
    """Write to a temporary folder; return the error to raise."""
    message = f"results could not be written to {files.folder} ({why})"
    again = "the scores are printed above; run again with another --output_path: finished calls are read from the cache"
    try:
        rescue = replace(files, folder=Path(mkdtemp(prefix="mrag_eval_results_")))
        rescue._write(results, samples)
    except OSError as error:
        return UnwrittenError(f"{message}, nor to the folder for temporary files ({error.strerror or error})", again)
    return UnwrittenError(f"{message}: they are in {rescue.folder}", f"move them: mv {rescue.folder}/* FOLDER")


def check_output(path: Path, name: str) -> None:
    """Raise ConfigError if no result file can be written below ``path``, which ``name`` set; nothing is made."""
    _check_room(path.parent if path.suffix == ".json" else path, path, f"{name} FOLDER")


def check_output_file(path: Path, name: str) -> None:
    """Raise ConfigError if the file ``path``, which ``name`` set, cannot be written; nothing is made."""
    _check_room(path.parent, path, f"{name} FILE")
    if path.is_dir():
        raise ConfigError(f"{name} {path}: a folder, not a file", f"name a file in it: {name} {path}/FILE")
    if path.exists() and not path.is_file():
        # written files take the place of what was there, a device too
        raise ConfigError(f"{name} {path}: a device or pipe, not a file", f"name a file: {name} FILE")


def _check_room(folder: Path, path: Path, example: str) -> None:
    try:
        there = next(one for one in (folder, *folder.parents) if one.exists())
        # without a name: one with a name stays behind on a full disk
        with TemporaryFile(dir=there) as file:
            file.write(b"?" * 4096)
    except OSError as error:
        raise ConfigError(
            f"{example.split()[0]} {path}: nothing can be written there ({error.strerror or error})",
            f"name a place that can be written to, with space on its disk: {example}",
        ) from None


def check_file_name(name: str, what: str) -> None:
    """Raise ConfigError for a name that cannot be a part of a file's name."""
    if name in ("", ".", "..") or len(name.encode("utf-8", "replace")) > _LONGEST or not name.isprintable():
        fault = "is empty, too long, or holds characters that cannot be printed"
    elif "/" in name or "\\" in name:
        fault = "holds a slash"
    else:
        return
    raise ConfigError(f"{what} {name!r:.80} cannot be part of a file's name: it {fault}", "give it another name")


# of 255 bytes: the rest is for what files put before and after the name
_LONGEST = 160
