"""The one reader of JSON text that a model, a server, a cache or a user wrote: any fault is one short line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NoReturn, TypeGuard

from mrag_eval.platform._errors import DataError, MragError

# More levels than any record of ours or of a provider has; deeper values overflow the stack where they are used.
DEEPEST = 100
# What objects call their own dictionary.
_DUMPS = ("to_dict", "model_dump")
# What pandas has for a cell without a value, beside NaN.
_MISSING = ("NAType", "NaTType")
# The next step for a file that is not JSON.
AS_JSON = "correct it, or leave that row out; what Python writes as NaN is null in JSON"
# The first bytes of compressed files that are not read.
_PACKED = {b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz", b"BZh": "bzip2", b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip"}
_TOO_DEEP = f"it is nested more than {DEEPEST} levels deep"


class JsonFault(ValueError):
    """Text that is not a JSON value: ``reason`` says why, ``line`` and ``column`` where, if that is known."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        self.reason, self.line, self.column = reason, line, column
        super().__init__(reason if line is None else f"line {line}, column {column}: {reason}")


class Twice(dict[str, Any]):
    """A JSON object with keys that come ``twice`` with different values, or that hold an object with one."""

    twice: set[str]


def json_value(text: str | bytes, *, lax: str = "", told: bool = False) -> Any:
    """Return the value of a JSON text; raise JsonFault for anything else.

    That includes values nested more than :data:`DEEPEST` levels deep, numbers of thousands of digits and bytes that
    are not UTF-8. ``NaN``, infinite numbers, and a key that comes twice in one object with different values, are
    refused. ``lax`` reads "NaN" as None, such "numbers", or "all" of these, as Python's own reader does. With ``told``
    an object with such a key is a :class:`Twice`, which :func:`check_keys` refuses where the key is read.
    """
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        try:
            value = _READERS[lax].decode(text)
        except JsonFault:
            if not told:
                raise
            value = _TELLERS[lax].decode(text)
    except JsonFault:
        raise
    except UnicodeDecodeError as error:
        raise JsonFault(f"not valid UTF-8, byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise JsonFault(error.msg, error.lineno, error.colno) from None
    except RecursionError:
        raise JsonFault(_TOO_DEEP) from None
    except ValueError:  # the interpreter's limit on the digits of a number
        raise JsonFault("a number has too many digits") from None
    if text.count("[") + text.count("{") > DEEPEST and nested_too_deeply(value):
        raise JsonFault(_TOO_DEEP)
    return value


def json_from(
    text: str | bytes,
    where: str,
    fix: str | None = None,
    *,
    lax: str = "",
    told: bool = False,
    error: type[MragError] = DataError,
) -> Any:
    """Return the value of a JSON text from a file; raise an error of one line for anything else.

    ``where`` names the file, and the line if the text is one of many; ``fix`` is the next step.
    """
    try:
        return json_value(text, lax=lax, told=told)
    except JsonFault as fault:
        raise error(f"{where}: not valid JSON ({fault})", fix) from None


def decode(raw: bytes, where: str) -> str:
    """Return UTF-8 text without a byte order mark; raise DataError with line and byte for anything else."""
    try:
        return raw.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        if packed := next((name for start, name in _PACKED.items() if raw.startswith(start)), None):
            raise DataError(f"{where}: compressed with {packed}", "uncompress it, or compress it as .gz") from None
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{where}: not valid UTF-8 (line {line}, byte {error.start})", "save the file as UTF-8"
        ) from None


