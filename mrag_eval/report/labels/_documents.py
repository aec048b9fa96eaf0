"""Labelling the documents of a finished run by a model, in two stages (BordIRlines, section 3.3 and Appendix H.2).

First whether a document is relevant to its question; then, for questions about territories and relevant documents
alone, whose claim it supports. A missing label is counted with its reason, never guessed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mrag_eval.datasets import NEUTRAL, NOT_RELEVANT, Label
from mrag_eval.metrics import extract_choice, read_yes_no
from mrag_eval.models import AuxModel, Parsed, generate_parsed, summed
from mrag_eval.prompts import Conversation, load_template
from mrag_eval.report.files._sample import Sample

# Letters of options before X, which is that of a neutral document.
_BEFORE_X = 23

# (row id, passage id)
Pair = tuple[str, str]


class Annotator(Protocol):
    """Ask a model for labels: :class:`mrag_eval.models.AuxModel`, or anything that replies like its seats."""

    def generate(self, conversations: Sequence[Conversation], **settings: Any) -> list[Any]: ...


@dataclass(frozen=True, slots=True)
class Shown:
    """One document as it was shown for a question; ``claimants`` is empty for a question without a territory.

    ``options`` are the claimants in the language of the question.
    """

    row: str
    passage: str
    query: str
    query_lang: str
    text: str
    passage_lang: str
    rank: int
    claimants: tuple[str, ...] = ()
    territory: str = ""
    options: tuple[str, ...] = ()

    @property
    def pair(self) -> Pair:
        return self.row, self.passage


@dataclass(frozen=True)
class PairLabels:
    """The labels of document pairs.

    ``labels``: a pair's relevance, and its viewpoint if the question is about a territory (else ""). ``failed``: pair
    -> why there is no label, or no viewpoint beside a relevance that stands. ``asked`` counts questions put to the
    model, ``seats`` what came back from it.
    """

    labels: Mapping[Pair, Label]
    failed: Mapping[Pair, str]
    asked: int
    seats: Mapping[str, Any] = field(default_factory=dict)


def documents_of(samples: Sequence[Sample]) -> list[Shown]:
    """Return every document that the samples of a run show."""
    out = []
    for sample in samples:
        doc, territory = sample.doc, sample.record.concurrence or sample.record.unanswered
        about = () if territory is None else (territory.claimants, territory.territory, doc.choices or ())
        out += [
            Shown(doc.id, hit.id, doc.query, doc.query_lang, hit.text, hit.lang, hit.rank, *about)
            for hit in sample.passages
        ]
    return out


def labels_in(samples: Sequence[Sample]) -> PairLabels:
    """Return the labels that the documents of the samples already have, e.g. the published ones."""
    labels: dict[Pair, Label] = {}
    for sample in samples:
        for hit in sample.passages:
            found = hit.labels or {}
            if "relevant" in found:
                labels[sample.doc.id, hit.id] = Label(found["relevant"] == "yes", found.get("viewpoint", ""))
    return PairLabels(labels, {}, 0)


def annotate(shown: Sequence[Shown], model: AuxModel | Annotator, *, few_shot: bool = True) -> PairLabels:
    """Label every pair once, however often it is shown.

    ``few_shot`` puts examples into the prompts. After a reply that cannot be read, the model is asked once more; if
    that fails, the pair stays without a label, or a relevant one without a viewpoint.
    """
    pairs = {document.pair: document for document in shown}
    first = list(pairs.values())
    failed: dict[Pair, str] = {}
    seats: dict[str, Any] = {}
    relevance = _ask(model, first, "relevance", lambda _: _read_yes_no, few_shot, failed, seats)
    irrelevant = [pairs[pair] for pair, value in relevance.items() if not value]
    labels = {document.pair: Label(False, NOT_RELEVANT if document.claimants else "") for document in irrelevant}
    relevant = [pairs[pair] for pair, value in relevance.items() if value]
    labels |= {document.pair: Label(True, "") for document in relevant if not document.claimants}
    second = [document for document in relevant if document.claimants]
    views = _ask(model, second, "viewpoint", lambda d: _viewpoint_reader(d.claimants), few_shot, failed, seats)
    labels |= {document.pair: Label(True, views.get(document.pair, "")) for document in second}
    return PairLabels(labels, failed, len(first) + len(second), summed([seats]))


def _ask(
    model: Any,
    documents: Sequence[Shown],
    stage: str,
    reader: Callable[[Shown], Callable[[str], Parsed[Any]]],
    few_shot: bool,
    failed: dict[Pair, str],
    seats: dict[str, Any],
) -> dict[Pair, Any]:
    template = load_template(stage, role="annotate")
    conversations: list[Conversation] = []
    for document in documents:
        doc = {"query": document.query, "query_lang": document.query_lang, "choices": list(document.claimants)}
        passage = {"text": document.text, "lang": document.passage_lang}
        system, user = template.render(doc, [passage], {"shots": "yes" if few_shot else ""})
        conversations.append([{"role": "system", "content": system}, {"role": "user", "content": user}])
    seat = model.seat(f"annotate {stage}", prompts={stage: template.sha256}) if isinstance(model, AuxModel) else model
    answered = generate_parsed(seat, conversations, [reader(d) for d in documents])
    seats |= {seat.role: seat.take()} if isinstance(model, AuxModel) else {}
    out = {}
    for document, answer in zip(documents, answered, strict=True):
        if answer.value is None:
            failed[document.pair] = f"{stage}: {answer.reason or 'no label'}"
        else:
            out[document.pair] = answer.value
    return out


def _read_yes_no(reply: str) -> Parsed[bool]:
    says = read_yes_no(reply)
    return Parsed(None, "it is neither Yes nor No") if says is None else Parsed(says)


def _viewpoint_reader(claimants: Sequence[str]) -> Callable[[str], Parsed[str]]:
    options = [*claimants, *(f"unused {n}" for n in range(len(claimants), _BEFORE_X)), NEUTRAL]

    def read(reply: str) -> Parsed[str]:
        index = extract_choice(reply, len(options), options)
        if index is None or len(claimants) <= index < _BEFORE_X:
            return Parsed(None, "it is not one of the options")
        return Parsed(options[index])

    return read


def relevance_shares(shown: Sequence[Shown], labels: Mapping[Pair, Label]) -> dict[str, Any]:
    """Return the share of labelled documents that are relevant, and the number of documents by viewpoint.

    The share is given overall, by rank (Figures 8 and 9), and by language of the document. Pairs without a label are
    left out.
    """
    ranks: dict[int, list[bool]] = defaultdict(list)
    langs: dict[str, list[bool]] = defaultdict(list)
    for document in shown:
        label = labels.get(document.pair)
        if label is not None:
            ranks[document.rank].append(label.relevant)
            langs[document.passage_lang].append(label.relevant)
    views = Counter(labels[d.pair].viewpoint for d in shown if d.pair in labels and labels[d.pair].viewpoint)
    return {
        "overall": _share([value for values in ranks.values() for value in values]),
        "by_rank": {str(rank): _share(values) for rank, values in sorted(ranks.items())},
        "by_language": {lang: _share(values) for lang, values in sorted(langs.items())},
        "viewpoints": dict(views.most_common()),
    }


def _share(values: Sequence[bool]) -> dict[str, Any]:
    from mrag_eval.metrics import undefined, wilson

    return (wilson(sum(values), len(values)) if values else undefined("no label", "Wilson")).as_dict()
