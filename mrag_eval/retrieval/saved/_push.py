"""Run folders pushed to a dataset of the hub: checked first, then uploaded with a card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from mrag_eval.config import dotted, load_config
from mrag_eval.core import pipe_table
from mrag_eval.datasets import declaration_of
from mrag_eval.platform import (
    LONGEST_FILE,
    ConfigError,
    DataError,
    HubPlace,
    cache_dir,
    hide,
    hub_faults,
    hub_file,
    hub_token,
    keep_named_variables,
    key_in,
    key_variable_of,
    lines_of,
    name_fault,
    readable,
    write_whole,
)
from mrag_eval.retrieval.saved._folder import RunFolder, records_of
from mrag_eval.retrieval.saved._manifest import MANIFEST, ManifestEntry, read_manifest
from mrag_eval.retrieval.saved._terms import check_terms, licence_of

if TYPE_CHECKING:
    from huggingface_hub import HfApi

# Lines that are searched for secrets at once.
_LINES = 1000


@dataclass(frozen=True)
class Push:
    """What a user asks for.

    Attributes:
        place: the dataset.
        revision: With --push: the branch. The default is main.
        message: With --push: the message of the commit.
        private: With --push: make a new dataset private; one that exists stays as it is.
        licence: With --push: the licence of passages whose licence is not known, such as CC-BY-4.0.
    """

    place: HubPlace
    revision: str | None = None
    message: str | None = None
    private: bool = False
    licence: str | None = None

    def check(self) -> None:
        """Raise ConfigError, before anything is retrieved, if there is no token for the hub.

        From then on the keys of the config file's models are looked for in what is pushed, whoever asked those models,
        and every variable that is named as a key.
        """
        if hub_token() is None:
            raise ConfigError("--push: there is no token for the hub", "hf auth login   or set HF_TOKEN")
        keep_named_variables()
        for name, spec in load_config().models.items():
            variable = key_variable_of(spec.model, {**spec.model_args, "api_key_env": spec.api_key_env})
            if variable is not None:
                # one that is not set, or that texts may contain by chance, is in no row that could be told from others
                with suppress(ConfigError):
                    key_in(variable, f"model '{name}'")


@dataclass(frozen=True)
class Pushed:
    """The outcome: the dataset at its new commit, number and bytes of the files, and ``notes`` for the user."""

    place: HubPlace
    files: int
    size: int
    notes: tuple[str, ...]


def push_folder(folder: RunFolder, push: Push) -> Pushed:
    """Upload a finished run folder to a dataset of the hub, which is created if needed; the rest of it stays.

    Raises ConfigError or DataError, before anything is sent, for rows that are not complete or have changed since,
    texts that may not be shared, secrets, paths of this machine, and a dataset with other tasks; afterwards for
    whatever the hub refuses.
    """
    push.check()
    if not folder.tasks:
        raise DataError(f"{folder.name} holds no retrieved rows", "retrieve first: mrag-eval retrieve --tasks ...")
    names = [MANIFEST]
    for task, entry in folder.tasks.items():
        names += _checked(folder, task, entry, push.licence)
    _refuse_paths(folder)
    card = folder.path / CARD
    if not card.is_file() or is_ours(card):
        write_whole(card, card_of(folder.tasks, push.place, push.licence))
    names.append(CARD)
    for name in names:
        _refuse_secrets(folder.path / name)
    commit = _upload(folder, push, names)
    notes = [
        f"{MANIFEST} names an address, which everybody can read: {key}={value}"
        for entry in folder.tasks.values()
        for key, value in dotted(entry.settings).items()
        if "://" in str(value)
    ]
    size = sum((folder.path / name).stat().st_size for name in names)
    return Pushed(push.place.at(commit), len(names), size, tuple(dict.fromkeys(notes)))


def _checked(folder: RunFolder, task: str, entry: ManifestEntry, licence: str | None) -> list[str]:
    """Return the names of a task's files; raise DataError if they are not fit to be shared."""
    path = folder.path / entry.file
    if entry.sha256 is None:
        raise DataError(f"{path}: the rows of task {task} are not complete", f"finish them: {folder.command(task)}")
    repeated = any("queries" in record or "trace" in record for record in records_of(path, entry.sha256))
    check_terms(task, entry.terms, licence, questions=repeated)
    rankings = [f"{path.stem}.trec", f"{path.stem}.reranked.trec"]
    return [entry.file, *(name for name in rankings if (folder.path / name).is_file())]


