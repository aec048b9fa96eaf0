"""The page of a comparison: what got worse and better, row by row, in one file without scripts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.core import is_language, named_language
from mrag_eval.platform import Wait, replaced
from mrag_eval.report.comparison._changed_rows import ChangedRow, Changes
from mrag_eval.report.comparison._changed_text import (
    CAUSE_WORDS,
    answer_text,
    changed_passages,
    no_answers,
    scores_text,
    votes_text,
)
from mrag_eval.report.comparison._changed_where import cause_tables, most_telling, shown_place, where_worse
from mrag_eval.report.comparison._shown_text import cut, cut_pair, plain

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = Path(__file__).parent
# As large as the report's page; rows that got worse may take this share of it, those that got better the rest.
_MOST_BYTES = 4_900_000
_WORSE_SHARE = 0.8
_ANSWER, _QUESTION, _NAME = 2_000, 1_000, 120
# Passages listed of each kind.
_PASSAGES = 12


@dataclass
class _Section:
    """The rows of one task in one pair of languages: those that got worse and better, and the cards that fit."""

    title: str
    anchor: str
    rows: dict[bool, int] = field(default_factory=lambda: {True: 0, False: 0})
    cards: dict[bool, list[str]] = field(default_factory=lambda: {True: [], False: []})

    @property
    def left_out(self) -> int:
        """Return how many rows do not fit on the page."""
        return sum(self.rows.values()) - sum(map(len, self.cards.values()))


@dataclass(frozen=True)
class ShownRows:
    """How many rows changed, and how many of them a page shows."""

    rows: int
    shown: int


def write_changes(changes: Changes, out: Path, title: str, most_bytes: int = _MOST_BYTES) -> ShownRows:
    """Write the page of changed rows to ``out``, about ``most_bytes`` long at most, and return how many it shows.

    Every row has its anchor (:attr:`ChangedRow.anchor`). Those that tell most are kept where not all fit.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    environment.filters["plain"] = plain
    environment.filters["named"] = named_language
    with Wait(f"writing {out}"):
        order, sections = _sections(changes)
        frame = len(_page(environment, changes, title, list(sections.values())))
        _fill(environment, changes, order, sections, most_bytes - frame)
        with replaced(out) as part:
            part.write_bytes(_page(environment, changes, title, list(sections.values())))
    return ShownRows(len(order), len(order) - sum(section.left_out for section in sections.values()))


def _page(environment: Environment, changes: Changes, title: str, sections: Sequence[_Section]) -> bytes:
    from markupsafe import Markup

    roles = ("baseline", "candidate") if changes.checked else ("first run", "second run")
    text = environment.get_template("changes.html.jinja").render(
        title=title,
        version=version("mrag-eval"),
        runs=list(zip(roles, changes.runs, strict=True)),
        sentence=where_worse(changes),
        notes=[no_answers(role) for role, have in zip(roles, changes.answers, strict=True) if not have],
        once=sum(cell.once for cell in changes.cells),
        tables=list(cause_tables(changes)),
        causes=CAUSE_WORDS,
        sections=sections,
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
    )
    return text.encode("utf-8", errors="backslashreplace")


def _sections(changes: Changes) -> tuple[list[ChangedRow], dict[tuple[str, str], _Section]]:
    """Return each row once, in the order in which it tells what happened, and the sections by task and place."""
    sections: dict[tuple[str, str], _Section] = {}
    order: dict[str, ChangedRow] = {}
    for worse in (True, False):
        for row in most_telling(changes, worse=worse):
            if row.anchor not in order:
                order[row.anchor] = row
                title = f"{row.task}, {shown_place(row)}"
                section = sections.setdefault((row.task, row.place), _Section(title, f"part-{len(sections)}"))
                section.rows[worse] += 1
    return list(order.values()), sections


def _fill(
    environment: Environment,
    changes: Changes,
    order: Sequence[ChangedRow],
    sections: Mapping[tuple[str, str], _Section],
    budget: int,
) -> None:
    """Draw the cards of the first rows, up to ``budget`` bytes."""
    from markupsafe import Markup

    by_row: dict[tuple[str, str], list[ChangedRow]] = defaultdict(list)
    for row in [*changes.worse, *changes.better]:
        by_row[row.task, row.after.id].append(row)
    card = environment.get_template("change.html.jinja")
    left = 0.0
    for worse, share in ((True, _WORSE_SHARE), (False, 1 - _WORSE_SHARE)):
        left += budget * share
        for row in (row for row in order if row.worse is worse):
            drawn = card.render(_card(row, by_row[row.task, row.after.id]))
            size = len(drawn.encode("utf-8", errors="backslashreplace"))
            if size > left:
                break
            left -= size
            sections[row.task, row.place].cards[worse].append(Markup(drawn))


def _card(row: ChangedRow, every: Iterable[ChangedRow]) -> dict[str, Any]:
    """Return the values of a row's template."""
    old, new = row.texts
    known = next((texts for texts in (new, old) if texts is not None and texts.question), None)
    answers = [None if text is None else plain(text) for text in (answer_text(old), answer_text(new))]
    if answers[0] is not None and answers[1] is not None:
        answers = list(cut_pair(answers[0], answers[1], _ANSWER))
    return {
        "row": row,
        "name": cut(plain(row.after.id), _NAME),
        "lang": row.after.language if is_language(row.after.language) else "",
        "question": "" if known is None else cut(plain(known.question), _QUESTION),
        "references": "" if known is None else cut(plain(" / ".join(known.references)), _QUESTION),
        "answers": [None if text is None else cut(text, _ANSWER + 2) for text in answers],
        "scores": [(scores_text(one), one.cause) for one in every],
        "votes": [cut(plain(line), _QUESTION) for line in votes_text(row)],
        "passages": _passages(row),
        "open": row.cause == "retrieval",
        "causes": CAUSE_WORDS,
    }


def _passages(row: ChangedRow) -> list[tuple[str, int, list[dict[str, Any]]]] | None:
    """Return what became of the passages, their number, and the first of them, relevant ones before others."""
    found = changed_passages(row)
    if found is None:
        return None
    return [
        (what, len(passages), list(_shown(sorted(passages, key=lambda p: not p.relevant)[:_PASSAGES], what)))
        for what, passages in found.items()
    ]


def _shown(passages: Sequence[Any], what: str) -> Iterator[dict[str, Any]]:
    for passage in passages:
        yield {
            "relevant": passage.relevant,
            "lang": passage.lang if is_language(passage.lang) else "",
            "title": plain(passage.title),
            "text": "" if what == "still shown" else plain(passage.text),
            "id": cut(plain(passage.id), _NAME),
        }
