"""The scored row as it is written to sample files, and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any, TypeVar, cast

from mrag_eval.config import CORRECT, HOLDS_ANSWER, RIGHT_LANGUAGE
from mrag_eval.core import (
    YES_NO,
    Failure,
    Grounding,
    Judgement,
    Labels,
    VerdictScale,
    VerdictValue,
    Vote,
    can_be_score,
    not_finite,
)
from mrag_eval.metrics import Outcome
from mrag_eval.models import CallCounts, summed
from mrag_eval.platform import OPTIONAL, check_version, from_json, optional_beside, with_version
from mrag_eval.scoring._answers import Answer

T = TypeVar("T")
# What came back from models: the role or the judge's seat -> counts, and counts by name.
_CameBack = Mapping[str, Mapping[str, int | Mapping[str, int]]]
_FIX = "run again with --log_samples --output_path FOLDER"


@dataclass(frozen=True, slots=True)
class Graded:
    """A vote for a grade or a label, which a reason for an abstention could not be told from."""

    verdict: int | str


@dataclass(frozen=True, slots=True)
class JudgedRecord:
    """A panel's verdict on a row. ``votes``: seat -> its verdict, or the reason why it abstained."""

    verdict: VerdictValue | None
    outcome: str
    disagreement: float | None = field(default=None, metadata=optional_beside("votes"))
    votes: Mapping[str, bool | str | Graded | None] = field(default_factory=dict, metadata=OPTIONAL)

    @classmethod
    def of(cls, judgement: Judgement) -> JudgedRecord:
        """Return the fields of a judgement that the panel's table needs: verdicts, and for an abstention its reason."""
        votes = {seat: _in_short(vote) for seat, vote in judgement.votes.items()}
        return cls(judgement.verdict, judgement.outcome, judgement.disagreement, votes)

    def vote(self, seat: str) -> VerdictValue | None:
        """Return the verdict of a seat; None if it abstained or was not asked."""
        found = self.votes.get(seat)
        return found.verdict if isinstance(found, Graded) else found if isinstance(found, bool) else None

    def why_not(self, seat: str) -> str | None:
        """Return the reason why a seat abstained; None if it did not."""
        found = self.votes.get(seat)
        return found if isinstance(found, str) else None


def _in_short(vote: Vote) -> bool | str | Graded | None:
    if vote.verdict is None:
        return vote.reason
    return vote.verdict if isinstance(vote.verdict, bool) else Graded(vote.verdict)


def sufficiency_record(judgement: Judgement | None) -> dict[str, Any]:
    """Return the panel's judgement on a row's passages, by the fields of its record."""
    if judgement is None:
        return {}
    return {"sufficiency": JudgedRecord.of(judgement), "sufficiency_votes": judgement.votes}


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """The relevance labels of a ranking: its relevant passages, numbered from 1, or the ``fault``.

    ``votes``: seat -> the numbers that it listed, or why it abstained.
    """

    by: str
    judged: int
    fault: str | None = field(default=None, metadata=OPTIONAL)
    relevant: tuple[int, ...] | None = field(default=None, metadata=OPTIONAL)
    votes: Mapping[str, tuple[int, ...] | str] = field(default_factory=dict, metadata=OPTIONAL)

    @classmethod
    def of(cls, labels: Labels) -> LabelRecord:
        """Return the labels as samples show them: numbers in the order of the ranking, and the votes."""
        relevant = tuple(n for n, passage in enumerate(labels.judged, 1) if passage in labels.relevant)
        found = relevant if labels.fault is None else None
        return cls(labels.by, len(labels.judged), labels.fault, found, labels.votes)


