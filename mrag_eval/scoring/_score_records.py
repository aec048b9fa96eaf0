"""The scores of a task as they are written to result files, under ``configs.<task>.scores``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mrag_eval.config import CORRECT, GROUNDED, SUFFICIENCY, verdict_metrics
from mrag_eval.core import YES_NO, VerdictScale, can_be_score, not_finite
from mrag_eval.metrics import CitationRates, ErrorAttribution, Estimate, LanguageCitations
from mrag_eval.models import CallCounts
from mrag_eval.platform import OPTIONAL, check_version, from_json, with_version
from mrag_eval.scoring._reasons import BY_RULE
from mrag_eval.scoring._row_records import PromptCounts

Counts = Mapping[str, int]
# Step -> reason -> rows whose way to a score failed there.
FailureCounts = Mapping[str, Counts]
# The largest share of rows that may have failed where a score is still a headline, and ranked; and of the rows of a
# language that is not marked.
MOST_FAILED, MOST_FAILED_IN_LANGUAGE = 0.05, 0.10
_FIX = "run again, or name the results_*.json of another run"


@dataclass(frozen=True, slots=True)
class MetricScore(Estimate):
    """A metric's score over all rows, and in the cells of every dimension.

    ``macro`` holds the plain means over pairs of question and document language, ``same_language`` and
    ``cross_language``; ``unscored_by_pair`` counts the rows left out of each pair. ``by``: dimension -> cell -> score.
    ``failed`` counts the rows whose way to the score failed, and ``bounds`` are the score with all of them at the
    worst and at the best value of its range (Manski 1989). ``unread``: language, or ``macro`` -> an accuracy with all
    replies whose choice could not be read wrong, and right, if their shares differ between languages.
    """

    macro: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)
    unscored_by_pair: Counts = field(default_factory=dict, metadata=OPTIONAL)
    by: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict, metadata=OPTIONAL)
    failed: int = field(default=0, metadata=OPTIONAL)
    bounds: tuple[float, float] | None = field(default=None, metadata=OPTIONAL)
    unread: Mapping[str, tuple[float, float]] = field(default_factory=dict, metadata=OPTIONAL)

    @property
    def failed_share(self) -> float:
        """Return the share of rows whose way to the score failed, of those and the scored ones."""
        return self.failed / max(self.n + self.failed, 1)

    @property
    def no_headline(self) -> str | None:
        """Return why the score is no headline and has no rank: too many rows failed. None if it may be one."""
        if self.failed_share <= MOST_FAILED:
            return None
        return f"{self.failed:,} of {self.n + self.failed:,} rows failed, more than {MOST_FAILED:.0%}"

    def cells(self, dimension: str) -> Mapping[str, Estimate]:
        """Return the scores of one dimension by cell, empty if it has none."""
        return self.by.get(dimension, {})


@dataclass(frozen=True, slots=True)
class AttributionTable:
    """The sources of errors, overall and by language pair; ``correct_by`` is the metric that calls rows right."""

    correct_by: str
    overall: ErrorAttribution
    by_pair: Mapping[str, ErrorAttribution] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class SelectionLinks:
    """How often a relevant document was retrieved, and how often such a document was kept for the prompt.

    ``in_prompt`` is the share of all questions with one in the prompt. Unlike ``hit@k`` over documents, it counts the
    passages that are shown.
    """

    retrieved: Estimate
    kept_if_retrieved: Estimate
    in_prompt: Estimate = field(default=Estimate(None), metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class SelectionTable:
    """The first two links from retrieval to the answer, overall and by language pair."""

    overall: SelectionLinks
    by_pair: Mapping[str, SelectionLinks] = field(default_factory=dict, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Preference:
    """How much passages in one language are preferred over their share of the corpus."""

    ratio: Estimate
    normalised: float | None = None
    n_queries: int | None = None


@dataclass(frozen=True, slots=True)
class LanguageTable:
    """Languages of retrieved passages: ``query->document`` -> passages, and the preference for the question's."""

    retrieved: Counts
    preference: Mapping[str, Preference] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RerankTable:
    """Counts of lists ordered by a language model, replies that were repaired, and failed rows by reason."""

    rows: int
    lists: int
    repaired: int
    faults: Counts


