"""Paths of this machine, and the names of sample files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from mrag_eval.platform._errors import ConfigError

Places = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
# The words before the task in the name of a sample file; after both kinds of judging it has both of the first.
_PREFIXES = re.compile(r"^(contexts_|judged_|people_)*(samples_)?")


def task_and_date(samples: Path) -> tuple[str, str]:
    """Return the task and the date of the run in the name of a sample file."""
    stem, _, date = samples.stem.rpartition("_")
    return _PREFIXES.sub("", stem), date


def cache_dir() -> Path:
    """Return the cache folder of indexes and retrieval results: ``$MRAG_CACHE``, else ``~/.cache/mrag_eval``."""
    value = os.environ.get("MRAG_CACHE")
    return user_path(value, "MRAG_CACHE") if value else Path.home() / ".cache" / "mrag_eval"


@contextmanager
def staying_here() -> Iterator[None]:
    """Return to this folder at the end of the block, in which code of the user's may have changed to another."""
    here = Path.cwd()
    try:
        yield
    finally:
        os.chdir(here)


def user_path(text: str, key: str) -> Path:
    """Return a path that a user wrote, ``~`` replaced; raise ConfigError, naming ``key``, if there is no such user."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(f"{key}: {text}: there is no such user", "write the whole path, without ~") from None


def paths_of(places: Places) -> list[Path]:
    """Return one path or several as a list; an object with a path of its own, such as results, counts as that path."""
    listed = [places] if isinstance(places, str | os.PathLike) else places
    return [user_path(os.fspath(place), "path") for place in listed]


def name_of_model(model: str) -> str:
    """Return a model's name as results have it: a hub id as it is, of a folder on this machine its last part."""
    folder = os.path.expanduser(model)
    if not model.startswith(("/", ".", "~")) and not os.path.isdir(folder):
        return model
    try:
        return Path(folder).resolve().name
    except (OSError, ValueError):  # no path of this or any machine, in results from elsewhere
        return model


def names_of_models(models: Iterable[str]) -> dict[str, str]:
    """Return each model's name as results have it; of several with one name, all that each was called by."""
    names = {model: name_of_model(model) for model in models}
    count = Counter(names.values())
    return {model: name if count[name] == 1 else model for model, name in names.items()}


def harness_tasks_folder() -> Path | None:
    """Return the harness's own tasks folder, without importing it; None where it is not installed."""
    spec = find_spec("lm_eval")
    return Path(spec.origin).parent / "tasks" if spec is not None and spec.origin else None


def tasks_folder() -> Path:
    """Return the folder of our task files: inside the harness's (wheel), or in the source tree (editable install)."""
    harness = harness_tasks_folder()
    source = Path(__file__).resolve().parents[2] / "tasks"
    installed = harness / "mrag_eval" if harness is not None else None
    for folder in (installed, source):
        if folder is not None and (folder / "demo").is_dir():
            return folder
    raise ConfigError(
        f"the task folder is missing (looked in {installed} and {source})", "reinstall: pip install mrag-eval"
    )


def visible_to_harness(folder: Path) -> bool:
    """Return whether the stock ``lm_eval`` command finds the tasks in ``folder`` without ``--include_path``."""
    harness = harness_tasks_folder()
    return harness is not None and folder.is_relative_to(harness)


def config_path() -> Path | None:
    """Return the config file, if any.

    It is ``$MRAG_CONFIG``, else ``./mrag.yaml``, else ``~/.config/mrag_eval/config.yaml``. Raises ConfigError if
    ``$MRAG_CONFIG`` names a file that does not exist.
    """
    named = os.environ.get("MRAG_CONFIG")
    if named:
        path = user_path(named, "MRAG_CONFIG")
        if not path.is_file():
            raise ConfigError(f"$MRAG_CONFIG names {path}, which is not a file", "create it, or unset MRAG_CONFIG")
        return path
    home = Path.home() / ".config" / "mrag_eval" / "config.yaml"
    return next((p for p in (Path("mrag.yaml"), home) if p.is_file()), None)