@dataclass(frozen=True, slots=True)
class RerankedRecord:
    """The outcome of a row's lists in a listwise reranker; ``fault`` is the reason why it failed."""

    lists: int
    repaired: int
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class LoopRecord:
    """The course of the agents' loop on a row.

    ``source`` is the language of the row's culture, else of its question. ``chosen`` counts the rounds in which each
    language was chosen, ``used`` the passages shown in it (in their own language, where they are shown translated).
    """

    source: str
    rounds: int
    stopped: str
    valid: int
    shown: int
    fallback: bool
    faults: Mapping[str, int]
    calls: int
    cached: int
    tokens: int
    chosen: Mapping[str, int]
    used: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SearchedLanguages:
    """Passages of each language.

    Attributes:
        retrieved: language -> how many were retrieved.
        searchable: language -> how many there were to find.
    """

    retrieved: Mapping[str, int]
    searchable: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class TerritoryQuestion:
    """A question about a disputed territory, as the concurrence scores need it."""

    query_id: str
    query_lang: str
    territory: str
    claimants: tuple[str, ...]
    claimant_langs: tuple[str, ...]
    controller: str
    controller_lang: str
    control_query: bool


@dataclass(frozen=True, slots=True)
class TerritoryAnswer(TerritoryQuestion):
    """The same with the option chosen (its index, -1: none), and the outcome of a reply without an option."""

    claimant_ind: int
    outcome: Outcome

    @property
    def country(self) -> str | None:
        """Return the claimant that the reply names, None if no option could be read."""
        return self.claimants[self.claimant_ind] if self.claimant_ind >= 0 else None


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """A reply with citations, and the languages of the documents in its prompt."""

    answer: str
    document_langs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """The answer read off a reply: its ``text`` if it is not the whole reply."""

    text: str | None = field(default=None, metadata=OPTIONAL)
    tagged: bool | None = field(default=None, metadata=OPTIONAL)
    declined: bool | None = field(default=None, metadata=OPTIONAL)
    loglikelihoods: tuple[float, ...] = field(default=(), metadata=OPTIONAL)

    @classmethod
    def of(cls, answer: Answer, reply: str) -> AnswerRecord | None:
        """Return the fields of an answer that the reply alone does not show; None if it shows all of them."""
        text = None if answer.text == reply else answer.text
        if answer.tagged is None:
            return None if text is None else cls(text)
        return cls(text, answer.tagged, answer.declined)


@dataclass(frozen=True, slots=True)
class PromptCounts:
    """The token limit and its source, the number of prompts, and of those whose passages were shortened."""

    limit: int | None = None
    source: str = "unknown"
    prompts: int = 0
    shortened: int | None = None


@dataclass(frozen=True, slots=True)
class PanelShare:
    """One rank's part of a panel's table: seat -> model, model -> ledger, the check of languages, and the scale.

    ``came_back`` holds what came back from each seat.
    """

    models: Mapping[str, str]
    ledger: Mapping[str, CallCounts]
    language_check: str | None = field(default=None, metadata=OPTIONAL)
    scale: VerdictScale = field(default=YES_NO, metadata=OPTIONAL)
    came_back: _CameBack = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LabellingShare:
    """One rank's part of the table of labels: the labeller, and the panel's part or the proxy's threshold."""

    by: str
    threshold: float | None = field(default=None, metadata=OPTIONAL)
    n: int | None = field(default=None, metadata=OPTIONAL)
    models: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    ledger: Mapping[str, CallCounts] = field(default_factory=dict, metadata=OPTIONAL)
    came_back: _CameBack = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """What the controls of a row score.

    Attributes:
        values: control -> metric -> value.
        unscored: control -> metric -> why the metric has no value of its reply.
        missing: control -> why the row has no reply or ranking for it.
    """

    values: Mapping[str, Mapping[str, float]] = field(default_factory=dict, metadata=OPTIONAL)
    unscored: Mapping[str, Mapping[str, str]] = field(default_factory=dict, metadata=OPTIONAL)
    missing: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)

    def why_not(self, control: str, metric: str) -> str | None:
        """Return why a metric has no value for a control; None if nothing says so."""
        return self.unscored.get(control, {}).get(metric) or self.missing.get(control)


