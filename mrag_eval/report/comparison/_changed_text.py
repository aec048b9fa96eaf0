"""Changed rows as Markdown for a pull request or a step summary, bounded in size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mrag_eval.core import pipe_table, points
from mrag_eval.metrics import Cause
from mrag_eval.platform import ConfigError
from mrag_eval.report.comparison._changed_rows import ChangedRow, Changes
from mrag_eval.report.comparison._changed_where import CauseTable, cause_tables, most_telling, shown_place
from mrag_eval.report.comparison._shown_text import cut_pair, in_markdown, plain
from mrag_eval.report.files._row_texts import RowTexts, ShownPassage
from mrag_eval.scoring import scale_of

# GitHub takes 65,536 characters in a comment, and 1 MiB in a step summary: this is safe for both.
MOST_CHARS = 60_000
# Rows shown in full, rows of the table of causes, and ids listed of a cell.
_TELLING, _CELLS, _IDS = 10, 40, 20
_QUESTION, _ANSWER, _PASSAGE, _ID = 400, 500, 120, 80
_PASSAGES = 3
CAUSE_WORDS: Mapping[Cause, str] = {
    "retrieval": "retrieval: the relevant passage is no longer shown",
    "reading": "reading: no relevant passage was lost",
    "language": "language: the answer is in a wrong language now",
    "judging": "judging: another verdict on the same answer",
    "unknown": "unknown: the cause cannot be told",
}


def check_page_url(url: str | None) -> str | None:
    """Return the address of a page as it is. Raise ConfigError unless it is a plain http or https address."""
    if url is not None and (not url.startswith(("https://", "http://")) or not _is_plain(url)):
        raise ConfigError(f"--page-url: '{url[:80]}' is no address", "name one that starts with https://, without a #")
    return url


def _is_plain(url: str) -> bool:
    return url.isascii() and url.isprintable() and not {*url} & {*" <>\"'`\\()[]#|"}


def changed_markdown(changes: Changes, page_url: str | None = None, chars: int = MOST_CHARS) -> str:
    """Return what changed as Markdown of at most ``chars`` characters: causes, rows in full, and all ids.

    ``page_url`` is the address of the page with all rows, to which each row links.
    """
    parts = [note for note in _notes(changes, page_url) if note]
    for table in cause_tables(changes):
        parts += [f"### Causes: {in_markdown(table.title)}", _causes(table)]
    rows = most_telling(changes, _TELLING)
    shown = [_row(number, row, page_url) for number, row in enumerate(rows, 1)]
    if shown:
        more = len({(row.task, row.after.id) for row in changes.worse}) - len(shown)
        parts += ["### Rows that got worse" + (f": {len(shown)}, and {more:,} more" if more else ""), *shown]
    ids = [line for worse in (True, False) for line in _ids(changes, worse)]
    parts += ["### All changed rows", *ids] if ids else []
    return _within(parts, chars)


def _within(parts: Sequence[str], chars: int) -> str:
    """Return the parts from the first on that fit, and how many are left out."""
    out: list[str] = []
    left = chars - 60
    for number, part in enumerate(parts):
        left -= len(part) + 2
        if left < 0:
            return "\n\n".join([*out, f"… {len(parts) - number} more parts do not fit here."])
        out.append(part)
    return "\n\n".join(out)


def _notes(changes: Changes, page_url: str | None) -> Iterator[str]:
    for name, have in zip(("baseline", "candidate"), changes.answers, strict=True):
        if not have:
            yield no_answers(name)
    once = sum(cell.once for cell in changes.cells)
    if once:
        yield f"{once:,} scores are in one of the runs only, and are not counted here."
    if page_url is not None:
        yield f"[All changed rows]({page_url})"


def no_answers(name: str) -> str:
    """Return the remark on a run, by its role, that keeps no answers."""
    hint = " (`mrag-eval gate --save FILE RUN --answers` keeps them)" if name == "baseline" else ""
    return f"The {name} keeps no answers{hint}: they are not shown, and causes that need them are unknown."


def _causes(table: CauseTable) -> str:
    rows = [[in_markdown(row[0]), *row[1:]] for row in table.rows[:_CELLS]]
    more = len(table.rows) - len(rows)
    text = pipe_table(table.HEAD, rows, "l" + "r" * (len(table.HEAD) - 1))
    return text + (f"\n\n{more} more languages are not listed here." if more else "")


def scores_text(row: ChangedRow) -> str:
    """Return the metric with both scores: ``acc 100.0 → 0.0``."""
    scale = scale_of(row.metric)
    return f"{row.metric} {points(row.scores[0], scale=scale)} → {points(row.scores[1], scale=scale)}{scale.note}"


def answer_text(texts: RowTexts | None) -> str | None:
    """Return the answer, or what there is in its place; None if it is not kept."""
    if texts is None:
        return None
    return texts.answer or f"({texts.outcome or 'empty'})"


def votes_text(row: ChangedRow) -> list[str]:
    """Return a line for each seat of the panel: ``judge-a: correct → incorrect``; ``?`` where no vote is kept."""
    old, new = ({} if texts is None else texts.votes for texts in row.texts)

    def vote(votes: Mapping[str, bool | str | None], seat: str) -> str:
        found = votes.get(seat, "?")
        return ("correct" if found else "incorrect") if isinstance(found, bool) else found or "no verdict"

    return [f"{seat}: {vote(old, seat)} → {vote(new, seat)}" for seat in dict.fromkeys([*old, *new])]


def changed_passages(row: ChangedRow) -> dict[str, list[ShownPassage]] | None:
    """Return the passages of both prompts by what became of them; None if either run keeps none.

    A passage of the baseline has the title and text of the candidate's, if that shows it too.
    """
    old, new = row.texts
    if old is None or new is None:
        return None
    now, then = {p.id: p for p in new.passages}, {p.id: p for p in old.passages}
    return {
        "no longer shown": [passage for id, passage in then.items() if id not in now],
        "newly shown": [passage for id, passage in now.items() if id not in then],
        "still shown": [passage for id, passage in now.items() if id in then],
    }


def _row(number: int, row: ChangedRow, page_url: str | None) -> str:
    """Return a row: its place, scores, cause, question, both answers side by side, votes, and passages."""
    place = in_markdown(shown_place(row))
    name = f"<code>{in_markdown(row.after.id, _ID)}</code>"
    link = "" if page_url is None else f" · [show]({page_url}#{row.anchor})"
    cause = "" if row.cause is None else f" · {CAUSE_WORDS[row.cause]}"
    task = in_markdown(row.task)
    head = f"**{number}. {place}** · {task} {name} · {in_markdown(scores_text(row))}{cause}{link}"
    return f"{head}\n\n<table>\n{''.join(f'<tr>{line}</tr>{chr(10)}' for line in _lines(row))}</table>"


def _lines(row: ChangedRow) -> Iterator[str]:
    old, new = row.texts
    known = next((texts for texts in (new, old) if texts is not None and texts.question), None)
    if known is not None:
        yield _wide("question", known.question, _QUESTION)
        if known.references:
            yield _wide("reference", " / ".join(known.references), _QUESTION)
    first, second = answer_text(old), answer_text(new)
    if first is not None and second is not None:
        first, second = cut_pair(plain(first), plain(second), _ANSWER)
    yield "<th></th><th>before</th><th>now</th>"
    yield f"<th>answer</th>{_cell(first)}{_cell(second)}"
    votes = votes_text(row)
    if votes:
        yield _wide("votes", "; ".join(votes), _QUESTION)
    found = changed_passages(row)
    if found is None:
        yield _wide("passages", "not kept by both runs", _QUESTION)
        return
    for what, passages in found.items():
        if passages and what != "still shown":
            yield f'<th>{what}</th><td colspan="2" dir="auto">{_passages(passages)}</td>'
    if found["still shown"]:
        relevant = sum(passage.relevant for passage in found["still shown"])
        yield _wide("still shown", f"{len(found['still shown'])}, {relevant} of them relevant", _QUESTION)


def _wide(name: str, text: str, chars: int) -> str:
    return f'<th>{name}</th><td colspan="2" dir="auto">{in_markdown(text, chars)}</td>'


def _cell(text: str | None) -> str:
    # cut together with the other answer, or alone
    shown = "<i>not kept</i>" if text is None else in_markdown(text, _ANSWER + 2)
    return f'<td dir="auto">{shown}</td>'


def _passages(passages: Sequence[ShownPassage]) -> str:
    """Return the first passages, the relevant ones before the others."""
    order = sorted(passages, key=lambda passage: not passage.relevant)
    named = [
        ("<b>relevant:</b> " if passage.relevant else "")
        + f"<bdi>{in_markdown(passage.title or passage.text or passage.id, _PASSAGE)}</bdi>"
        for passage in order[:_PASSAGES]
    ]
    more = [f"and {len(order) - _PASSAGES} more"] if len(order) > _PASSAGES else []
    return "<br>".join([*named, *more])


def _ids(changes: Changes, worse: bool) -> Iterator[str]:
    """Yield a line for each cell with the ids of its rows that changed."""
    for cell in changes.cells:
        rows = cell.worse if worse else cell.better
        if rows:
            named = ", ".join(f"<code>{in_markdown(row.after.id, _ID)}</code>" for row in rows[:_IDS])
            more = f" and {len(rows) - _IDS} more" if len(rows) > _IDS else ""
            where = in_markdown(f"{cell.task}, {cell.metric}, {shown_place(cell)}")
            yield f"- {where}: {len(rows)} {'worse' if worse else 'better'}: {named}{more}"
