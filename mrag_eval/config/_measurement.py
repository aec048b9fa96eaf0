"""What a task's numbers measure: a record of everything that decides them, and the keys in which two records differ.

The record holds whole blocks, not chosen keys, and two records are compared over all of them: a setting, a flag or a
property of a model that is new today is compared tomorrow. What is left out of a comparison is named in
:func:`harmless_keys`, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from mrag_eval.config._measures import GROUNDED
from mrag_eval.config._modes import mode_named
from mrag_eval.config._task import TaskBlocks
from mrag_eval.config._validation import dotted
from mrag_eval.platform import (
    HIDDEN,
    OPTIONAL,
    VARIABLE,
    bare_address,
    check_version,
    content_key,
    from_json,
    header_has_key,
    hidden,
    machines_of,
    marked,
    name_of_model,
    place_by_content,
    read_yaml,
    to_json,
    with_version,
)

Role = Literal["subject", "setting", "instrument", "data", "environment", "outcome"]
ROLES: tuple[Role, ...] = get_args(Role)
# The roles that decide a number. Versions are named where they differ; outcomes are shown, and never compared.
DECIDING: tuple[Role, ...] = ("subject", "setting", "instrument", "data")
# The roles that two models must share for their numbers to be compared.
ALL_BUT_THE_MODEL: tuple[Role, ...] = ("setting", "instrument", "data")
# A name that allows any difference.
EVERYTHING = "all"
# The value of a key that a record lacks.
NOT_SET = "not set"
# The key of two records of which one is missing.
UNKNOWN = "identity"
# Keys whose values say in words what the rows are.
SOURCES = ("source", "source.corpus")
# An instrument of every task: a run without a file of the user's used the package's.
_ALWAYS = "languages"
# The note in results about contexts that a RAG system brings itself.
OWN_CONTEXTS = "the system's; languages detected where not given"
# The block of the judges, by seat.
JUDGES = "judges"
# What decides one metric alone is under this and the metric's name; for all metrics of support, under the first.
OWN = "metric:"
SUPPORT = f"{OWN}{GROUNDED[0]}"
# Of the settings: what lies at their paths.
_CONTENTS = "contents"

_EMBEDDER = "retrieval.embedder"
# Addresses of servers, and the keys beside them that name what is there.
_ADDRESSES = ("base_url", "url")
_MODELS = ("model", "pretrained", "engine", "name")
# Settings that may be a folder or a file of the user's.
_PLACES = (_EMBEDDER, f"{_EMBEDDER}.model", "retrieval.rerank.model", "*.prompt", "*.prompts.*", "*.template",
           "*.files.*")  # fmt: skip
# Keys that change nothing in a mode that searches no corpus.
_OF_A_SEARCH = frozenset(
    {"candidates", "depth", "embedder", "k", "kind", "languages", "merge", "pool", "query_text", "query_translation",
     "query_vectors", "rerank", "retriever", "run", "run_language", "segment", "simplified", "stem", "uri"}
)  # fmt: skip
# Keys that change nothing where an oracle's rows come with their passages: ``k`` of them are shown.
_OF_A_LOOKUP = ("reranker", *sorted(f"retrieval.{key}" for key in _OF_A_SEARCH - {"k"}))
# Keys of a task that only name it, or that its blocks replace.
_NAMES = frozenset({"class", "dataset_name", "dataset_path", "include", "metadata", "metric_list", "tag", "task",
                    "task_alias", "test_split"})  # fmt: skip
# From this many keys on, a block that one side lacks is told as one, by the first of these keys that it has.
_A_BLOCK = 3
_NAMING = ("model", "name", "kind")
# A text of letters and digits is a hash from this length on, of which people read the beginning.
_HASH = 40
_READ = 8
# The end of a key whose last part is a header that carries a key.
_SECRET = ".{secret}"
_HIDDEN = "not comparable: hidden"
_FIX = "run again with this version of mrag-eval"


@dataclass(frozen=True)
class Measurement:
    """Everything that decides the numbers of one task of one run, by role, and what came of it.

    All but the outcome and the rows that ran is made before the first request. Each fact stands once; what else it
    says is computed when it is asked for.

    Attributes:
        task: the task's name.
        subject: the evaluated model: type, arguments, revision, chat template, and who sends its requests.
        setting: the merged blocks of the task as they were given, texts of its prompts by hash, and what the run's
            flags add. ``contents`` holds, by dotted key, what lies at each path among them.
        instrument: judges by seat, planner, critic, translator, reranker and detector, by what they are.
        data: the rows, those of them that ran, and the corpus, by content.
        environment: versions.
        outcome: what came of the run besides its scores: calls, tokens, the models that replied, metrics left out.
        shipped: the hash of the settings of the package's own task of this name at the time; None if there is none.
        unknown: what the harness did not tell.
    """

    task: str
    subject: Mapping[str, Any] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    instrument: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    outcome: Mapping[str, Any] = field(default_factory=dict)
    shipped: str | None = field(default=None, metadata=OPTIONAL)
    unknown: tuple[str, ...] = field(default=(), metadata=OPTIONAL)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return with_version(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str) -> Measurement:
        """Return the record behind :meth:`to_dict`. Raises DataError for another version, and for a faulty key."""
        check_version(value, where)
        known = {part.name for part in fields(cls)}
        return from_json(cls, {key: value[key] for key in value if key in known}, where, _FIX)

    def flat(self, roles: Collection[Role] = ROLES) -> dict[str, tuple[Role, Any]]:
        """Return dotted key -> role and value of everything that is set, harmless keys included."""
        found: dict[str, tuple[Role, Any]] = {
            key: (role, value) for role in ROLES if role in roles for key, value in dotted(self._compared(role)).items()
        }
        if "instrument" in roles and self.instrument.get(JUDGES):
            found[JUDGES] = "instrument", sorted(self.judges)
        return found

    def _compared(self, role: Role) -> Mapping[str, Any]:
        """Return the entries of a role as they are compared: paths by content, judges by what they are."""
        own: Mapping[str, Any] = getattr(self, role) if role != "instrument" else self.instruments
        if role == "subject" and self.answered_by is not None:
            return {**own, "answered_by": self.answered_by}
        if role == "instrument" and own.get(JUDGES):
            return {**own, JUDGES: self.judges}
        if role == "data" and own.get("retrieved"):
            # rows from a folder are those that this machine would retrieve, but for what was allowed to differ
            return {**own, "retrieved": {"differs": own["retrieved"].get("differs")}}
        if role != "setting":
            return own
        held = own.get(_CONTENTS) or {}
        found = _each({key: value for key, value in own.items() if key != _CONTENTS}, lambda key, v: held.get(key, v))
        block = found.get("retrieval")
        if isinstance(block, Mapping) and "mode" in block:
            if not mode_named(block["mode"]).searches:
                found["retrieval"] = {key: value for key, value in block.items() if key not in _OF_A_SEARCH}
            elif "depth" in block:
                found["retrieval"] = {**block, "depth": block["depth"] or block.get("k")}
        return found

    @property
    def idle(self) -> tuple[str, ...]:
        """Return the keys, or blocks of them, that decide nothing: those of a search that no row of an oracle needs."""
        mode = (self.setting.get("retrieval") or {}).get("mode")
        searched = "index" in self.data or "corpus" in (self.data.get("source") or {})
        return () if searched or mode_named(str(mode)).source != "gold" else _OF_A_LOOKUP

    @property
    def sha256(self) -> str:
        """Return the hash of everything that decides the numbers, harmless keys left out."""
        return content_key({k: value for k, value in self.deciding().items() if not is_named(k, self.idle)})

    def deciding(self, roles: Collection[Role] = DECIDING) -> dict[str, Any]:
        """Return dotted key -> what is compared of everything that is set, harmless keys left out."""
        found = self.flat(roles)
        return {
            key: _compared(key, value)
            for key, (role, value) in found.items()
            # what was hidden is a key
            if value != HIDDEN and (harmless(key, role) is None or _is_the_only_name(key, found))
        }

    def portable(self) -> dict[str, Any]:
        """Return what is compared as JSON that may leave this machine: without the folders of what never is."""
        parts: dict[str, Any] = {role: _shortened(self._compared(role)) for role in ROLES}
        return replace(self, **{**parts, "outcome": {}}).to_dict()

    @property
    def answered_by(self) -> list[str] | None:
        """Return the models that replied, sorted; None if nothing was asked."""
        found = self.outcome.get("answered_by", self.subject.get("answered_by"))
        return None if found is None else sorted(found)

    @property
    def judges(self) -> dict[str, Any]:
        """Return the judges by what they are."""
        return judges_of(self.instrument.get(JUDGES) or {})

    @property
    def votes(self) -> dict[str, Any]:
        """Return who votes where judges decide a metric, and how their votes become one verdict."""
        block = self.setting.get("judge") or {}
        return {JUDGES: self.judges, **{key: block.get(key) for key in ("repeats", "tie")}}

    @property
    def support(self) -> dict[str, Any]:
        """Return what decides the metrics of support: a classifier, or judges, their prompt and the rule of a tie.

        ``right`` is the metric that says which answers are right, with those that follow it. Empty without any.
        """
        found = dict(self.instrument.get(SUPPORT) or {})
        return {JUDGES: self.votes[JUDGES], "tie": self.votes["tie"], **found} if "prompt" in found else found

    @property
    def instruments(self) -> Mapping[str, Any]:
        """Return the instrument with what decides each metric of support, which the record holds once."""
        of_all = self.support
        crossed = of_all.pop("right", {}).items()
        found = {f"{OWN}{name}": {**of_all, "right": right} for right, names in crossed for name in names}
        return {**self.instrument, **({SUPPORT: of_all} if of_all else {}), **found}

    def with_support(self, by: Mapping[str, Any]) -> Measurement:
        """Return the record with what decides the metrics of support; of judges, what differs from its own."""
        own = {key: value for key, value in by.items() if content_key(value) != content_key(self.votes.get(key))}
        return self.adding("instrument", {SUPPORT: own} if by else {})

    def adding(self, role: Role, values: Mapping[str, Any]) -> Measurement:
        """Return the record with further entries of a role."""
        changed: dict[str, Any] = {role: {**getattr(self, role), **values}}
        return replace(self, **changed)

    def with_blocks(self, blocks: Mapping[str, Any]) -> Measurement:
        """Return the record with these blocks of the task in place of its own."""
        held = {k: name for k, name in (self.setting.get(_CONTENTS) or {}).items() if not is_named(k, list(blocks))}
        held |= _contents(blocks)
        own = {key: value for key, value in self.setting.items() if key != _CONTENTS}
        return replace(self, setting={**own, **blocks, **({_CONTENTS: held} if held else {})})


@dataclass(frozen=True, slots=True)
class Differs:
    """One key in which two records differ.

    Attributes:
        role: the role of the key; None if one of the records is missing.
        key: the dotted key within its role.
        first: the first record's value, None if it is not set.
        second: the second record's value, None if it is not set.
    """

    role: Role | None
    key: str
    first: Any
    second: Any

    @property
    def values(self) -> str:
        """Return both values as text: ``first | second``; what two machines have hidden does not compare."""
        apart = None not in (self.first, self.second) and machines_of(self.first) != machines_of(self.second)
        return _HIDDEN if apart else f"{shown(self.first)} | {shown(self.second)}"

    @property
    def text(self) -> str:
        """Return the first value as one that is not the task's: ``retrieval.k=3, not 5``."""
        return self.against("the task")

    def against(self, other: str) -> str:
        """Return the first value as one that is not that of ``other``."""
        if self.key == UNKNOWN:
            return f"{UNKNOWN} unknown"
        if self.first is None:
            return f"{self.key} {NOT_SET}, {shown(self.second)} in {other}"
        if self.key in SOURCES:
            return f"{self.key}: {self.first}"
        if self.values == _HIDDEN:
            return f"{self.key} {_HIDDEN}"
        not_this = f"{NOT_SET} in {other}" if self.second is None else f"not {shown(self.second)}"
        return f"{self.key}={shown(self.first)}, {not_this}"