def _refuse_paths(folder: RunFolder) -> None:
    for task, entry in folder.tasks.items():
        record = {"settings": entry.settings, "index": entry.index, "agent": entry.agent, "models": entry.models}
        for key, value in _paths_in({**record, "translation": entry.translation}):
            raise ConfigError(
                f"{folder.path / MANIFEST}, tasks.{task}.{key} is a path of this machine: {value}",
                "name the model as on the hub, and retrieve again",
            )


def _paths_in(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _paths_in(inner, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _paths_in(inner, f"{key}[{number}]")
    elif isinstance(value, str) and value.startswith(("/", "~/", "./", "../")):
        yield key, value


def _refuse_secrets(path: Path) -> None:
    """Raise DataError for a secret that is known by value, and for a folder of this machine's user in a text."""
    folders = [str(place) for place in {Path.home(), Path.cwd(), cache_dir()} if len(place.parts) > 2]
    with readable(path, "retrieve again with --overwrite"), path.open("rb") as file:
        numbered = enumerate(lines_of(file, path), 1)
        # many lines at once, as most are short
        while block := list(islice(numbered, _LINES)):
            if _not_to_be_sent(b"".join(line for _, line in block), folders) is None:
                continue
            for number, line in block:
                if what := _not_to_be_sent(line, folders):
                    raise DataError(
                        f"{path}, line {number}: holds {what}", "remove its cause, and retrieve with --overwrite"
                    )


def _not_to_be_sent(raw: bytes, folders: Sequence[str]) -> str | None:
    text = raw.decode("utf-8", "surrogatepass")
    if hide(text) != text:
        return "a key of yours"
    return "a path of this machine" if any(place in text for place in folders) else None


def _upload(folder: RunFolder, push: Push, names: Sequence[str]) -> str:
    from huggingface_hub import HfApi

    api, place = HfApi(), push.place
    with hub_faults(place):
        api.create_repo(place.repo, repo_type="dataset", private=push.private or None, exist_ok=True)
        if push.revision is not None:
            api.create_branch(place.repo, repo_type="dataset", branch=push.revision, exist_ok=True)
        _refuse_other_tasks(folder, HubPlace(place.repo, push.revision), api)
        done = api.upload_folder(
            repo_id=place.repo,
            repo_type="dataset",
            folder_path=folder.path,
            allow_patterns=list(names),
            revision=push.revision,
            commit_message=push.message or f"Retrieved rows of {', '.join(folder.tasks)}"[:120],
        )
    return str(done.oid)


def _refuse_other_tasks(folder: RunFolder, place: HubPlace, api: HfApi) -> None:
    """Raise ConfigError if the dataset holds tasks that the folder lacks: its manifest would forget them."""
    if not api.file_exists(place.repo, MANIFEST, repo_type="dataset", revision=place.revision):
        return
    there = read_manifest(hub_file(place, MANIFEST, LONGEST_FILE, "push again")[0], f"{place}: {MANIFEST}", name_fault)
    others = [task for task in there if task not in folder.tasks]
    if others:
        raise ConfigError(
            f"{place} holds tasks that {folder.name} lacks: {', '.join(others[:5])}",
            "push to another dataset, or retrieve these into this folder, too",
        )


CARD = "README.md"
_MARK = "<!-- Written by mrag-eval. Without this line, the card is yours and is kept. -->"


def is_ours(card: Path) -> bool:
    """Return whether a card was written by this module, and not edited since its mark was removed."""
    return _MARK in card.read_text("utf-8", "replace")


def card_of(tasks: Mapping[str, ManifestEntry], place: HubPlace, licence: str | None) -> str:
    """Return the card of a folder with these tasks; ``licence`` is that of passages whose own is not known."""
    licences = sorted({licence_of(entry.terms, licence) or "unknown" for entry in tasks.values()})
    about = {
        "license": licences[0].lower() if len(licences) == 1 else [name.lower() for name in licences],
        "language": _languages(tasks),
        "tags": ["mrag-eval", "retrieval", "rag"],
        # its rows are nested differently from mode to mode
        "viewer": False,
    }
    head = yaml.safe_dump({key: value for key, value in about.items() if value != []}, sort_keys=False)
    names = ",".join(tasks)
    parts = [
        f"---\n{head}---\n",
        f"# {place.repo.partition('/')[2]}: retrieved passages\n",
        "Passages that mrag-eval retrieved for the questions of benchmarks. With them, any model is evaluated on the "
        "same passages, without corpus, index, embedder, reranker or planner.\n",
        f"```bash\nmrag-eval run --model hf --model_args pretrained=MODEL --tasks {names} \\\n"
        f"    --metadata retrieval.run_folder=hub:{place.repo}@COMMIT\n```\n",
        "`COMMIT` is a commit of this dataset (Files, History) or a tag. Without `@COMMIT` the newest one is read, and "
        "the results say which it was.\n",
        "## Tasks\n",
        _table(tasks),
        f"\n`{MANIFEST}` holds every setting, the hashes of corpus and questions, and the SHA-256 of each file. A run "
        "compares them with its own, and refuses a difference by name. The questions themselves come from the "
        "benchmark.\n",
        "## Licences\n",
        *_terms(tasks, licence),
        f"\n{_MARK}\n",
    ]
    return "\n".join(parts)


def _table(tasks: Mapping[str, ManifestEntry]) -> str:
    rows = [
        [f"`{task}`", f"{entry.rows:,}", _how(entry), f"`{entry.fingerprint[:12]}`"] for task, entry in tasks.items()
    ]
    return pipe_table(["task", "rows", "retrieval", "fingerprint"], rows)


def _how(entry: ManifestEntry) -> str:
    """Return a task's retrieval in a few words: mode, index and embedder, reranker, agents, translation."""
    chosen = entry.settings.get("retrieval") or {}
    corpus = entry.settings.get("corpus") or {}
    index = {**corpus, **(entry.index or {})}
    parts = [f"mode {chosen.get('mode')}", f"k {chosen.get('k')}", f"depth {chosen.get('depth')}"]
    if index.get("kind"):
        embedder = f" {index['embedder']} (revision {index.get('revision')})" if index.get("embedder") else ""
        parts.append(f"{index['kind']}{embedder}")
    if index.get("content_hash"):
        parts.append(f"corpus {index['content_hash'][:12]}")
    if chosen.get("rerank"):
        parts.append(f"reranked by {chosen['rerank'].get('name')}")
    asked = [(role, seat) for role, seats in entry.models.items() for seat in seats.values()]
    parts += [f"{role} {seat.get('model')}" for role, seat in asked if isinstance(seat, Mapping)]
    return ", ".join(parts)


def _terms(tasks: Mapping[str, ManifestEntry], licence: str | None) -> list[str]:
    lines: dict[str, None] = {}
    for entry in tasks.values():
        source: Mapping[str, Any] = entry.terms.get("passages") or {}
        stated = licence_of(entry.terms, licence) or "not known"
        lines[f"- Passages: {source.get('name', 'unknown')}, {stated}. Titles and ids name the documents."] = None
        declared = declaration_of(entry.settings.get("data") or {})
        if declared is not None and declared.citations:
            cited = "; ".join(f"[{one.authors}, {one.venue}]({one.url})" for one in declared.citations)
            lines[f"- Questions: {declared.title}, {declared.licence or 'no licence stated'} ({cited})."] = None
    return list(lines)


def _languages(tasks: Mapping[str, ManifestEntry]) -> list[str]:
    found: set[str] = set()
    for entry in tasks.values():
        counts = (entry.index or {}).get("passages")
        found |= set(counts) if isinstance(counts, Mapping) else set()
        declared = declaration_of(entry.settings.get("data") or {})
        found |= set() if declared is None else set(declared.languages)
    return sorted(code.partition("-")[0] for code in found)
