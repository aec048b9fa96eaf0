"""Replies translated to the language of the reference answers, to recognise right answers in another language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mrag_eval import models
from mrag_eval.core import Scored, failed_in, is_language, way_to

# A language detector guesses below this many characters: such a reply is identified by its script alone.
_SHORT = 20
# A short reply is in another script if this share of its letters is; the rest may be a unit or an abbreviation.
_OFF_SCRIPT = 0.95
UNTOLD = "the language of the reply cannot be told"


def with_translated_answers(rows: Sequence[Scored], translator: models.Translator) -> list[Scored]:
    """Return the rows with their answers in the language of the question, which is that of the reference answers.

    Answers already in that language, without letters, empty or declined are unchanged. The language is that of the
    ``correct_language`` detector, which is unreliable for 20 characters or fewer: such an
    answer in a script of the language is taken to be in it, another one in Latin letters to be English. Where there
    is no translation, ``untranslated`` says why. All answers are translated in one batch; rows without reference
    answers are left alone, as are those on whose way to an answer a step failed.
    """
    held = [i for i, row in enumerate(rows) if row.doc.answers and failed_in(row.failures, way_to("answer")) is None]
    sources = _languages([rows[i] for i in held])
    out = list(rows)
    asked: list[tuple[int, str]] = []
    for i, source in zip(held, sources, strict=True):
        if source is None:
            out[i] = replace(rows[i], translated=rows[i].answer)
        elif not is_language(source):
            out[i] = replace(rows[i], untranslated=UNTOLD)
        else:
            asked.append((i, source))
    done = translator.translate(
        [rows[i].answer for i, _ in asked],
        [source for _, source in asked],
        [rows[i].doc.query_lang for i, _ in asked],
        kind="answers",
    )
    for (i, _), found in zip(asked, done, strict=True):
        if found.failure is None:
            out[i] = replace(rows[i], translated=found.text)
        else:
            failures = (*rows[i].failures, found.failure)
            out[i] = replace(rows[i], untranslated=found.failure.why, failures=failures)
    return out


def _languages(rows: Sequence[Scored]) -> list[str | None]:
    """Return the language of each answer, None if it needs no translation; ``und`` if it cannot be determined."""
    from mrag_eval.metrics import code_switch_share, correct_language_rate

    rate = correct_language_rate([row.answer for row in rows], [row.doc.query_lang for row in rows], min_chars=None)
    out: list[str | None] = []
    for row, label, correct in zip(rows, rate.detected, rate.correct, strict=True):
        outside = code_switch_share(row.answer, row.doc.query_lang)
        if row.declined or not outside.letters:
            out.append(None)
        elif len(row.answer.strip()) > _SHORT:
            out.append(None if correct else label or "und")
        elif outside.share is None:
            out.append("und")
        elif outside.share < _OFF_SCRIPT:
            out.append(None)
        else:
            out.append("en" if next(iter(outside.outside)) == "Latn" else label or "und")
    return out