def shown(value: Any) -> str:
    """Return a value of a record as people read it: of a hash, the beginning."""
    if value is None:
        return NOT_SET
    text = (" ".join(map(str, value)) or "[]") if isinstance(value, list) else str(value)
    return text[:_READ] if len(text) >= _HASH and text.isalnum() else text


def differences(
    first: Measurement | None,
    second: Measurement | None,
    roles: Collection[Role] = DECIDING,
    allowed: Sequence[str] = (),
) -> list[Differs]:
    """Return every key of these roles in which two records differ, sorted by key, harmless ones left out.

    ``allowed`` names keys, or blocks of them, that may differ (``retrieval``, ``retrieval.mode``, ``all``). An
    instrument that only one of them used is not compared: the settings say why the other needs none. Of a metric that
    other judges decide, their names are compared. A record that is missing differs from every other in the key
    :data:`UNKNOWN`.
    """
    if EVERYTHING in allowed:
        return []
    if first is None or second is None:
        one, other = ("unknown" if record is None else "known" for record in (first, second))
        return [] if UNKNOWN in allowed else [Differs(None, UNKNOWN, one, other)]
    first, second = _with_votes(first, second), _with_votes(second, first)
    a, b = first.flat(roles), second.flat(roles)
    mine, theirs = first.deciding(roles), second.deciding(roles)
    alone = {name for name in {*first.instruments, *second.instruments} - {_ALWAYS}
             if not (first.instruments.get(name) and second.instruments.get(name))}  # fmt: skip
    # a search of one of them has settings that the other one does not follow
    idle = first.idle if second.idle else ()
    # the settings of judges are compared if they are the same judges
    other_judges = a.get(JUDGES) != b.get(JUDGES)
    found: list[Differs] = []
    for key in sorted({*mine, *theirs}):
        role, _ = a.get(key) or b[key]
        block = key.partition(".")[0]
        if role == "instrument" and (block in alone or (other_judges and block == JUDGES != key)):
            continue
        seats = _seats(first, block), _seats(second, block)
        if all(seats) and seats[0] != seats[1] and key.startswith(named := f"{block}.{JUDGES}"):
            if not is_named(named, allowed) and named not in {one.key for one in found}:
                found.append(Differs(role, named, *seats))
            continue
        same = content_key(mine.get(key)) == content_key(theirs.get(key))
        if not same and not is_named(key, (*idle, *allowed)):
            values = (record.get(key, (role, None))[1] for record in (a, b))
            found.append(Differs(role, key, *map(_numbered, values) if key == JUDGES else values))
    return found


