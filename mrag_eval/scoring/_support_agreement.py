"""Agreement of a checker of support with people's labels: of the sentences of answers, or of spans in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from mrag_eval.core import YES_NO, Grounding, Span, majority_of
from mrag_eval.metrics import Estimate
from mrag_eval.platform import OPTIONAL
from mrag_eval.scoring._panel_table import agreement_of_all, language_cells, rater_of, share_of_rows
from mrag_eval.scoring._row_records import RowRecord, groups_of


@dataclass(frozen=True, slots=True)
class LabelledSentence(Span):
    """A sentence of an answer. ``labels``: whether it is supported, by annotator; None: that cannot be told."""

    labels: tuple[bool | None, ...]


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer that people labelled: its sentences, or the spans that nothing supports.

    Attributes:
        text: the answer, without white space around it; places in it are in code points.
        sentences: those that people labelled; None if they labelled spans.
        spans: those that people found unsupported.
    """

    text: str
    sentences: tuple[LabelledSentence, ...] | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class SupportAgreement:
    """The checker of a run against people's labels.

    Attributes:
        rows: answers that were compared.
        by_language: language of the question, and ``all`` if there are several -> measure -> estimate:
            ``balanced_accuracy``, ``kappa``, ``agreement`` and ``says_supported`` (the checker's share) of sentences,
            ``span_f1`` and ``iou`` of spans. Sentences of one answer are resampled together.
        left_out: what is not compared, and how often: answers that the checker read and nobody labelled, labelled ones
            of which it says nothing, sentences that no claim reaches, of which most annotators cannot tell, or on which
            they have no majority, and sentences with a claim that a panel left undecided (of spans, such answers).
        unmatched: ids of labels without an answer.
        sentences: sentences that were compared; 0 where people labelled spans.
        annotators: labels of a sentence, at the most.
        between_people: Fleiss' kappa of the annotators, on the sentences on which all of them gave a verdict.
        human_supported: the share of the compared sentences that people call supported.
    """

    rows: int
    by_language: Mapping[str, Mapping[str, Estimate]]
    left_out: Mapping[str, int] = field(default_factory=dict)
    unmatched: tuple[str, ...] = ()
    sentences: int = 0
    annotators: int = 1
    between_people: Estimate | None = field(default=None, metadata=OPTIONAL)
    human_supported: Estimate | None = field(default=None, metadata=OPTIONAL)


# The reason of a sentence or an answer with a claim that a panel left undecided.
_NO_VERDICT = "without a verdict"
# An answer with what the checker and what people say of it.
_Both = tuple[RowRecord, Grounding, LabelledAnswer]
# The row of a sentence, and whether the checker and people call it supported.
_Compared = tuple[RowRecord, bool, bool]


def against_labels(
    records: Sequence[RowRecord], labels: Mapping[str, LabelledAnswer], seed: int = 0
) -> SupportAgreement:
    """Compare the claims of answers with people's labels (row id -> labels, all of sentences or all of spans).

    A sentence is supported if every claim that has a letter or a digit of it is. It is left out if one of them is
    undecided; of spans, the answer is. Of several annotators' labels that of more than half counts.
    """
    known = {record.row: record for record in records}
    both = [
        (record, record.grounding, labels[row])
        for row, record in known.items()
        if record.grounding is not None and row in labels
    ]
    of_sentences = any(one.sentences is not None for one in labels.values())
    found = (_of_sentences if of_sentences else _of_spans)(both, seed)
    counts = {
        "unjudged": sum(record.grounding is None and row in labels for row, record in known.items()),
        "unlabelled": sum(record.grounding is not None and row not in labels for row, record in known.items()),
        **found.left_out,
    }
    unmatched = tuple(row for row in labels if row not in known)
    return replace(found, left_out={why: n for why, n in counts.items() if n}, unmatched=unmatched)


def _of_spans(both: Sequence[_Both], seed: int) -> SupportAgreement:
    from mrag_eval.metrics import span_overlap

    overlaps = []
    decided = [one for one in both if not one[1].undecided]
    for _, found, answer in decided:
        wrong = [claim for claim in found.claims if claim.supported is False]
        # a claim of which no part is named counts as a whole
        ours = [(part.start, part.end) for claim in wrong for part in claim.unsupported or (claim,)]
        overlaps.append(span_overlap(ours, [(span.start, span.end) for span in answer.spans]))
    rows = [record for record, _, _ in decided]
    left_out = {_NO_VERDICT: len(both) - len(decided)}

    def mean(where: Sequence[int], measure: int) -> Estimate:
        return share_of_rows([rows[i] for i in where], [overlaps[i][measure] for i in where], seed)

    cells = language_cells(rows).items()
    measured = {cell: {"span_f1": mean(at, 0), "iou": mean(at, 1)} for cell, at in cells}
    return SupportAgreement(len(rows), measured, left_out)


def _of_sentences(both: Sequence[_Both], seed: int) -> SupportAgreement:
    left_out: Counter[str] = Counter()
    compared: list[_Compared] = []
    labelled = [(record, found, answer.text, one) for record, found, answer in both for one in answer.sentences or ()]
    for record, found, text, sentence in labelled:
        human = majority_of(sentence.labels)
        ends = ((c.supported, max(c.start, sentence.start), min(c.end, sentence.end)) for c in found.claims)
        says = [supported for supported, start, end in ends if any(map(str.isalnum, text[start:end]))]
        if human is None:
            most = 2 * sentence.labels.count(None) > len(sentence.labels)
            left_out["challenging to determine" if most else "without a majority"] += 1
        elif not says:
            left_out["in no claim"] += 1
        elif None in says:
            left_out[_NO_VERDICT] += 1
        else:
            compared.append((record, all(says), human))
    annotators = max((len(one.labels) for *_, one in labelled), default=1)
    ratings = [[*one.labels, *[None] * (annotators - len(one.labels))] for *_, one in labelled]
    groups = groups_of([record for record, *_ in labelled])
    rows = [row for row, *_ in compared]
    return SupportAgreement(
        len({row.row for row in rows}),
        {cell: _measures([compared[i] for i in where], seed) for cell, where in language_cells(rows).items()},
        left_out,
        sentences=len(rows),
        annotators=annotators,
        between_people=agreement_of_all(ratings, YES_NO, seed, groups) if annotators > 1 else None,
        human_supported=share_of_rows(rows, [human for *_, human in compared], seed),
    )


def _measures(compared: Sequence[_Compared], seed: int) -> dict[str, Estimate]:
    from mrag_eval.metrics import balanced_accuracy

    rows, ours, theirs = ([row for row, *_ in compared], [one for _, one, _ in compared], [one for *_, one in compared])
    found = rater_of(rows, ours, theirs, YES_NO, seed)
    balanced = balanced_accuracy(ours, theirs, groups=groups_of(rows), seed=seed)
    rest = {"kappa": found.kappa, "agreement": found.agreement, "says_supported": found.correct}
    return {"balanced_accuracy": balanced, **rest}