def json_line(raw: bytes, where: str, *, lax: str = "", read: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the object that a line of JSON Lines is; raise DataError, naming ``where`` it is, for anything else.

    Only keys that are ``read`` must come once, by default all; who learns them later calls :func:`check_keys`.
    """
    value = json_from(decode(raw, where), where, AS_JSON, lax=lax, told=read is not None)
    if not isinstance(value, dict):
        what = f"{where}: expected a JSON object, found {type(value).__name__}"
        raise DataError(what, "correct that line, or leave it out")
    check_keys(value, read or (), where)
    return value


def check_keys(row: Any, read: Iterable[str], where: str) -> None:
    """Raise DataError, naming ``where`` it is, if one of the keys that are read comes twice, or a key within it."""
    key = next((key for key in read if key in row.twice), None) if isinstance(row, Twice) else None
    if key is not None:
        raise DataError(f"{where}: the key '{key:.40}', or one in it, comes twice with different values", AS_JSON)


def finite(value: Any) -> Any:
    """Return a JSON value with None for every ``NaN`` and infinite number in it."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def nested_too_deeply(value: Any) -> bool:
    """Return whether lists and objects lie in each other more than :data:`DEEPEST` levels deep."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def without_conflict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs; raise JsonFault for a key that comes twice with different values."""
    out = dict(pairs)
    for key, value in pairs if len(out) < len(pairs) else ():
        if out[key] != value:
            raise JsonFault(f"the key '{key[:40]}' comes twice with different values")
    return out


def _telling(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = Twice(pairs)
    out.twice = {key for key, value in pairs if out[key] != value or _holds_twice(value)}
    return out if out.twice else dict(pairs)


def _holds_twice(value: Any) -> bool:
    return isinstance(value, Twice) or (isinstance(value, list) and any(map(_holds_twice, value)))


def finite_number(given: Any) -> float:
    """Return the number that a value is, or that a text writes; raise JsonFault for none, ``NaN`` and infinite ones."""
    try:
        value = float(given)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if math.isfinite(value):
        return value
    # an integer may have too many digits to be shown
    raise JsonFault(f"{'so long an integer' if isinstance(given, int) else f'{given!r:.40}'} is not a finite number")


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number, and no yes or no; an integer beyond all floats counts as infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e308


def text_at(record: Mapping[str, Any], key: str, where: str) -> str:
    """Return the text, or the number as text, at a key that may be missing or null: then "".

    Raises DataError, naming ``where`` the record is, for an object or a list.
    """
    value = record.get(key)
    if isinstance(value, Mapping | list | tuple):
        raise DataError(f"{where}: '{key}' must be text, found {type(value).__name__}", "write it as text")
    return "" if value is None else str(value)


def no_number(literal: str) -> NoReturn:
    """Raise JsonFault: ``NaN`` and the infinities are no JSON, although Python's reader takes them."""
    raise JsonFault(f"{literal} is not a number")


def _readers(pairs: Callable[..., dict[str, Any]]) -> dict[str, json.JSONDecoder]:
    def strict(constant: Callable[[str], Any]) -> json.JSONDecoder:
        return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=constant, parse_float=finite_number)

    return {
        "": strict(no_number),
        "NaN": strict(lambda literal: None if literal == "NaN" else no_number(literal)),
        "numbers": json.JSONDecoder(object_pairs_hook=pairs),
        "all": json.JSONDecoder(),
    }


_READERS, _TELLERS = _readers(without_conflict), _readers(_telling)


def plain(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON has it: dictionaries and lists in place of objects that have them, None for no number.

    Raises DataError for one that lies deeper in itself than JSON may, as one does that refers to itself.
    """
    if depth > DEEPEST:
        raise DataError(
            f"the reply is nested in more than {DEEPEST} levels", "return its answer and its contexts alone"
        )
    if value is None or isinstance(value, str | int | Twice):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, type):
        return value
    if type(value).__name__ in _MISSING or (isinstance(value, float) and math.isnan(value)):
        return None
    if callable(listed := getattr(value, "tolist", None)):
        # numpy's arrays and numbers
        return plain(listed(), depth + 1)
    if isinstance(value, date | Decimal):
        return str(value)
    dump = next((found for name in _DUMPS if callable(found := getattr(value, name, None))), None)
    if dump is not None:
        return plain(dump(), depth + 1)
    return plain(vars(value), depth + 1) if is_dataclass(value) else value
