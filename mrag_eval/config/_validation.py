"""Validation of input: a fault is one line that names the key and the allowed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from mrag_eval.core import DEVICES, ConfigError, did_you_mean, known_device


class Block(BaseModel):
    """Validate a block: unknown keys are errors, and values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _known_device(name: str) -> str:
    try:
        return known_device(name)
    except ConfigError:
        raise ValueError(f"expected {DEVICES}") from None


# The device of a model.
Device = Annotated[str, AfterValidator(_known_device)]
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
        fault = _first_fault(model, err)
        raise ConfigError(
            f"{where}{joint}{fault[1:]}" if fault.startswith(".") else f"{where}{fault}",
            "change it there, or leave it out for its default",
        ) from None


def _first_fault(model: type[BaseModel], err: ValidationError) -> str:
    """Return the first fault as one line: key path, fault, and allowed values."""
    faults = err.errors(include_url=False)
    # a misspelt key is also a missing one, and the misspelling is the more useful fault
    fault = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    # tags of a union, which mean nothing to a user, are written in parentheses
    loc = tuple(part for part in fault["loc"] if not str(part).startswith("("))
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc)
    if fault["type"] == "extra_forbidden":
        parent, key = path.rpartition(".")[0], str(loc[-1])
        return f"{parent}: unknown key '{key}'{did_you_mean(key, _keys_at(model, loc[:-1]))}"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "model_type":
        message = f"expected keys and values, got {type(fault['input']).__name__}"
    if not path:
        return f": {message}"
    # a whole block may contain secrets, and does not help the reader
    shown = fault["type"] not in ("secret", "missing", "judges") and not isinstance(fault["input"], Mapping)
    return f"{path}: {message[0].lower()}{message[1:]}" + (f" (got {fault['input']!r})" if shown else "")


def _keys_at(model: type[BaseModel], path: Sequence[str | int]) -> list[str]:
    current: Any = model
    for part in path:
        fields = getattr(current, "model_fields", None)
        if fields is None:  # the values of a mapping of named blocks, or of a list
            current = _block_in(current)
        elif part in fields:
            current = fields[part].annotation
        else:
            break
    return list(getattr(_block_in(current), "model_fields", model.model_fields))


def _block_in(annotation: Any) -> Any:
    """Return the block among a generic type's arguments, however deep."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _block_in(arg)) is not None), None)


def deep_merge(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Merge blocks; later ones win key by key, nested mappings are merged, everything else is replaced."""
    out: dict[str, Any] = {}
    for block in blocks:
        for key, value in block.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
                out[key] = deep_merge(out[key], value)
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
        if isinstance(value, Mapping):
            for key, inner in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), inner)
        elif value is not None:
            out[prefix] = list(value) if isinstance(value, tuple) else value

    walk("", nested)
    return out