@dataclass(frozen=True, slots=True)
class TranslationTable:
    """The translator, the number of texts of each kind by outcome, and the cost."""

    translator: str = ""
    counts: Mapping[str, Counts] = field(default_factory=dict)
    cost: Mapping[str, Any] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class LabelTable:
    """Counts of labelled rankings: ``by`` whom, rows with labels and without, passages found relevant.

    ``relevant`` is the mean number of relevant passages of a labelled row, ``none`` counts labelled rows without one.
    ``threshold`` and ``n`` are the proxy's; ``judges`` (seat -> model), ``abstained`` and ``ledger`` the panel's.
    """

    by: str
    labelled: int = 0
    unlabelled: Counts = field(default_factory=dict)
    relevant: float | None = None
    none: int = 0
    threshold: float | None = field(default=None, metadata=OPTIONAL)
    n: int | None = field(default=None, metadata=OPTIONAL)
    judges: Mapping[str, str] | None = field(default=None, metadata=OPTIONAL)
    abstained: Counts | None = field(default=None, metadata=OPTIONAL)
    ledger: Mapping[str, CallCounts] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class PerQuestion:
    """Means over questions of calls, tokens (in and out) and valid documents."""

    calls: float
    tokens: float
    valid: float


@dataclass(frozen=True, slots=True)
class LoopLanguages:
    """The use that the agents' loop made of each language.

    Attributes:
        chosen: language -> how often the planner chose its corpus.
        used: language -> how many passages in it were shown.
    """

    chosen: Counts
    used: Counts


@dataclass(frozen=True, slots=True)
class LoopTable:
    """The course of the agents' loop over all rows.

    ``rounds`` and ``stopped`` count rows by how many rounds they took and why they ended, ``faults`` the faults of the
    agents' replies. ``without_documents`` is the share of rows that were answered without documents, ``fallback`` that
    of rows shown documents of which none is valid, both of rows without a failed call. ``cached`` counts calls from the
    cache. ``languages``: source
    language -> languages chosen and used. ``by_rounds`` and ``by_calls`` hold the score ``correct_by`` by their number.
    """

    rows: int
    rounds: Counts = field(default_factory=dict)
    stopped: Counts = field(default_factory=dict)
    faults: Counts = field(default_factory=dict)
    without_documents: Estimate = field(default=Estimate(None))
    fallback: Estimate = field(default=Estimate(None))
    per_question: PerQuestion = field(default=PerQuestion(0.0, 0.0, 0.0))
    cached: int = 0
    languages: Mapping[str, LoopLanguages] = field(default_factory=dict)
    by_rounds: Mapping[str, Estimate] | None = field(default=None, metadata=OPTIONAL)
    by_calls: Mapping[str, Estimate] | None = field(default=None, metadata=OPTIONAL)
    correct_by: str | None = field(default=None, metadata=OPTIONAL)

    @property
    def mean_rounds(self) -> float:
        """Return the mean number of rounds of a row."""
        return sum(int(number) * count for number, count in self.rounds.items()) / self.rows


@dataclass(frozen=True, slots=True)
class JudgeColumn:
    """One seat of a panel.

    ``correct`` is its share of verdicts "correct" or its mean grade (leniency), ``labels`` the share of each label;
    ``abstained`` counts reasons. ``self_preference``: if its
    model is of the evaluated model's family, its verdicts minus those of the other families' judges on the same rows.
    ``no_verdict`` is the share of the rows in a language, of those it was asked about, on which it gave no verdict.
    """

    model: str = ""
    correct: Estimate = field(default=Estimate(None))
    abstained: Counts = field(default_factory=dict)
    self_preference: Estimate | None = field(default=None, metadata=OPTIONAL)
    no_verdict: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)
    labels: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)

    @property
    def failed(self) -> str | None:
        """Return how many of its votes failed, of all, and why; None if none did."""
        if not self.abstained:
            return None
        failed = sum(self.abstained.values())
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in self.abstained.items())
        return f"{failed:,} of {failed + self.correct.n:,} ({reasons})"

    @property
    def silent(self) -> bool:
        """Return whether all of its votes failed, so that it judged nothing."""
        return bool(self.abstained) and not self.correct.n


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """The agreement of a panel's seats.

    ``pairwise`` is Cohen's kappa of every two seats (``a | b``), of grades with quadratic weights. ``fleiss`` is
    Fleiss' kappa of yes and no over rows in which every seat voted, ``alpha`` Krippendorff's alpha of grades (ordinal)
    or labels (nominal) over rows in which two did.
    """

    pairwise: Mapping[str, Estimate]
    fleiss: Estimate | None = field(default=None, metadata=OPTIONAL)
    alpha: Estimate | None = field(default=None, metadata=OPTIONAL)

    @property
    def of_all(self) -> dict[str, Estimate]:
        """Return the agreement of all seats, by its name."""
        found = {"Fleiss' kappa": self.fleiss, "Krippendorff's alpha": self.alpha}
        return {name: estimate for name, estimate in found.items() if estimate is not None}


