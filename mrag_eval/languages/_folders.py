"""Where files of languages are: in the package, and in a folder of the user's."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Final

from mrag_eval.core import is_language, normalize_language, suggestion
from mrag_eval.platform import ConfigError, config_path, read_yaml, user_path

PACKAGE: Final = Path(__file__).parent / "files"


class Files(dict[str, tuple[Path, ...]]):
    """The files of each language by its code, which nobody changes: what is read from them can be kept for them."""

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def files_of_languages() -> Files:
    """Return the files of each language, the package's before the user's, by BCP 47 code, sorted.

    The user's folder is the value of ``languages`` in the config file; a relative one starts at the working folder.

    Raises:
        ConfigError: the folder does not exist, or a file's name is not a language code.
    """
    # the config file depends on these two; neither changes in a run
    return _files(os.environ.get("MRAG_CONFIG"), os.getcwd())


@lru_cache(maxsize=8)
def _files(_config: str | None, _working_folder: str) -> Files:
    found = {path.stem: (path,) for path in PACKAGE.glob("*.yaml")}
    folder = _user_folder()
    for path in () if folder is None else sorted(folder.glob("*.y*ml")):
        code = _code_of(path)
        found[code] = (*found.get(code, ()), path)
    return Files(sorted(found.items()))


def _user_folder() -> Path | None:
    path = config_path()
    named = None if path is None else read_yaml(path).get("languages")
    if named is None:
        return None
    folder = user_path(str(named), f"{path}, languages").absolute()
    if not folder.is_dir():
        raise ConfigError(f"{path}, languages: {folder} is not a folder", "create it, or leave the key out")
    return folder


def _code_of(path: Path) -> str:
    if not is_language(path.stem):
        raise ConfigError(f"{path}: '{path.stem}' is not a language code", suggestion(path.stem))
    code = normalize_language(path.stem)
    if path.name != f"{code}.yaml":
        raise ConfigError(f"{path}: the file of this language is {code}.yaml", "rename it")
    return code
