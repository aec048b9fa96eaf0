"""The section on citations: the languages of the documents that replies cite (BordIRlines, Figures 4 and 10)."""

from __future__ import annotations

from mrag_eval.core import RESOURCE_GROUPS, base_language, is_language, rounded
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.page._points import Point
from mrag_eval.report.page._section import Chart, Listing, Section, each_task
from mrag_eval.report.page._shapes import bars, share_bars
from mrag_eval.report.page._spec import Points, Spec, by_language, choices, field, height, language, spec

_SHARES = ("of the documents shown", "of the citations")


def _citation_points(leaf: Leaf) -> list[Point]:
    """Return the share of each language in the documents of a prompt, and in the citations (BordIRlines, Figure 4)."""
    out = []
    for source, table in (leaf.result.scores.citations or {}).items():
        for question, found in table.by_query_language.items():
            for document, entry in found.items():
                point: Point = {"task": leaf.label, "source": source, "question": question, "document": document}
                for share, value, count in (
                    (_SHARES[0], entry.inclusion_mean, entry.documents),
                    (_SHARES[1], entry.citation_mean, entry.citations),
                ):
                    if value is not None:
                        out.append(point | {"share": share, "value": rounded(value, scale=100), "n": count})
    return out


def _cited(points: Points) -> Spec:
    """Return two bars for every language of questions: the documents shown and the citations, by language."""
    encoding = {
        "y": language(points, "question", "question in"),
        "yOffset": field("share", sort=[*_SHARES]),
        "x": field("value", "quantitative", "mean share (%)", stack="zero", scale={"domain": [0, 100]}),
        "color": by_language(points, "document", "document in"),
        # the note above the chart explains the two bars
        "opacity": {"condition": {"test": "datum.share === 'of the citations'", "value": 1}, "value": 0.55},
    }
    description = "Languages of the documents shown and of the documents cited, by language of the question"
    columns = ("question", "share", "document", "value", "n")
    return bars(points, description, columns, encoding, {"task": "task", "source": "citations"}, step=18)


def citation_rows(leaf: Leaf) -> list[Point]:
    """Return how many questions were answered with citations, and how many could not be counted."""
    return [
        {"task": leaf.label, "source": source, "queries": found.queries, "citing": found.citing}
        | {"unanswered": found.unanswered, "without_documents": found.without_documents}
        | {"out_of_range": found.out_of_range}
        for source, found in (leaf.result.scores.citations or {}).items()
    ]


def _distribution_points(leaf: Leaf) -> list[Point]:
    """Return the share of each language in all citations of a task (BordIRlines, Figure 10)."""
    out = []
    for source, table in (leaf.result.scores.citations or {}).items():
        total = sum(entry.citations for entry in table.by_language.values())
        for document, entry in table.by_language.items():
            if entry.citations:
                share = round(100 * entry.citations / total, 1)
                point = {"task": leaf.label, "source": source, "document": document}
                out.append(point | {"citations": entry.citations, "share": share})
    return out


def _distribution(points: Points) -> Spec:
    colour = by_language(points, "document", "document in")
    return share_bars(points, "Languages of all citations, by task", field("task"), "citations", colour, "source")


def _group_points(leaf: Leaf) -> list[Point]:
    """Return inclusion and citation of the documents in the question's language, by group (BordIRlines, Figure 4)."""
    groups = {code: group for group, codes in RESOURCE_GROUPS.items() for code in codes}
    out = []
    for source, table in (leaf.result.scores.citations or {}).items():
        for question in table.by_query_language:
            point: Point = {"task": leaf.label, "source": source, "question": question}
            group = groups.get(base_language(question), "other") if is_language(question) else "other"
            point["group"] = f"{group}-resource"
            for share, value in zip(_SHARES, table.own_rates(question), strict=True):
                if value is not None:
                    out.append(point | {"share": share, "value": rounded(value, scale=100)})
    return out


def _by_group(points: Points) -> Spec:
    """Return boxes from the lowest to the highest language of a group."""
    return spec(
        points,
        "Documents in the question's language, shown and cited, by resource group of the language",
        ("group", "question", "share", "value"),
        height=height(points, "group", "share", chosen=("task", "source"), step=30),
        # Vega-Lite drops the parameters of a box plot itself, but keeps those around a layer
        layer=[
            {
                "mark": {"type": "boxplot", "extent": "min-max", "size": 16},
                "encoding": {
                    "y": field("group", sort=["high-resource", "mid-resource", "low-resource"]),
                    "yOffset": field("share", sort=[*_SHARES]),
                    "x": field("value", "quantitative", "mean share (%)", scale={"domain": [0, 100]}),
                    "color": field("share", scale={"domain": [*_SHARES], "range": ["#0072B2", "#E69F00"]}),
                },
            }
        ],
        **choices(points, {"task": "task", "source": "citations"}),
    )


SECTION = Section(
    "citations",
    "Citations",
    blocks=(
        Chart(
            "cited",
            "Languages of what was cited",
            "Means over questions: of the documents in the prompt (upper bar) and of the citations (lower bar).",
            _cited,
            each_task(_citation_points),
        ),
        Chart(
            "distribution",
            "Languages of all citations",
            "All citations of a task together, with repeats.",
            _distribution,
            each_task(_distribution_points),
        ),
        Chart(
            "resources",
            "Documents in the question's language, by resource group",
            "Means over the questions of a language. A box shows the languages of a group (Joshi et al., 2020).",
            _by_group,
            each_task(_group_points),
        ),
        Listing(
            "Questions answered with citations",
            {"task": "task", "source": "citations", "queries": "questions with documents", "citing": "citing"}
            | {"unanswered": "without a reply", "without_documents": "without documents"}
            | {"out_of_range": "citations of no document"},
            each_task(citation_rows),
            numbers=range(2, 7),
        ),
    ),
)
