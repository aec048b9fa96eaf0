"""The section on retrieval: pairs of languages, the links to the answer, and the languages retrieved."""

from __future__ import annotations

from mrag_eval.core import rounded
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._points import Point, percent, shares
from mrag_eval.report.page._section import Chart, Listing, Section, each_task
from mrag_eval.report.page._shapes import heat_map, share_bars
from mrag_eval.report.page._spec import Points, Spec, by_language, choices, field, height, intervals, language, spec


def _pair_points(data: PageData) -> list[Point]:
    """Return scores by language of the question and of the relevant document."""
    out = []
    for row in (score for score in data.figures if score.dimension == "pair" and score.value is not None):
        question, _, document = row.cell.partition("->")
        out.append(
            {"task": row.task, "metric": row.metric, "question": question, "document": document}
            | percent(row, row.metric)
        )
    return out


def _pairs(points: Points) -> Spec:
    return heat_map(
        points,
        "Mean score by language of the question and of the relevant document",
        language(points, "document", "relevant document in", axis={"labelAngle": -20}),
        language(points, "question", "question in"),
        ("question", "document", "value", "low", "high", "n"),
        {"task": "task", "metric": "metric"},
    )


# Links from retrieval to the answer, and their names on the page.
_LINKS = {
    "retrieved": "retrieved",
    "in_prompt": "in the prompt",
    "kept_if_retrieved": "in the prompt, if retrieved",
    "correct_if_kept": "answered right, if in the prompt",
    "end_to_end": "answered right, of all",
    "correct_if_not_retrieved": "answered right, if not retrieved",
}

# Links that only one table has.
_CHAINS = {"in_prompt": "selection"}


def _link_points(leaf: Leaf) -> list[Point]:
    """Return the chain from retrieval to the answer, each link given the one before.

    Source: Cross-Lingual Cost, Tables 1 and 3.
    """
    chain = "selection" if leaf.result.scores.attribution is None else "attribution"
    found = {said: leaf.result.score(f"{_CHAINS.get(name, chain)}.{name}") for name, said in _LINKS.items()}
    return [
        {"task": leaf.label, "link": said, **percent(score)}
        for said, score in found.items()
        if score is not None and score.value is not None
    ]


def _links(points: Points) -> Spec:
    names = list(dict.fromkeys(point["link"] for point in points))
    return spec(
        points,
        "How far questions get: retrieved, kept for the prompt, answered, each given the one before",
        ("task", "link", "value", "low", "high", "n"),
        height=height(points, "link", chosen=("task",)),
        **choices(points, {"task": "task"}),
        **intervals(
            points,
            {"y": field("link", "nominal", "", sort=names, axis={"labelLimit": 220})},
            ("task", "link", "value", "low", "high", "n"),
            "share (%)",
        ),
    )


def _retrieved_points(leaf: Leaf) -> list[Point]:
    """Return passages of the rankings by language, and of the question."""
    table = leaf.result.scores.languages
    found = table.retrieved if table is not None else {}
    return shares(found, {"task": leaf.label}, "question", "document", "passages")


def _retrieved(points: Points) -> Spec:
    colour = by_language(points, "document", "passage in")
    y = language(points, "question", "question in")
    return share_bars(points, "Languages of the passages by language of the question", y, "passages", colour, "task")


def _preference_points(leaf: Leaf) -> list[Point]:
    """Return how much passages in the question's language are preferred over their share of the corpus."""
    table = leaf.result.scores.languages
    return [
        {"task": leaf.label, "language": language}
        | {key: rounded(getattr(found.ratio, key), 3) for key in ("value", "low", "high")}
        | {"n": found.n_queries, "searched": leaf.result.config.source.get("searchable") or "all passages searched"}
        for language, found in (table.preference if table is not None else {}).items()
        if found.ratio.value is not None
    ]


def _analyzer_points(leaf: Leaf) -> list[Point]:
    """Return how BM25 cut the words of a task's passages and questions."""
    words = leaf.result.config.index.get("analyzer")
    return [{"task": leaf.label, "words": words}] if words else []


SECTION = Section(
    "retrieval",
    "Retrieval",
    blocks=(
        Listing(
            "Words of BM25, which decide its scores in each language",
            {"task": "task", "words": "words"},
            each_task(_analyzer_points),
            numbers=(),
        ),
        Chart(
            "pairs",
            "Question and document language",
            "Score by question × document language.",
            _pairs,
            _pair_points,
            opens={"task": "task", "language": "question", "document": "document"},
        ),
        Chart(
            "links",
            "From retrieval to the answer",
            "Each link given the one before, with 95% intervals.",
            _links,
            each_task(_link_points),
        ),
        Chart(
            "retrieved",
            "Languages of what was retrieved",
            "Of all passages in the rankings, not only those shown.",
            _retrieved,
            each_task(_retrieved_points),
        ),
        Listing(
            "Passages in the language of the question, over what the corpus leads one to expect (1: no preference)",
            {"task": "task", "language": "question in", "value": "ratio", "low": "95% from", "high": "95% to"}
            | {"n": "questions", "searched": "relative to"},
            each_task(_preference_points),
            numbers=range(2, 6),
            folded="Preference for the question's language",
        ),
    ),
)