@dataclass(frozen=True, slots=True)
class RowRecord:
    """The fields of one row that the scores need, and that its line of a sample file shows.

    ``row`` is the row's id, ``cell`` its place in every breakdown (``query_lang`` always), ``values`` its scores by
    metric, ``unscored`` the reasons why a metric has none. Rows of one ``group`` are resampled together; ``question``
    identifies versions of one question. ``gold_positions`` are the places, from 1, of supporting passages in the
    prompt. ``retrieved`` and ``kept`` are 1 if a relevant document is in the ranking, and in the prompt. ``failures``
    are those of the stages of its pipeline. ``fate`` is what became of the request for its reply (one of
    :data:`~mrag_eval.core.FATES`, None without a request), ``offered`` whether the prompt offered the reply ``None``,
    and ``outcome`` how the model gave no answer to read (one of :data:`~mrag_eval.core.OUTCOMES`, None if it gave one).
    ``unanswered`` is the question about a territory that has no answer because of a failure. ``controls`` are the
    scores of replies that need no model, ``grounding`` what a classifier or a panel found of its claims.

    The last nine, from ``prompts``, are in one record of every rank: they are summed when the ranks are gathered.
    ``came_back`` is what came back from models that are no judges; ``asked`` is the hash of each model and tool that
    it measured with, which no sum needs.
    """

    row: str
    cell: Mapping[str, str]
    values: Mapping[str, float]
    gold_positions: tuple[int, ...] = field(default=(), metadata=OPTIONAL)
    group: str | None = field(default=None, metadata=OPTIONAL)
    question: Any = field(default=None, metadata=OPTIONAL)
    unscored: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)
    failures: tuple[Failure, ...] = field(default=(), metadata=OPTIONAL)
    fate: str | None = field(default=None, metadata=OPTIONAL)
    offered: bool = field(default=False, metadata=OPTIONAL)
    outcome: str | None = field(default=None, metadata=OPTIONAL)
    judge: JudgedRecord | None = field(default=None, metadata=OPTIONAL)
    relevance: LabelRecord | None = field(default=None, metadata=OPTIONAL)
    rerank: RerankedRecord | None = field(default=None, metadata=OPTIONAL)
    loop: LoopRecord | None = field(default=None, metadata=OPTIONAL)
    languages: SearchedLanguages | None = field(default=None, metadata=OPTIONAL)
    retrieved: int | None = field(default=None, metadata=OPTIONAL)
    kept: int | None = field(default=None, metadata=OPTIONAL)
    concurrence: TerritoryAnswer | None = field(default=None, metadata=OPTIONAL)
    unanswered: TerritoryQuestion | None = field(default=None, metadata=OPTIONAL)
    citations: CitedAnswer | None = field(default=None, metadata=OPTIONAL)
    sufficiency: JudgedRecord | None = field(default=None, metadata=OPTIONAL)
    sufficiency_votes: Mapping[str, Vote] | None = field(default=None, metadata=OPTIONAL)
    answer: AnswerRecord | None = field(default=None, metadata=OPTIONAL)
    answer_translated: str | None = field(default=None, metadata=OPTIONAL)
    controls: ControlRecord | None = field(default=None, metadata=OPTIONAL)
    grounding: Grounding | None = field(default=None, metadata=OPTIONAL)
    prompts: PromptCounts | None = field(default=None, metadata=OPTIONAL)
    skipped: tuple[TerritoryQuestion, ...] = field(default=(), metadata=OPTIONAL)
    translation: Mapping[str, Any] | None = field(default=None, metadata=OPTIONAL)
    panel: PanelShare | None = field(default=None, metadata=OPTIONAL)
    sufficiency_panel: PanelShare | None = field(default=None, metadata=OPTIONAL)
    claims_panel: PanelShare | None = field(default=None, metadata=OPTIONAL)
    labelling: LabellingShare | None = field(default=None, metadata=OPTIONAL)
    came_back: _CameBack = field(default_factory=dict, metadata=OPTIONAL)
    asked: Mapping[str, str] = field(default_factory=dict, metadata=OPTIONAL)

    @property
    def shares(self) -> tuple[PanelShare | LabellingShare, ...]:
        """Return the parts of the judges' tables that the record carries for its rank."""
        found = (self.panel, self.sufficiency_panel, self.claims_panel, self.labelling)
        return tuple(share for share in found if share is not None)

    @property
    def seats(self) -> dict[str, Any]:
        """Return what came back from each seat that the record counts for its rank, judges among them."""
        return summed([self.came_back, *(share.came_back for share in self.shares)])

    @property
    def right(self) -> bool | None:
        """Return whether the answer is right, by the first of :data:`CORRECT` that the row has; None without one."""
        metric = next((name for name in CORRECT if name in self.values), None)
        return None if metric is None else self.values[metric] == 1.0

    @property
    def query_lang(self) -> str:
        """Return the language of the question, empty if the record does not contain it."""
        return self.cell.get("query_lang", "")

    def answer_to(self, reply: str) -> Answer:
        """Return the answer that was read off the row's ``reply``."""
        if self.answer is None:
            return Answer(reply)
        text = reply if self.answer.text is None else self.answer.text
        return Answer(text, self.answer.tagged, self.answer.declined)

    @property
    def resampled_with(self) -> str:
        """Return the group that is resampled together with the row: its group, else the row alone."""
        return self.row if self.group is None else self.group

    def to_dict(self) -> dict[str, Any]:
        """Return the record as JSON."""
        return with_version(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str = "a row's record") -> RowRecord:
        """Return the record behind :meth:`to_dict`. Raises DataError for another schema, and for a faulty key."""
        check_version(value, where)
        record = from_json(cls, _without_nan({**value, **_in_common(value)}), where, _FIX)
        for name in ("cell", "values", "unscored", "came_back", "asked", "controls"):
            # nobody else has the record yet
            object.__setattr__(record, name, in_common(getattr(record, name)))
        return record


