"""What users write: the blocks ``retrieval``, ``prompt`` and ``judge`` of a task, overrides, and the config file.

All of it is validated here: an unknown key, a value outside its set or an impossible combination is a
:class:`~mrag_eval.errors.ConfigError` that names the key and what is allowed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from mrag_eval.errors import ConfigError, did_you_mean
from mrag_eval.languages import normalize
from mrag_eval.modes import LANGUAGE_ROLES, MODES


class Block(BaseModel):
    """Base of every validated block: unknown keys are errors, values do not change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


B = TypeVar("B", bound=BaseModel)

Merge = Literal["score", "rrf", "quota", "quota_share"]


class Given(Block):
    """Which of the row's own passages to show (mode ``given``).

    ``distractors`` keeps the gold passages and ``n`` distracting ones, drawn per row with the seed; where these are in
    several languages, the languages take turns.
    """

    subset: Literal["all", "gold", "none", "distractors"] = "all"
    n: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _n_belongs_to_distractors(self) -> Given:
        if (self.subset == "distractors") != (self.n is not None):
            raise ValueError("'n' goes with subset 'distractors', and subset 'distractors' needs it")
        return self


class Retrieval(Block):
    """The ``retrieval`` block of a task: what is searched, how lists are merged, how many passages are shown.

    ``mode`` names a preset (:data:`mrag_eval.modes.MODES`); ``languages`` and ``merge`` override its choices.
    ``k`` passages go into the prompt; ``depth`` (default ``k``) are retrieved for the ranking measures.
    """

    mode: str = "no_ir"
    k: int = Field(default=5, ge=1)
    depth: int | None = Field(default=None, ge=1)
    corpus: str = "benchmark"
    kind: Literal["dense", "bm25", "hybrid"] | None = None
    embedder: str | dict[str, Any] | None = None
    languages: tuple[str, ...] | None = None
    merge: Merge | None = None
    query_text: Literal["question", "question+options"] = "question+options"
    candidates: Literal["all", "row"] = "all"
    given: Given = Given()
    device: str = "cpu"
    seed: int = Field(default=0, ge=0)

    @field_validator("languages", mode="before")
    @classmethod
    def _known_languages(cls, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, str | list | tuple):
            raise ValueError(f"expected a language or a list of them, one of {', '.join(LANGUAGE_ROLES)} or a code")
        names = [value] if isinstance(value, str) else list(value)
        try:
            return tuple(n if n in LANGUAGE_ROLES else normalize(str(n)) for n in names)
        except ConfigError as err:
            raise ValueError(f"{err.message}; a BCP 47 code or one of {', '.join(LANGUAGE_ROLES)}") from None

    @field_validator("mode")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        if value not in MODES:
            raise ValueError(f"unknown mode '{value}'{did_you_mean(value, MODES)}")
        return value

    @model_validator(mode="after")
    def _possible(self) -> Retrieval:
        if self.depth is not None and self.depth < self.k:
            raise ValueError(f"'depth' is {self.depth}, less than k = {self.k} passages that go into the prompt")
        if self.languages is not None and self.mode in ("no_ir", "given"):
            raise ValueError(f"mode '{self.mode}' searches nothing, so 'languages' has no meaning there")
        if self.given != Given() and self.mode != "given":
            raise ValueError(f"'given' goes with mode 'given', this task has mode '{self.mode}'")
        return self

    @property
    def search_depth(self) -> int:
        """How many hits are kept for ranking measures."""
        return self.depth or self.k


class Prompt(Block):
    """The ``prompt`` block: a template (built-in name, or a path to a file of one's own) and its length limit.

    ``system`` replaces the template's system text (literal text, or a path to a file). ``max_tokens`` bounds the whole
    prompt; without it the limit is the evaluated model's context less the tokens to generate. ``answer`` says where
    the answer stands in the reply: all of it (``plain``), inside ``<answer>`` (``tag``), or on the last line that
    reads ``Answer: ...`` (``line``); by default as the built-in template asks.
    """

    template: str = "short_answer"
    system: str | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    answer: Literal["plain", "tag", "line"] | None = None


