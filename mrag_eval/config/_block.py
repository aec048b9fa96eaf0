"""Blocks of settings, and the types of values that several blocks have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from pydantic_core import PydanticCustomError, to_jsonable_python

from mrag_eval.core import normalize_language
from mrag_eval.platform import DEVICES, ConfigError, known_device


@dataclass(frozen=True)
class KeyRule:
    """What a key needs and refuses beside it, declared at its field: ``Annotated[str, KeyRule(...)]``.

    Attributes:
        value: the value of the key that the rule is about; None: every one but the default.
        needs: keys that must be set, each with what it is; ``key=value`` asks for that value.
        refuses: keys that must not be set, each with the reason; ``key=value`` refuses that value alone.
    """

    value: str | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    refuses: Mapping[str, str] = field(default_factory=dict)

    def check(self, block: Block, own: str) -> None:
        """Raise ValueError for a block that sets the key ``own`` and breaks the rule."""
        if not (block.sets(own) if self.value is None else getattr(block, own) == self.value):
            return
        named = f"'{own}'" if self.value is None else f"{own} '{self.value}'"
        for needed, what in self.needs.items():
            key, _, value = needed.partition("=")
            if value and getattr(block, key) != value:
                raise ValueError(f"{named} requires {key} '{value}'; here it is '{getattr(block, key)}'")
            if not block.sets(key):
                raise ValueError(f"{named} {'requires' if self.value is None else 'needs'} '{key}', {what}")
        block.refuse(self.refuses, named)


class Block(BaseModel):
    """Validate a block: unknown keys are errors, and values do not change after validation."""

    # a run validates few of the blocks, and the schemas of all take longer to build than to use
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def sets(self, key: str) -> bool:
        """Return whether the block has another value for a key than its default; ``none`` sets nothing."""
        return getattr(self, key) not in (None, "none", type(self).model_fields[key].default)

    def refuse(self, refusals: Mapping[str, str], by: str) -> None:
        """Raise ValueError for the first key or value of ``refusals`` (:attr:`KeyRule.refuses`) that the block has."""
        for refused, reason in refusals.items():
            key, _, value = refused.partition("=")
            if getattr(self, key) == value if value else self.sets(key):
                named = f"{key} '{value}'" if value else f"'{key}'"
                raise ValueError(f"{named} cannot be combined with {by}: {reason}")

    @model_validator(mode="after")
    def _by_the_rules_of_its_keys(self) -> Block:
        for key, declared in type(self).model_fields.items():
            for rule in declared.metadata:
                if isinstance(rule, KeyRule):
                    rule.check(self, key)
        return self

    @model_validator(mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: Any) -> Any:
        for key, declared in cls.model_fields.items() if isinstance(value, Mapping) else ():
            if isinstance(value.get(key), bool) and not _takes_truth(declared.annotation):
                found = {"key": key, "value": str(value[key]).lower()}
                raise PydanticCustomError("truth", "'{key}' is {value}, which is not one of its values", found)
        return value


def _takes_truth(annotation: Any) -> bool:
    """Return whether a field of this type may be true or false."""
    return annotation in (bool, Any, object) or any(_takes_truth(arg) for arg in get_args(annotation))


def refused(key: str, why: str) -> Any:
    """Return a validator that refuses a key that a reader of a block would expect, and says ``why`` not."""

    def check(value: Any) -> Any:
        if isinstance(value, Mapping) and value.get(key) is not None:
            raise ValueError(why)
        return value

    return model_validator(mode="before")(check)


class Kind(Block):
    """Validate a block of one kind: a member of a union, with the keys that this kind takes.

    The base of a union states ``tag``, the key that names the kind, and ``recorded``, the keys of all kinds in the
    order of results. Results record every one of them, with its default if the kind does not take it. A block with
    such keys is valid, so that recorded settings can be used again. A required key needs a ``description``, for the
    error that it is missing.
    """

    tag: ClassVar[str]
    recorded: ClassVar[str]
    kinds: ClassVar[dict[str, type[Kind]]]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        if Kind in cls.__bases__:
            cls.kinds = {}
        cls.kinds.update(dict.fromkeys(get_args(cls.model_fields[cls.tag].annotation), cls))

    @classmethod
    def label(cls) -> str:
        """Return the kind as messages name it: ``kind 'api'``."""
        return f"{cls.tag} '{get_args(cls.model_fields[cls.tag].annotation)[0]}'"

    @classmethod
    def _unset(cls) -> dict[str, Any]:
        """Return the recorded keys that this kind does not take, with their defaults; required ones with None."""
        fields = {key: field for kind in cls.kinds.values() for key, field in kind.model_fields.items()}
        own = {key for key, field in cls.model_fields.items() if not field.is_required()}
        unset = {key: fields[key] for key in cls.recorded.split() if key not in own}
        return {k: None if f.is_required() else f.get_default(call_default_factory=True) for k, f in unset.items()}

    @model_validator(mode="before")
    @classmethod
    def _without_unset(cls, value: Any) -> Any:
        unset = to_jsonable_python(cls._unset())
        if not isinstance(value, Mapping):
            return value
        return {k: v for k, v in value.items() if k not in unset or to_jsonable_python(v) != unset[k]}

    @model_serializer(mode="wrap")
    def _with_unset(self, handler: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        own: dict[str, Any] = handler(self)
        every = own if info.exclude_unset else {**dict.fromkeys(self.recorded.split()), **self._unset(), **own}
        return {key: value for key, value in every.items() if key not in (info.exclude or ())}


def _known_device(name: str) -> str:
    try:
        return known_device(name)
    except ConfigError:
        raise ValueError(f"expected {DEVICES}") from None


def _known_language(code: str) -> str:
    try:
        return normalize_language(code)
    except ConfigError as err:
        raise ValueError(f"{err.message}; {err.next_step}") from None


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise ValueError("there is no such user; write the whole path, without ~") from None


# The device of a model.
Device = Annotated[str, AfterValidator(_known_device)]
# Several names, or a single one.
_one_or_more = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Names = Annotated[tuple[str, ...], _one_or_more]
# Languages in any spelling, or a single one.
Languages = Annotated[tuple[Annotated[str, AfterValidator(_known_language)], ...], _one_or_more]
# A path that does not depend on the working directory.
AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
