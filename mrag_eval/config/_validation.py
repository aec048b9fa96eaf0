"""Validation of input: a fault is one line that names the key and the allowed values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mrag_eval.config._block import Block, Kind
from mrag_eval.platform import ConfigError, did_you_mean

B = TypeVar("B", bound=BaseModel)


def validated(model: type[B], block: Any, where: str, *, joint: str = ".") -> B:
    """Validate ``block`` as ``model``. Raise a one-line :class:`ConfigError` starting with ``where`` for any fault.

    ``joint`` separates ``where`` from the path of the key.
    """
    if not isinstance(block, Mapping):
        raise ConfigError(
            f"{where}: expected keys and values, got {type(block).__name__} ({block!r})",
            f"its keys: {', '.join(model.model_fields)}",
        )
    try:
        return model.model_validate(dict(block))
    except ValidationError as err:
        raise _refusal(model, err.errors(include_url=False), where, joint) from None


def check_keys(model: type[Block], block: Mapping[str, Any], where: str) -> None:
    """Check the keys that ``block`` has, as :func:`validated` does; the other keys of ``model`` are set elsewhere."""
    try:
        model.model_validate(dict(block))
    except ValidationError as err:
        # a missing key, and what keys must be like together, are faults of the whole block
        every = err.errors(include_url=False)
        faults = [one for one in every if one["type"] == "truth" or len(one["loc"]) > (one["type"] == "missing")]
        if faults:
            raise _refusal(model, faults, where, ".") from None


def _refusal(model: type[BaseModel], faults: Sequence[ErrorDetails], where: str, joint: str) -> ConfigError:
    fault = _first_fault(model, faults)
    return ConfigError(
        f"{where}{joint}{fault[1:]}" if fault.startswith(".") else f"{where}{fault}",
        "change it there, or leave it out for its default",
    )


def _first_fault(model: type[BaseModel], faults: Sequence[ErrorDetails]) -> str:
    """Return the first fault as one line: key path, fault, and allowed values."""
    # a misspelt key is also a missing one, and the misspelling is the more useful fault
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    kind, loc = fault["type"], fault["loc"]
    if kind in ("extra_forbidden", "missing"):
        path, block = _followed(model, loc[:-1])
        if kind == "extra_forbidden":
            return f"{path}: {_refused(str(loc[-1]), block)}"
        if issubclass(block, Kind):
            return f"{path}: {block.label()} needs '{loc[-1]}', {block.model_fields[str(loc[-1])].description}"
    path, block = _followed(model, loc)
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        name = str(fault["ctx"].get("tag", ""))
        found = f"unknown {block.tag} '{name}'" if name else "missing"
        return f"{path}.{block.tag}: {found}{did_you_mean(name, block.kinds)}"
    message = str(fault["msg"])[0].lower() + str(fault["msg"])[1:]
    if kind == "value_error":
        message = str(fault["ctx"]["error"])
    elif kind in ("tuple_type", "list_type"):
        message = f"expected a list, got {type(fault['input']).__name__}"
    elif kind in ("model_type", "model_attributes_type"):
        keys = f"{block.tag}, ..." if issubclass(block, Kind) else ", ".join(block.model_fields)
        message = f"expected keys and values ({keys}), got {type(fault['input']).__name__}"
    if not path:
        return f": {message}"
    # a whole block may contain secrets, and does not help the reader
    if kind not in ("secret", "missing", "judges") and not isinstance(fault["input"], Mapping):
        message += f" (got {fault['input']!r})"
    if kind == "literal_error":
        close = get_close_matches(str(fault["input"]), re.findall("'(.*?)'", fault["ctx"]["expected"]), n=1)
        message += "".join(f"; did you mean '{name}'?" for name in close)
    return f"{path}: {message}"


def _refused(key: str, block: Any) -> str:
    """Return the fault of a key that ``block`` does not take."""
    takers = [kind.label() for kind in getattr(block, "kinds", {}).values() if key in kind.model_fields]
    if takers:
        return f"'{key}' requires {' or '.join(takers)}; {block.label()} takes {', '.join(sorted(block.model_fields))}"
    return f"unknown key '{key}'{did_you_mean(key, block.model_fields)}"


def _followed(model: Any, loc: Sequence[str | int]) -> tuple[str, Any]:
    """Return the path of keys, without the tags of unions, and the block at its end."""
    path, expected = "", model
    for part in loc:
        block = _block_in(expected)
        if block is not expected and part in getattr(block, "kinds", ()):
            expected = block.kinds[part]
        elif not str(part).startswith("("):  # the tag of a union without a key for it
            path += f"[{part}]" if isinstance(part, int) else f".{part}"
            fields = getattr(expected, "model_fields", {part: block})
            expected = getattr(fields.get(part), "annotation", fields.get(part))
    return path, _block_in(expected) or model


def _block_in(annotation: Any) -> Any:
    """Return the block among a generic type's arguments, however deep."""
    if hasattr(annotation, "model_fields") and not get_args(annotation):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _block_in(arg)) is not None), None)


def deep_merge(
    *blocks: Mapping[str, Any],
    kept: Callable[[str, Mapping[str, Any], Mapping[str, Any]], Mapping[str, Any]] = lambda _key, below, _above: below,
) -> dict[str, Any]:
    """Merge blocks; later ones win key by key, nested mappings are merged, everything else is replaced.

    ``kept`` is given the key of two nested mappings, and both, and returns what the later one is merged into.
    """
    out: dict[str, Any] = {}
    for block in blocks:
        for key, value in block.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
                out[key] = deep_merge(kept(str(key), out[key], value), value, kept=kept)
            else:
                out[key] = deep_merge(value) if isinstance(value, Mapping) else value
    return out


def undotted(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``{"retrieval.k": 3}`` as ``{"retrieval": {"k": 3}}``; keys without dots are unchanged."""
    out: dict[str, Any] = {}
    for key, value in flat.items():
        nested: Any = value
        for part in reversed(str(key).split(".")):
            nested = {part: nested}
        out = deep_merge(out, nested)
    return out


def dotted(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inverse of :func:`undotted`, without None values; tuples become lists, as they are in JSON."""
    out: dict[str, Any] = {}

    def walk(prefix: str, value: Any) -> None:
        # most values are numbers, which the check for a mapping takes longest to tell
        if not isinstance(value, str | float | int) and isinstance(value, Mapping):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif value is not None:
            out[prefix] = list(value) if isinstance(value, tuple) else value

    walk("", nested)
    return out