class Judge(Block):
    """The ``judge`` block: who judges the answers, by which prompt, and how the votes count.

    ``prompt`` is a built-in one (``correctness``, ``equivalence``) or a path; ``reply`` says how its verdict comes
    (``json``: justification and answer; ``tag``: ``<same_meaning>``), by default as the built-in prompt asks. ``panel``
    names models of the config file, by default its ``judges``; each is asked ``repeats`` times, with a seed of its own,
    and every time is a seat. An even split counts by ``tie``. ``language_check`` is the detector by which an answer in
    another language than the question's is wrong whatever the verdict; it tells ``languages`` apart (by default those
    of the task's questions, and English). ``required`` makes a missing panel an error.
    """

    prompt: str = "correctness"
    reply: Literal["json", "tag"] | None = None
    panel: tuple[str, ...] | None = None
    repeats: int = Field(default=1, ge=1)
    tie: Literal["incorrect", "abstain"] = "incorrect"
    language_check: Literal["none", "fasttext", "lingua"] = "none"
    languages: tuple[str, ...] | None = None
    required: bool = False

    @field_validator("panel", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("panel")
    @classmethod
    def _each_once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and not value:
            raise ValueError("a panel needs at least one judge")
        for i, name in enumerate(value or ()):
            if name in (value or ())[:i]:
                raise ValueError(f"'{name}' is named twice; 'repeats' asks every judge more than once")
        return value

    @field_validator("languages")
    @classmethod
    def _known_languages(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        try:
            return None if value is None else tuple(normalize(code) for code in value)
        except ConfigError as err:
            raise ValueError(err.message) from None


class Generation(Block):
    """How a model generates. What a provider has beyond these keys goes into ``extra``, sent as it stands."""

    temperature: float = Field(default=0.0, ge=0)
    max_tokens: int = Field(default=1024, ge=1)
    seed: int | None = 0
    top_p: float | None = Field(default=None, gt=0, le=1)
    stop: tuple[str, ...] = ()
    extra: dict[str, Any] = Field(default_factory=dict)

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


class ModelBudget(Block):
    """The most one process may spend on a model; None: no limit.

    ``max_calls`` counts conversations sent (not the retries of one), ``max_tokens`` tokens in and out. Calls under way
    when the limit is reached are still finished.
    """

    max_calls: int | None = Field(default=None, ge=0)
    max_tokens: int | None = Field(default=None, ge=0)


_SECRET_KEY = re.compile(
    r"api[-_]?key|^((hf|auth|access|bearer)_)?token$|secret|passw|authorization|credential", re.IGNORECASE
)
_SECRET_IN_URL = re.compile(r"//[^/@\s]+@|[?&][^=&]*(key|token|secret|sig)[^=&]*=", re.IGNORECASE)


class ModelSpec(Block):
    """A model that judges, plans or translates: any model type of the harness, with its arguments.

    ``api_key_env`` names the environment variable with its key where that is not the harness's own (OPENAI_API_KEY,
    ANTHROPIC_API_KEY). ``timeout`` is seconds per attempt; ``retries`` attempts follow the first one.
    """

    model: str
    model_args: dict[str, Any] = Field(default_factory=dict)
    generation: Generation = Generation()
    api_key_env: str | None = None
    max_in_flight: int = Field(default=32, ge=1)
    budget: ModelBudget = ModelBudget()
    timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=6, ge=0)

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())

    @field_validator("model_args")
    @classmethod
    def _holds_no_secret(cls, value: dict[str, Any]) -> dict[str, Any]:
        key = _secret_in(value)
        if key is not None:
            raise PydanticCustomError(
                "secret",
                "'{key}' holds a secret; API keys belong in the environment: export OPENAI_API_KEY or "
                "ANTHROPIC_API_KEY, or name the variable with api_key_env",
                {"key": key},
            )
        return value

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", value):
            raise PydanticCustomError("secret", "the name of an environment variable is meant, not the key itself")
        return value


def _secret_in(args: Mapping[str, Any]) -> str | None:
    """The first key whose name or value is that of a secret, in nested mappings too."""
    for key, value in args.items():
        if _SECRET_KEY.search(str(key)) and isinstance(value, str) and value:
            return str(key)
        if isinstance(value, str) and _SECRET_IN_URL.search(value):
            return str(key)
        inner = _secret_in(value) if isinstance(value, Mapping) else None
        if inner is not None:
            return f"{key}.{inner}"
    return None


# What tells the two kinds of entry in a list of models apart; in the path of a fault it would say nothing.
_NAME, _SPEC = "(name)", "(model)"
NameOrModel = Annotated[
    Annotated[str, Tag(_NAME)] | Annotated[ModelSpec, Tag(_SPEC)],
    Discriminator(lambda entry: _NAME if isinstance(entry, str) else _SPEC),
]


