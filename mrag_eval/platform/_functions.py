"""Code of the user's: named in a task's YAML, as ``module:name``, or by an installed package.

Here alone the package imports what a name says. A name that a file brought from elsewhere imports nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import marshal
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from mrag_eval.platform._errors import ConfigError, did_you_mean

_FORMS = "name it as !function module.name, as module:name, or by the entry point of an installed package"
_OWN_PACKAGE = __name__.partition(".")[0]
# Functions that load a module by its name, and those that load code in another way.
_BY_NAME = ("import_module", "__import__")
_LOADERS = (*_BY_NAME, "exec", "run_path", "run_module", "spec_from_file_location", "load_module")
# The file that the names under way come from; None: they are the user's.
_READ_BACK: ContextVar[Path | None] = ContextVar("names from a file", default=None)


@contextmanager
def reading_back(file: Path) -> Iterator[None]:
    """Refuse to import code while the block runs: the names in it are those of ``file``, not the user's.

    What an installed package offers under a name (:func:`entry_point`) is the user's all the same.
    """
    token = _READ_BACK.set(file)
    try:
        yield
    finally:
        _READ_BACK.reset(token)


def refuse_named_by_a_file(named: str, where: str) -> None:
    """Raise ConfigError for code, and for a variable of the environment, inside :func:`reading_back`."""
    file = _READ_BACK.get()
    if file is not None:
        kind, done = ("variable", "reads") if named.startswith("{") else ("code", "runs")
        raise ConfigError(
            f"{where}: {file} names the {kind} '{named}', and a file from elsewhere {done} none", "name it yourself"
        )


class FunctionName(str):
    """The name behind the tag ``!function`` of a YAML file, and the folder of that file."""

    folder: Path

    @classmethod
    def beside(cls, name: str, folder: Path) -> FunctionName:
        """Return the name ``module.name``; its module is looked for in the folder first."""
        found = cls(name)
        found.folder = folder
        return found


@dataclass(frozen=True)
class OwnFunction:
    """A function of the user's.

    Attributes:
        name: its name, or that of its entry point.
        call: the function.
        identity: what it is: its name with its module, the hash of its source, and its package with the version.
        place: its module in full, which is a path for one beside a YAML file.
    """

    name: str
    call: Callable[..., Any]
    identity: Mapping[str, str]
    place: str


def own_function(named: Any, group: str, where: str) -> OwnFunction:
    """Return the function that is meant: one that is loaded, a :class:`FunctionName`, ``module:name``, an entry point.

    ``group`` is that of the entry points. Raises ConfigError, starting with ``where``, for one that is not there.
    """
    if callable(named):
        return _described(named, getattr(named, "__name__", ""), {}, where)
    if "/" in str(named) and ":" not in str(named):
        # as the harness writes a function that it has not loaded: the folder, and module.name
        named = FunctionName.beside(Path(named).name, Path(named).parent)
    if isinstance(named, FunctionName) or ":" in str(named):
        return _described(own_object(named, where)[0], str(named).rpartition(_before_name(named))[2], {}, where)
    found = entry_point(str(named), group)
    if found is None:
        raise ConfigError(f"{where}: there is no '{named}' among the entry points of '{group}'", _FORMS)
    package = {} if found.dist is None else {"package": f"{found.dist.name} {found.dist.version}"}
    try:
        return _described(found.load(), found.name, package, where)
    except (Exception, SystemExit) as error:  # a package may raise anything while it is imported
        raise ConfigError(f"{where}: '{named}' cannot be loaded: {said_by(error):.200}", _FORMS) from None


def own_object(named: str, where: str) -> tuple[Any, Path | None]:
    """Return what ``module:name``, ``file.py:name`` or a :class:`FunctionName` says, and the file of its module.

    Raises ConfigError, starting with ``where``, if there is no such thing, if its module cannot be imported, and for
    every name inside :func:`reading_back`.
    """
    module_name, _, name = named.rpartition(_before_name(named))
    if not module_name:
        raise ConfigError(f"{where}: '{named}' names no function in a module", "name it MODULE:NAME, or FILE.py:NAME")
    refuse_named_by_a_file(named, where)
    here = Path.cwd()
    try:
        if isinstance(named, FunctionName):
            module = _module(module_name, named.folder)
        else:
            # modules beside it are found as well
            if "" not in sys.path and str(here) not in sys.path:
                sys.path.append(str(here))
            in_file = module_name.endswith(".py") or "." not in module_name
            module = _module(module_name, here) if in_file else importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a module of the user's may raise anything while it is imported
        raise ConfigError(
            f"{where}: {module_name} cannot be imported ({said_by(error):.200})",
            "run in the folder of the module, or name its file: FILE.py:NAME",
        ) from error
    if not hasattr(module, name):
        known = [there for there in vars(module) if not there.startswith("_")]
        raise ConfigError(f"{where}: {module_name} has no '{name}'{did_you_mean(name, known)}")
    found = getattr(module, "__file__", None)
    return getattr(module, name), None if found is None else Path(found)


def code_beside(file: Path | None) -> dict[str, str] | None:
    """Return the hash of each module from a file's folder and the folders below it, by its path there.

    These are the loaded ones, and those that they import, though it be only when a function is called. Modules of this
    package, of Python and of installed packages are left out. One that loads code by a name which it computes has the
    hash ``not fully known`` before its own. None if no file is there, as for what a notebook defines.
    """
    if file is None or not file.is_file():
        return None
    folder = file.resolve().parent
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")]
    loaded = ((name, getattr(module, "__file__", None)) for name, module in [*sys.modules.items()])
    # thousands of modules lie in hundreds of folders, and to resolve a path asks the disk
    within = cache(lambda home: Path(home).resolve().is_relative_to(folder))
    places = (place for name, place in loaded if place and name.partition(".")[0] != _OWN_PACKAGE)
    left = [file, *(Path(place) for place in places if within(os.path.dirname(place)))]
    found: dict[str, str] = {}
    while left:
        path = left.pop().resolve()
        if not path.is_relative_to(folder) or path.relative_to(folder).as_posix() in found:
            continue
        if path.is_file() and not any(map(path.is_relative_to, installed)):
            text = path.read_bytes()
            named = _imported(text, path.parent, folder)
            known = "" if None not in named else "not fully known: "
            found[path.relative_to(folder).as_posix()] = known + sha256(text).hexdigest()
            left += filter(None, named)
    return dict(sorted(found.items()))


def _imported(text: bytes, beside: Path, folder: Path) -> list[Path | None]:
    """Return where the modules that a module names are, if they are in its folder or in ``folder``.

    They are named in its imports, or as a text in a call of ``import_module``. None is among them if a call loads code
    by a name that it computes.
    """
    found: list[Path | None] = []
    with suppress(SyntaxError, ValueError, IndexError):
        for node in ast.walk(ast.parse(text)):
            level = 0
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names, level = [".".join(filter(None, (node.module, alias.name))) for alias in node.names], node.level
            elif isinstance(node, ast.Call) and (by := ast.unparse(node.func).rpartition(".")[2]) in _LOADERS:
                named = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else None
                if not isinstance(named, str) or by not in _BY_NAME:
                    found.append(None)
                    continue
                names, level = [named.lstrip(".")], len(named) - len(named.lstrip("."))
            else:
                continue
            starts = {[beside, *beside.parents][level - 1]} if level else {folder, beside}
            for parts in (name.split(".") for name in names if name.partition(".")[0] != _OWN_PACKAGE):
                for start in starts:
                    for end in range(1, len(parts) + 1):
                        place = start.joinpath(*parts[:end])
                        found += [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    return found


def _before_name(named: str) -> str:
    return "." if isinstance(named, FunctionName) else ":"


def said_by(error: BaseException) -> str:
    """Return an error of the user's code in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def entry_point(name: str, group: str) -> EntryPoint | None:
    """Return what an installed package calls by that name in the group; None if none does."""
    return next(iter(entry_points(group=group, name=name)), None)