@dataclass(frozen=True, slots=True)
class PanelTable:
    """The verdicts of a panel.

    ``size`` counts seats; ``outcomes`` rows: unanimous, majority, median, tie, unjudged, and without a vote declined,
    empty, no reference; ``abstained`` votes by reason. ``disagreement`` is the mean share of votes against the most
    frequent one. ``scale`` are the verdicts.
    ``judges`` are the seats; ``ledger``: model -> calls, tokens and time; ``language_check`` names the detector.
    ``no_verdict`` is the share of the rows in a language, of those the panel voted on, that it left without a verdict.
    """

    size: int = 0
    outcomes: Counts = field(default_factory=dict)
    abstained: Counts = field(default_factory=dict)
    disagreement: float | None = None
    judges: Mapping[str, JudgeColumn] = field(default_factory=dict)
    agreement: JudgeAgreement | None = field(default=None, metadata=OPTIONAL)
    ledger: Mapping[str, CallCounts] = field(default_factory=dict)
    language_check: str | None = field(default=None, metadata=OPTIONAL)
    no_verdict: Mapping[str, Estimate] = field(default_factory=dict, metadata=OPTIONAL)
    scale: VerdictScale = field(default=YES_NO, metadata=OPTIONAL)

    @property
    def marked_languages(self) -> dict[str, dict[str, Estimate]]:
        """Return who gave too few verdicts to compare a language's scores without a mark: language -> seat -> share.

        The seat of the panel as a whole is ``panel``.
        """
        found: dict[str, dict[str, Estimate]] = {}
        seats = {"panel": self.no_verdict, **{seat: judge.no_verdict for seat, judge in self.judges.items()}}
        for seat, shares in seats.items():
            for language, share in shares.items():
                if share.or_else(0.0) > MOST_FAILED_IN_LANGUAGE:
                    found.setdefault(language, {})[seat] = share
        return dict(sorted(found.items()))

    @property
    def models(self) -> list[str]:
        """Return the models of the seats that judged, each once: of those with a vote, if any of theirs failed."""
        return [*dict.fromkeys(judge.model or seat for seat, judge in self.judges.items() if not judge.silent)]

    @property
    def failed_votes(self) -> str | None:
        """Return the votes that failed, judge by judge, and who has no vote at all; None if none failed."""
        found = [f"{seat} {judge.failed}" for seat, judge in self.judges.items() if judge.failed]
        if silent := [seat for seat, judge in self.judges.items() if judge.silent]:
            found.append(f"without any vote, so no judge of this run: {', '.join(silent)}")
        return "; ".join(found) or None


@dataclass(frozen=True, slots=True)
class LanguageFailures:
    """The rows in one language whose way to a score failed, and those that the model left without an answer.

    Attributes:
        failed: the share of its rows of which a stage failed, with a Wilson interval.
        failures: step -> reason -> rows.
        outcomes: outcome (refusal, thinking cut, empty) -> rows.
    """

    failed: Estimate
    failures: FailureCounts = field(default_factory=dict)
    outcomes: Counts = field(default_factory=dict)

    @property
    def marked(self) -> bool:
        """Return whether enough rows failed for the language's scores to be marked."""
        return self.failed.or_else(0.0) > MOST_FAILED_IN_LANGUAGE


@dataclass(frozen=True, slots=True)
class SkippedQuestions:
    """The questions that the mode skipped, and the territories that only they ask about."""

    queries: int
    territories: int