def _with_votes(record: Measurement, other: Measurement) -> Measurement:
    """Return a record that names who votes on each metric for which ``other`` names them: those of its whole task."""
    told = [key for key, value in other.instrument.items() if _seats(other, key) and value.keys() == other.votes.keys()]
    return record.adding("instrument", {key: record.instrument.get(key) or record.votes for key in told})


def _seats(record: Measurement, metric: str) -> list[str]:
    """Return the judges that are recorded for one metric, sorted."""
    found = record.instruments.get(metric)
    return _numbered(sorted(found.get(JUDGES) or ())) if isinstance(found, Mapping) and metric != JUDGES else []


def _numbered(judges: Any) -> Any:
    """Return the names of judges as tables name their seats: ``a#1`` beside ``a#2``."""
    return [f"{name}#1" if f"{name}#2" in judges else name for name in judges] if judges else judges


def by_block(found: Sequence[Differs]) -> list[Differs]:
    """Return differences with each block that one side lacks as a whole as one, told by what names it."""
    out = []
    for (block, missing), group in groupby(found, key=lambda one: (one.key.rpartition(".")[0], _missing(one))):
        keys = list(group)
        if missing is None or len(keys) < _A_BLOCK or ("." not in block and keys[0].role == "setting"):
            out += keys
            continue
        names = {one.key.rpartition(".")[2]: one for one in keys}
        name = next((names[end] for end in _NAMING if end in names), keys[0])
        out.append(Differs(name.role, block, name.first, name.second))
    return out


