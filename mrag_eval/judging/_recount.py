"""Votes and labels of rows, counted: of judges that were just asked, or of the recorded votes of a finished run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from mrag_eval import judging, metrics
from mrag_eval.config import Judge
from mrag_eval.core import (
    PAGE,
    SUPPORT,
    YES_NO,
    Claim,
    ClaimVerdict,
    Failure,
    Grounding,
    Hit,
    Judgement,
    Labels,
    LabelSource,
    Passage,
    Scored,
    Span,
    Stage,
    Tie,
    VerdictScale,
    Vote,
    same_language,
    why_undecided,
)
from mrag_eval.scoring import NO_ANSWERS, placed

OTHER_LANGUAGE = "the lexical proxy compares texts of one language, and answer and document are in two"
NO_PAGE = "the page that answers is not known"
# The judgement of passages where none is shown: no judge is asked.
NOTHING_SHOWN = Judgement(False, "empty")
# n of the n-grams by which a passage must contain the answer.
GRAM = 3
# The order in which the failures of a row's verdicts are listed, whoever was asked first.
_ORDER: Sequence[Stage] = ("translation", "judge", "grounding", "label")


@dataclass(frozen=True)
class Decided:
    """What was said of a row after its reply was read, uncounted: asked live, or taken from its sample.

    Attributes:
        answer: votes on the answer, by seat; None if no panel was asked.
        passages: votes on the passages shown; None if no panel was asked.
        claims: the claims of the answer with their votes, or a classifier's findings; None without any.
        labels: who labels the ranking, with the votes of a panel; those of a translator's answers are labels already.
        translated: the answer in the language of the references, or None, with the reason in ``untranslated``.
        failures: those of translators and classifiers; failures of judges follow from the votes.
    """

    answer: Mapping[str, Vote] | None = None
    passages: Mapping[str, Vote] | None = None
    claims: Grounding | None = None
    labels: Labels | None = None
    translated: str | None = None
    untranslated: str | None = None
    failures: Sequence[Failure] = ()


@dataclass(frozen=True)
class Recount:
    """Count votes by the rules of a block; ``texts`` are the passages of the rankings, as far as they are known."""

    block: Judge
    texts: Mapping[str, Passage] = field(default_factory=dict, repr=False)

    def of(self, rows: Sequence[Scored], decided: Sequence[Decided]) -> list[Scored]:
        """Return the rows with the judgements, claims and labels that the votes make; what was not asked stays."""
        return [self._counted(row, said) for row, said in zip(rows, decided, strict=True)]

    def _counted(self, row: Scored, said: Decided) -> Scored:
        failures = [*said.failures]
        if said.translated is not None or said.untranslated is not None:
            row = replace(row, translated=said.translated, untranslated=said.untranslated)
        if said.answer is not None:
            judgement = settled(row, self.block.scale) or self._judgement(said.answer, self.block.scale)
            row, failures = replace(row, judgement=judgement), [*failures, *judgement.failures]
        if said.passages is not None:
            found = self._judgement(said.passages) if row.passages else NOTHING_SHOWN
            row, failures = replace(row, sufficiency=found), [*failures, *found.failures]
        if said.claims is not None:
            claims = counted_claims(said.claims, self.block.tie, row.passages)
            row, failures = replace(row, grounding=claims), [*failures, *claims.failures]
        if said.labels is not None:
            labels = self._labels(row, said.labels)
            row = replace(row, labels=labels)
            if labels.by == "judge" and labels.fault is not None:
                votes = said.labels.votes.items()
                failures += [Failure.of("label", seat, error) for seat, error in votes if isinstance(error, str)]
        if not failures:
            return row
        return replace(row, failures=(*row.failures, *sorted(failures, key=lambda one: _ORDER.index(one.stage))))

    def repeats(self, row: Scored, labels: Labels) -> bool:
        """Return whether the labels of a ranking follow from what is known here."""
        return labels.by in ("judge", "page") or (
            labels.by == "proxy" and all(place.id in self.texts for place in row.ranking)
        )

    def _judgement(self, votes: Mapping[str, Vote], scale: VerdictScale = YES_NO) -> Judgement:
        verdict, outcome = scale.vote([vote.verdict for vote in votes.values()], self.block.tie)
        return Judgement(verdict, outcome, votes, scale)

    def _labels(self, row: Scored, said: Labels) -> Labels:
        if not self.repeats(row, said):
            return said
        if said.by == "page":
            return _by_page(row)
        if said.by == "proxy":
            return by_ngrams(row, said.by, self.texts, own_answers(row), self.block.relevance.threshold)
        if said.votes:
            return _by_votes(row, said.votes, tie=False if self.block.tie == "incorrect" else None)
        return Labels(said.by, ids_of(row), fault=None if row.doc.answers else NO_ANSWERS)


def settled(row: Scored, scale: VerdictScale) -> Judgement | None:
    """Return the judgement of an answer that no judge is asked about; None for one that judges decide."""
    if not row.doc.answers:
        return Judgement(None, "no reference", scale=scale)
    if row.declined or not row.answer.strip():
        return Judgement(scale.worst, "declined" if row.declined else "empty", scale=scale)
    return None


def case_of(row: Scored, scale: VerdictScale = YES_NO) -> judging.Case | Judgement:
    """Return what the panel is asked about an answer, or the judgement of one that no judge is asked about."""
    return settled(row, scale) or judging.Case.of(row.doc, row.doc.answers, row.answer, row.passages)


def counted_claims(grounding: Grounding, tie: Tie, shown: Sequence[Hit]) -> Grounding:
    """Return the claims of an answer with the verdicts that their recorded votes make, and the passages they name.

    Votes for passages that were not ``shown`` do not count. Claims without votes keep their verdict.
    """
    claims = (
        voted_claim(one, {seat: _as_read(vote, len(shown)) for seat, vote in one.votes.items()}, tie)
        if one.votes
        else one
        for one in grounding.claims
    )
    return placed(replace(grounding, claims=tuple(claims)), shown)


def voted_claim(claim: Span, votes: Mapping[str, Vote], tie: Tie) -> Claim:
    """Return a claim with the verdict of these votes, counted as labels are.

    On a tie it is not found, or it has no verdict, by ``tie``. Of the passages that the votes for the verdict name, the
    most frequent counts, the first of several.
    """
    verdict, outcome = SUPPORT.vote([vote.verdict for vote in votes.values()])
    if outcome == "tie" and tie == "incorrect":
        verdict = "not_found"
    named = Counter(v.passage for v in votes.values() if v.verdict == verdict and v.passage is not None)
    passage = min(named, key=lambda number: (-named[number], number), default=None)
    cast_votes = [vote.verdict for vote in votes.values() if vote.verdict is not None]
    support = cast_votes.count("supported") / len(cast_votes) if cast_votes else 0.0
    unsupported = () if verdict in (None, "supported") else (Span(claim.start, claim.end),)
    found = cast(ClaimVerdict | None, verdict)
    return Claim(claim.start, claim.end, found, support, passage, unsupported=unsupported, votes=votes)


def _as_read(vote: Vote, shown: int) -> Vote:
    """Return a recorded vote as a reply with its verdict and passage is read."""
    if vote.verdict in (None, "not_found"):
        return replace(vote, passage=None)
    named = vote.passage is not None and 0 < vote.passage <= shown
    return vote if named else Vote(None, vote.justification, "unreadable")


def ids_of(row: Scored) -> tuple[str, ...]:
    """Return the ids of a row's ranking."""
    return tuple(place.id for place in row.ranking)