class FileConfig(Block):
    """The user's config file: names for things on this machine.

    ``corpora`` maps a corpus name, as tasks use it (``wikipedia``), to an index folder; ``models`` names the models
    that judge, plan or translate; ``judges`` lists the panel of every task that names none of its own: names of
    models, or models written out.
    """

    corpora: dict[str, Path] = Field(default_factory=dict)
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    judges: tuple[NameOrModel, ...] = ()

    @field_validator("judges")
    @classmethod
    def _named_models_exist(cls, value: tuple[str | ModelSpec, ...], info: ValidationInfo) -> Any:
        models = info.data.get("models")
        names = [entry for entry in value if isinstance(entry, str)]
        for i, name in enumerate(names):
            if models is not None and name not in models:
                hint = did_you_mean(name, models) if models else "; there are no models"
                raise PydanticCustomError(
                    "judges", "no model '{name}' under models{hint}", {"name": name, "hint": hint}
                )
            if name in names[:i]:
                raise PydanticCustomError("judges", "'{name}' is named twice", {"name": name})
        return value


def validated(model: type[B], block: Any, where: str, *, joint: str = ".") -> B:
    """Validate ``block`` as ``model``; any fault is a one-line :class:`ConfigError` that starts with ``where``.

    ``joint`` stands between ``where`` and the path of the key.
    """
    if not isinstance(block, Mapping):
        raise ConfigError(f"{where}: expected keys and values, got {type(block).__name__} ({block!r})")
    try:
        return model.model_validate(dict(block))
    except ValidationError as err:
        fault = _first_fault(model, err)
        raise ConfigError(f"{where}{joint}{fault[1:]}" if fault.startswith(".") else f"{where}{fault}") from None


def _first_fault(model: type[BaseModel], err: ValidationError) -> str:
    """The first fault as one line: key path, what is wrong, what is allowed."""
    fault = err.errors(include_url=False)[0]
    loc = tuple(part for part in fault["loc"] if part not in (_NAME, _SPEC))
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in loc)
    if fault["type"] == "extra_forbidden":
        parent, key = path.rpartition(".")[0], str(loc[-1])
        return f"{parent}: unknown key '{key}'{did_you_mean(key, _keys_at(model, loc[:-1]))}"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not path:
        return f": {message}"
    # a whole block may hold what must not be printed, and is no help either
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
    return list(getattr(current, "model_fields", model.model_fields))


def _block_in(annotation: Any) -> Any:
    """The block among a generic type's arguments, however deep."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _block_in(arg)) is not None), None)


def deep_merge(*blocks: Mapping[str, Any]) -> dict[str, Any]:
    """Later blocks win key by key; nested mappings are merged, everything else is replaced."""
    out: dict[str, Any] = {}
    for block in blocks:
        for key, value in block.items():
            if isinstance(value, Mapping) and isinstance(out.get(key), Mapping):
                out[key] = deep_merge(out[key], value)
            else:
                out[key] = deep_merge(value) if isinstance(value, Mapping) else value
    return out


def undotted(flat: Mapping[str, Any]) -> dict[str, Any]:
    """``{"retrieval.k": 3}`` as ``{"retrieval": {"k": 3}}``; keys without dots stay as they are."""
    out: dict[str, Any] = {}
    for key, value in flat.items():
        nested: Any = value
        for part in reversed(str(key).split(".")):
            nested = {part: nested}
        out = deep_merge(out, nested)
    return out


def cache_dir() -> Path:
    """Where indexes and retrieval results are cached: ``$MRAG_CACHE``, else ``~/.cache/mrag_eval``."""
    value = os.environ.get("MRAG_CACHE")
    return Path(value).expanduser() if value else Path.home() / ".cache" / "mrag_eval"


def config_path() -> Path | None:
    """The config file in force: ``$MRAG_CONFIG``, else ``./mrag.yaml``, else ``~/.config/mrag_eval/config.yaml``."""
    named = os.environ.get("MRAG_CONFIG")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise ConfigError(f"$MRAG_CONFIG names {path}, which is not a file", "create it, or unset MRAG_CONFIG")
        return path
    home = Path.home() / ".config" / "mrag_eval" / "config.yaml"
    return next((p for p in (Path("mrag.yaml"), home) if p.is_file()), None)


def load_config() -> FileConfig:
    """The validated config file; an empty one where there is none."""
    path = config_path()
    return FileConfig() if path is None else _read_config(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read_config(path: Path, _modified: int) -> FileConfig:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as err:
        raise ConfigError(f"{path}: not readable as YAML: {' '.join(str(err).split())}") from None
    return validated(FileConfig, content or {}, str(path), joint=", ")