_PARTS: dict[str, Any] = {}


def in_common(part: T) -> T:
    """Return a part of a row's record, once in memory for the rows that have it alike; no row changes it."""
    if len(_PARTS) > 4096:
        _PARTS.clear()
    # the text tells 0.0 from -0.0
    return cast("T", _PARTS.setdefault(repr(part), part))


def right_language(values: Mapping[str, float]) -> float | None:
    """Return 1 if a row's values say that its answer is in the language asked for, 0 if not; None: it is not known."""
    return next((values[name] for name in RIGHT_LANGUAGE if name in values), None)


def stage_of(row: RowRecord) -> str:
    """Return the last stage that a row reached; empty if a step failed, or its retrieval or verdict is not known."""
    from mrag_eval.metrics import lost_stage

    right = next((row.values[name] for name in CORRECT if name in row.values), None)
    if row.retrieved is None or right is None or row.failures:
        return ""
    held = any(row.values.get(name) == 1.0 for name in HOLDS_ANSWER)
    kept = row.retrieved if row.kept is None else row.kept
    return lost_stage(row.retrieved, kept, right, right_language(row.values), held)


def _in_common(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a row's record that have few distinct texts, each text once in memory for all rows."""

    def shared(part: Any) -> Any:
        if isinstance(part, dict):
            return {intern(key): shared(value) for key, value in part.items()}
        return intern(part) if type(part) is str else part

    return {name: shared(record[name]) for name in ("cell", "values", "unscored", "fate") if name in record}


def _without_nan(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row's record in which a value that is not finite is a missing one, with that reason."""
    values = record.get("values")
    if not isinstance(values, Mapping):
        return record
    wrong = {
        name: found for name, found in values.items() if isinstance(found, int | float) and not can_be_score(found)
    }
    if not wrong:
        return record
    rest = {name: value for name, value in values.items() if name not in wrong}
    reasons = {name: not_finite(value) for name, value in wrong.items()}
    return {**record, "values": rest, "unscored": {**(record.get("unscored") or {}), **reasons}}


def groups_of(rows: Sequence[RowRecord]) -> list[str] | None:
    """Return what each row is resampled with; None if that is the row alone throughout."""
    groups = [row.resampled_with for row in rows]
    return groups if len(set(groups)) < len(groups) else None