@dataclass(frozen=True, slots=True)
class ConcurrenceTable:
    """Concurrence over territories (BordIRlines, section 4.1 and Table 4).

    ``scores`` and ``intervals`` count refusals as the published tables do, ``exclude`` and ``incorrect`` in the two
    other ways. ``random`` is the score of answers drawn at random. Questions that the mode skips count as missing:
    ``deflated`` names the scores that this lowers, ``answered_only`` leaves their territories out. ``unanswered``
    counts questions whose way to an answer failed; their territories, ``lost``, are in no score.
    """

    scores: Mapping[str, Any] = field(default_factory=dict)
    intervals: Mapping[str, Estimate] = field(default_factory=dict)
    random: Mapping[str, float | None] = field(default_factory=dict)
    refusals: int = 0
    refused_controls: int = 0
    outcomes: Counts = field(default_factory=dict)
    rates: Mapping[str, Estimate] = field(default_factory=dict)
    exclude: Mapping[str, Estimate] = field(default_factory=dict)
    incorrect: Mapping[str, Estimate] = field(default_factory=dict)
    skipped: SkippedQuestions | None = field(default=None, metadata=OPTIONAL)
    deflated: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    answered_only: Mapping[str, Any] | None = field(default=None, metadata=OPTIONAL)
    lost: int = field(default=0, metadata=OPTIONAL)
    unanswered: int = field(default=0, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class CitationTable(CitationRates):
    """Citations from one source (inline marks, or the line of cited documents), by language of the documents.

    ``preference``: column -> target -> cell -> figures.
    """

    # said again, since pydantic looks their types up here
    by_language: Mapping[str, LanguageCitations] = field(default_factory=dict)
    by_query_language: Mapping[str, Mapping[str, LanguageCitations]] = field(default_factory=dict)
    preference: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def own_rates(self, question: str) -> tuple[float | None, float | None]:
        """Return inclusion and citation of the documents in a question's language (Figure 4).

        Both are 0 if such documents were never shown; citation is None if no reply to such a question cites any.
        """
        found = self.by_query_language[question]
        if question in found:
            return found[question].inclusion_mean, found[question].citation_mean
        return 0.0, None if all(entry.citation_mean is None for entry in found.values()) else 0.0


@dataclass(frozen=True, slots=True)
class MetricControls:
    """What the controls of a metric score in one language.

    Attributes:
        found: control -> its mean; without a value it was not measured, for that reason.
        share: the score as a share between floor and ceiling, over the rows that have all three: 0 at the floor, 1 at
            the ceiling, and beyond where a score is. Its interval is over all three. None without a score.
    """

    found: Mapping[str, Estimate]
    share: Estimate | None = field(default=None, metadata=OPTIONAL)

    @property
    def means(self) -> dict[str, float | None]:
        """Return the mean of each control."""
        return {name: one.value for name, one in self.found.items()}


@dataclass(frozen=True, slots=True)
class TaskScores:
    """The scores of a task.

    ``rows`` counts rows, ``query_langs`` those of each language of questions. ``metrics`` hold every score;
    ``unscored`` counts the rows without one: metric -> reason -> rows. The other parts are present where they apply:
    scores of the task as a whole (``concurrence``, ``citations``), prompts, where the errors come from
    (``attribution``, if relevance and correctness are known; ``selection``, if relevance is), what was retrieved by
    language, reranked, translated and labelled, how the agents' loop went, and how the panel judged answers
    (``judge``), passages (``sufficiency``) and claims of answers (``claims``).

    ``failures`` counts the rows whose way to a score failed: step -> reason -> rows; ``outcomes`` those that the model
    left without an answer, by name, and ``cut_off`` those whose reply ended at its limit of tokens. ``by_language``
    has the first two for each language, if there is any of them.
    ``controls``: metric -> language -> what replies that need no model score.
    """

    rows: int = 0
    metrics: Mapping[str, MetricScore] = field(default_factory=dict)
    unscored: Mapping[str, Counts] = field(default_factory=dict)
    query_langs: Counts = field(default_factory=dict)
    failures: FailureCounts = field(default_factory=dict, metadata=OPTIONAL)
    outcomes: Counts = field(default_factory=dict, metadata=OPTIONAL)
    by_language: Mapping[str, LanguageFailures] = field(default_factory=dict, metadata=OPTIONAL)
    cut_off: int = field(default=0, metadata=OPTIONAL)
    concurrence: ConcurrenceTable | None = field(default=None, metadata=OPTIONAL)
    citations: Mapping[str, CitationTable] | None = field(default=None, metadata=OPTIONAL)
    prompts: PromptCounts | None = field(default=None, metadata=OPTIONAL)
    attribution: AttributionTable | None = field(default=None, metadata=OPTIONAL)
    selection: SelectionTable | None = field(default=None, metadata=OPTIONAL)
    languages: LanguageTable | None = field(default=None, metadata=OPTIONAL)
    rerank: RerankTable | None = field(default=None, metadata=OPTIONAL)
    translation: TranslationTable | None = field(default=None, metadata=OPTIONAL)
    relevance: LabelTable | None = field(default=None, metadata=OPTIONAL)
    loop: LoopTable | None = field(default=None, metadata=OPTIONAL)
    judge: PanelTable | None = field(default=None, metadata=OPTIONAL)
    sufficiency: PanelTable | None = field(default=None, metadata=OPTIONAL)
    claims: PanelTable | None = field(default=None, metadata=OPTIONAL)
    controls: Mapping[str, Mapping[str, MetricControls]] = field(default_factory=dict, metadata=OPTIONAL)

    @property
    def unscored_share(self) -> float:
        """Return the largest share of rows that a metric could not score; 1 if nothing at all was measured.

        Rows that a rule leaves out are no failures, and do not count: short replies for ``correct_language``, rows
        that count for another rate, and every row where the run's settings leave nothing to measure (:data:`BY_RULE`).
        """
        if self.rows and not (self.metrics or self.unscored or self.concurrence or self.citations):
            return 1.0
        counts = (
            sum(rows for reason, rows in reasons.items() if reason not in BY_RULE)
            for name, reasons in self.unscored.items()
            if name != "correct_language"
        )
        return max(counts, default=0) / max(self.rows, 1)

    @property
    def marked_languages(self) -> dict[str, Estimate]:
        """Return the languages whose scores are marked for their failed rows, with the share of those."""
        return {language: part.failed for language, part in self.by_language.items() if part.marked}

    @property
    def failed_everywhere(self) -> str | None:
        """Return the first step at which every row failed; None if some rows passed each."""
        return next((step for step, why in self.failures.items() if sum(why.values()) == self.rows), None)

    @property
    def panels(self) -> dict[str, PanelTable]:
        """Return the tables of the panels by what they judged."""
        found = {"answers": self.judge, "contexts": self.sufficiency, "claims": self.claims}
        return {what: table for what, table in found.items() if table is not None}

    def deciding(self, metric: str) -> dict[str, PanelTable]:
        """Return the tables of the panels that decide a metric, by what they judged: of claims before those of answers.

        A metric of claims is decided by the panel of answers as well, if a verdict says which answers are right.
        """
        right = next((name for name in CORRECT if name in {**self.metrics, **self.unscored}), "")
        of_answers = verdict_metrics([metric, right] if metric in GROUNDED[1:] else [metric])
        asked = {"claims": metric in GROUNDED, "contexts": metric == SUFFICIENCY, "answers": bool(of_answers)}
        return {what: self.panels[what] for what, decides in asked.items() if decides and what in self.panels}

    def judges(self, metric: str) -> list[str]:
        """Return the models of the judges that decide a metric, each once."""
        return [*dict.fromkeys(model for table in self.deciding(metric).values() for model in table.models)]

    @property
    def silent_judges(self) -> list[JudgeColumn]:
        """Return the judges that were asked and gave no vote."""
        return [judge for table in self.panels.values() for judge in table.judges.values() if judge.silent]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON."""
        return with_version(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], where: str = "scores") -> TaskScores:
        """Return the scores behind :meth:`to_dict`. Raises DataError for another schema, and for a faulty key."""
        check_version(value, where)
        return from_json(cls, _without_nan(value), where, _FIX)


def _without_nan(value: Any) -> Any:
    """Return scores as JSON in which a statistic that is not finite is a missing one, with that reason."""
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    if not isinstance(value, Mapping):
        return None if isinstance(value, int | float) and not can_be_score(value) else value
    found = value.get("value")
    if isinstance(found, int | float) and not can_be_score(found) and "n" in value:
        value = {**value, "reason": not_finite(found)}
    return {key: _without_nan(inner) for key, inner in value.items()}