def _missing(one: Differs) -> str | None:
    return "first" if one.first is None else "second" if one.second is None else None


class Harmless(NamedTuple):
    """What may differ between two runs of one measurement, and why.

    Attributes:
        role: the role in whose keys it is; None for all of them.
        key: a dotted key, in which ``*`` is any part and ``{secret}`` the name of a header that carries a key.
        block: the key holds others, which may differ as well; else it is one leaf.
        reason: why it may differ.
    """

    role: Role | None
    key: str
    block: bool
    reason: str

    def holds(self, key: str) -> bool:
        """Return whether the entry means a key."""
        if self.key.endswith(_SECRET):
            above, _, name = key.rpartition(".")
            return fnmatchcase(above, self.key.removesuffix(_SECRET)) and header_has_key(name)
        return key == self.key or (self.block and key.startswith(f"{self.key}.")) or fnmatchcase(key, self.key)


@cache
def harmless_keys() -> tuple[Harmless, ...]:
    """Return the keys, and blocks of keys, in which records may differ."""
    listed = read_yaml(Path(__file__).with_name("harmless.yaml"), as_text=True)
    return tuple(
        Harmless(None if role == "any" else role, key.removesuffix(".**"), key.endswith(".**"), reason)
        for role, entries in listed.items()
        for key, reason in entries.items()
    )


