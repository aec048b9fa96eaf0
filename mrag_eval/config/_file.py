"""The user's config file: names for the models, judges and corpora of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from mrag_eval.config._agent import EVALUATED
from mrag_eval.config._block import Block
from mrag_eval.config._model import EmbedderName, ModelSpec
from mrag_eval.config._translator import TranslatorSpec
from mrag_eval.config._validation import validated
from mrag_eval.platform import config_path, did_you_mean, keep_secrets_of, read_yaml

# Tags of the two kinds of entry in a list of models; they would mean nothing in the path of a fault.
_NAME, _SPEC = "(name)", "(model)"
NameOrModel = Annotated[
    Annotated[str, Tag(_NAME)] | Annotated[ModelSpec, Tag(_SPEC)],
    Discriminator(lambda entry: _NAME if isinstance(entry, str) else _SPEC),
]


class MilvusCorpus(Block):
    """An entry of ``corpora`` in the config file: an index loaded with ``mrag-eval index milvus``.

    ``uri`` is a server or a local file ending in ``.db``; ``collection`` is by default the name of the entry. The token
    is read from the environment variable ``token_env``. ``patience`` is how many seconds a call is tried for while the
    server does not answer; ``search`` are parameters of the vector index (``ef`` of HNSW, ``nprobe`` of IVF_FLAT), over
    those stored with the collection.
    """

    kind: Literal["milvus"]
    uri: str
    collection: str | None = None
    token_env: str = "MILVUS_TOKEN"
    patience: float = Field(default=120.0, gt=0)
    search: dict[str, int] = Field(default_factory=dict)


# As above: a folder, or an index in another place.
Corpus = Annotated[
    Annotated[Path, Tag("(folder)")] | Annotated[MilvusCorpus, Tag("(milvus)")],
    Discriminator(lambda entry: "(milvus)" if isinstance(entry, Mapping | MilvusCorpus) else "(folder)"),
]


class FileConfig(Block):
    """The user's config file: names for things on this machine.

    ``corpora`` maps a corpus name, as tasks use it (``wikipedia``), to an index folder or to an index in Milvus
    (:class:`~mrag_eval.config.MilvusCorpus`); ``models`` names the models that judge, plan or translate;
    ``judges`` lists the panel of every task without a panel in its block: names of models, or models written out;
    ``translator`` translates for every task without a translator in its block, ``planner`` and ``critic`` are the
    agents of every task without them (without a critic the planner is both; ``evaluated`` is the evaluated model
    itself). ``retrieve_first: false`` lets ``mrag-eval run`` retrieve in its own process, once the evaluated model is
    loaded. ``embedders`` are the embedders that an index may ask for although they are behind an address, run code of
    their own or are in a local folder (docs/provenance.md). ``data`` maps a benchmark to keys of its ``data`` block,
    for tasks whose own files leave them out: ``data: {xrag: {path: FOLDER}}``. ``languages`` is a folder with files of
    languages, which override or add to the package's (docs/languages.md).
    """

    corpora: dict[str, Corpus] = Field(default_factory=dict)
    models: dict[str, ModelSpec] = Field(default_factory=dict)
    judges: tuple[NameOrModel, ...] = ()
    translator: TranslatorSpec | None = None
    planner: str | None = None
    critic: str | None = None
    retrieve_first: bool = True
    embedders: tuple[EmbedderName, ...] = ()
    # each benchmark's loader checks its keys
    data: dict[str, dict[str, Any]] = Field(default_factory=dict)
    # read by mrag_eval.languages
    languages: Path | None = None

    @field_validator("models")
    @classmethod
    def _one_name_is_taken(cls, value: dict[str, ModelSpec]) -> dict[str, ModelSpec]:
        if EVALUATED in value:
            raise PydanticCustomError(
                "judges", "'{name}' is the evaluated model itself; choose another name", {"name": EVALUATED}
            )
        return value

    @field_validator("languages")
    @classmethod
    def _is_a_folder(cls, value: Path | None) -> Path | None:
        if value is not None and not value.expanduser().is_dir():
            raise PydanticCustomError("languages", "{path} is not a folder; create it", {"path": str(value)})
        return value

    @field_validator("judges")
    @classmethod
    def _named_models_exist(cls, value: tuple[str | ModelSpec, ...], info: ValidationInfo) -> Any:
        names = [entry for entry in value if isinstance(entry, str)]
        for i, name in enumerate(names):
            _check_model(name, info)
            if name in names[:i]:
                raise PydanticCustomError("judges", "'{name}' is named twice", {"name": name})
        return value

    @field_validator("planner", "critic")
    @classmethod
    def _agent_exists(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value not in (None, EVALUATED):
            _check_model(str(value), info)
        return value


def _check_model(name: str, info: ValidationInfo) -> None:
    models = info.data.get("models")  # absent if they are faulty themselves
    if models is not None and name not in models:
        hint = did_you_mean(name, models) if models else "; there are no models"
        raise PydanticCustomError("judges", "no model '{name}' under models{hint}", {"name": name, "hint": hint})


def load_config() -> FileConfig:
    """Return the validated config file; an empty one if there is no file."""
    path = config_path()
    return FileConfig() if path is None else _read_config(path.resolve(), path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read_config(path: Path, _modified: int) -> FileConfig:
    content = read_yaml(path, "correct it, then: mrag-eval doctor --config")
    keep_secrets_of(content)
    return validated(FileConfig, content, str(path), joint=", ")