def _module(name: str, folder: Path) -> Any:
    """Return a module: that file of the folder, whether ``name`` or ``file.py``, else the installed one of that name.

    It is loaded again if its text has changed.
    """
    path = name if name.endswith(".py") else f"{name.replace('.', '/')}.py"
    file = (folder / path).resolve()
    if not name or not (file.is_file() or path == name):
        return importlib.import_module(name)
    # not by way of bytecode, which may be that of a text of the same second and length
    text = file.read_bytes()
    # as the harness names what it loads for a task's YAML
    key, read = str(file.with_suffix("")), sha256(text).hexdigest()
    before = sys.modules.get(key)
    if getattr(before, "__text__", None) == read:
        return before
    spec = importlib.util.spec_from_file_location(key, file)
    assert spec is not None, file
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__text__"] = read
    # a dataclass looks its module up while it is made
    sys.modules[key] = module
    try:
        exec(compile(text, str(file), "exec"), module.__dict__)
    except BaseException:
        del sys.modules[key]
        raise
    return module


def _described(call: Any, name: str, package: Mapping[str, str], where: str) -> OwnFunction:
    if not callable(call) or not name:
        raise ConfigError(f"{where}: {name or call!r} is not a function", "name a function, or an object with a name")
    code = call if hasattr(call, "__qualname__") else type(call)
    full = f"{Path(str(code.__module__)).name}.{code.__qualname__}"
    identity = {"function": full, "sha256": _source_hash(inspect.unwrap(code)), **package}
    return OwnFunction(name, call, identity, str(code.__module__))


def _source_hash(code: Any) -> str:
    """Return the hash of the file that holds the code; in a notebook or script, of the code itself."""
    try:
        if code.__module__ != "__main__" and (file := inspect.getsourcefile(code)) is not None:
            return sha256(Path(file).read_bytes()).hexdigest()
        return sha256(inspect.getsource(code).encode()).hexdigest()
    except (OSError, TypeError):
        compiled = getattr(code, "__code__", None)
        return sha256(marshal.dumps(code.__qualname__ if compiled is None else compiled)).hexdigest()