@lru_cache(maxsize=4096)
def harmless(key: str, role: Role | None = None) -> str | None:
    """Return why a key may differ between two runs of the same measurement; None if it may not.

    Without a ``role``, the key is that of a setting or of any other role: names stand for one of them alone.
    """
    found = (one for one in harmless_keys() if None in (role, one.role) or role == one.role)
    return next((one.reason for one in found if one.holds(key)), None)


def is_named(key: str, names: Sequence[str]) -> bool:
    """Return whether one of the names is the key, or a block that holds it."""
    return any(key == name or key.startswith(f"{name}.") for name in names)


def _is_the_only_name(key: str, found: Collection[str]) -> bool:
    """Return whether a key is the address of a server beside which no model is named: another one is another model."""
    block, _, name = key.rpartition(".")
    return name in _ADDRESSES and not any(f"{block}.{model}" in found for model in _MODELS)


def _compared(key: str, value: Any) -> Any:
    """Return what is compared of a value: all of it, but for the address of an embedder whose model is named."""
    if (key.rpartition(".")[2] in _ADDRESSES or key.startswith(f"{_EMBEDDER}.")) and isinstance(value, str):
        return bare_address(value)
    if key == _EMBEDDER and isinstance(value, str):
        model, at, _ = value.partition("@http")
        return model if at and not model.endswith(":") else value
    return _with_whole_numbers(value)