def _by_votes(row: Scored, votes: Mapping[str, tuple[int, ...] | str], *, tie: bool | None) -> Labels:
    """Count votes: a passage is relevant if more than half of the panel lists it.

    A passage without a majority for or against it leaves the row unlabelled. Of an abstention the labels keep the
    reason alone.
    """
    ids = ids_of(row)
    said = {
        seat: listed.partition(":")[0] if isinstance(listed, str) else tuple(sorted({*listed}))
        for seat, listed in votes.items()
    }
    verdicts = [
        metrics.majority_vote(
            [None if isinstance(listed, str) else number in listed for listed in said.values()], tie=tie
        )
        for number in range(1, len(ids) + 1)
    ]
    if None in verdicts:
        why = why_undecided(sum(isinstance(listed, str) for listed in said.values()), len(said))
        return Labels("judge", ids, fault=f"relevance: {why}", votes=said)
    relevant = frozenset(name for name, verdict in zip(ids, verdicts, strict=True) if verdict)
    return Labels("judge", ids, relevant, votes=said)


def _by_page(row: Scored) -> Labels:
    """Label by page: relevant are all passages of the page that the row names."""
    page, ids = row.doc.extra.get(PAGE), ids_of(row)
    if page is None:
        return Labels("page", ids, fault=NO_PAGE)
    return Labels("page", ids, frozenset(place.id for place in row.ranking if place.doc_id == page))


# Reference answers to compare with passages, and their language; or the reason why a row has no such answers.
Answers = tuple[tuple[str, ...], str] | str


def own_answers(row: Scored) -> Answers:
    """Return the answers that passages in their language may hold, or the reason why there are none."""
    doc = row.doc
    if not doc.answers:
        return NO_ANSWERS
    if doc.gold_doc_lang is not None and not same_language(doc.query_lang, doc.gold_doc_lang):
        return OTHER_LANGUAGE
    return doc.answers, doc.query_lang


def by_ngrams(row: Scored, by: LabelSource, texts: Mapping[str, Passage], own: Answers, threshold: float) -> Labels:
    """Label by n-grams: relevant passages are in the answer's language and hold at least that share of its n-grams."""
    ids = ids_of(row)
    if isinstance(own, str):
        return Labels(by, ids, fault=own)
    answers, lang = own

    def holds(passage: Passage) -> bool:
        recall = metrics.char_ngram_recall(passage.text, list(answers), n=GRAM, normalize="unicode", lang=lang)
        return bool(passage.lang) and same_language(passage.lang, lang) and recall >= threshold

    return Labels(by, ids, frozenset(name for name in ids if holds(texts[name])))