def _with_whole_numbers(value: Any) -> Any:
    """Return a value with 1.0 as 1, which a file and a flag may write either way."""
    if isinstance(value, Mapping):
        return {key: _with_whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shortened(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a role of a record with the last part of each path that is never compared, and bare addresses."""

    def short(key: str, value: Any) -> Any:
        if not isinstance(value, str) or harmless(key) is None:
            return value
        return name_of_model(value) if value.startswith(("/", "~")) else bare_address(value)

    return _each(block, short)


def by_content(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with each model, prompt and file that lies here named by what it holds, wherever it lies."""
    held = _contents(settings)
    return _each(settings, lambda key, value: held.get(key, value))


def _contents(blocks: Mapping[str, Any]) -> dict[str, str]:
    """Return dotted key -> what it holds of each model, prompt and file that lies here, wherever it lies."""
    places = ((key, value) for key, value in dotted(blocks).items() if isinstance(value, str) and harmless(key) is None)
    named = {
        key: found if (found := marked(value)) != value else place_by_content(value)
        for key, value in places
        if VARIABLE.search(value) or any(fnmatchcase(key, one) for one in _PLACES)
    }
    return {key: held for key, held in named.items() if held}


def _each(block: Mapping[str, Any], change: Callable[[str, Any], Any], above: str = "") -> dict[str, Any]:
    """Return a block with ``change`` of every dotted key and its value, those of the blocks in it too."""
    return {
        name: _each(value, change, f"{above}{name}.") if isinstance(value, Mapping) else change(f"{above}{name}", value)
        for name, value in block.items()
    }


def setting_of(
    blocks: TaskBlocks, data: Mapping[str, Any], harness: Mapping[str, Any], texts: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a task, of a run or as its file states them.

    Args:
        blocks: its merged blocks.
        data: its block ``data``, validated, with defaults, as JSON.
        harness: its other keys, as the harness knows them.
        texts: the hashes of its prompts by what they are for.
    """
    mode = mode_named(blocks.retrieval.mode)
    own = {
        "retrieval": blocks.retrieval.model_dump(mode="json"),
        **({"agent": blocks.agent.model_dump(mode="json")} if mode.source == "agents" else {}),
        **({"contexts": OWN_CONTEXTS} if mode.asks_system else {}),
        "prompt": blocks.prompt.model_dump(mode="json"),
        "judge": blocks.judge.model_dump(mode="json"),
    }
    return {
        **{key: to_json(value) for key, value in harness.items() if key not in _NAMES},
        "version": (harness.get("metadata") or {}).get("version"),
        **own,
        **({_CONTENTS: held} if (held := _contents(own)) else {}),
        "data": dict(data),
        "metrics": list(blocks.metrics),
        "texts": dict(texts),
    }


def judges_of(seats: Mapping[str, Any]) -> dict[str, Any]:
    """Return judges by what they are, not by their seats in the panel: ``model``, ``model#2`` if it sits there again.

    ``seats`` are the settings that decide a seat's votes, under the names of the config file.
    """
    found: dict[str, Any] = {}
    for who in seats.values():
        who = who if isinstance(who, Mapping) else {"model": who}
        args = who.get("args") or {}
        name = str(args.get("model") or args.get("pretrained") or who.get("model"))
        again = (name if n == 1 else f"{name}#{n}" for n in range(1, len(found) + 2))
        found[next(seat for seat in again if seat not in found)] = dict(who)
    return found


def asked_of(instrument: Mapping[str, Any]) -> dict[str, str]:
    """Return the hash of everything that a run measured with, of judges by seat, as the rows of its ranks repeat it.

    What decides one metric alone has a name with a colon, and is not among it.
    """
    whole = {key: who for key, who in instrument.items() if key != JUDGES and ":" not in key}
    whole |= {f"{JUDGES}.{seat}": who for seat, who in (instrument.get(JUDGES) or {}).items()}
    return {key: content_key(hidden(to_json(who)))[:16] for key, who in whole.items()}


def names_in(records: Sequence[Measurement | None]) -> Iterator[str]:
    """Yield every name under which records may be said to differ: keys, and blocks of them."""
    for record in records:
        for key in record.flat(DECIDING) if record is not None else ():
            parts = key.split(".")
            yield from (".".join(parts[:n]) for n in range(1, len(parts) + 1))
