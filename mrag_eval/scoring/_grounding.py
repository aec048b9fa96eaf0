"""Support of answers by the passages shown: the claims of each row, and the metrics that they give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from mrag_eval import metrics, models
from mrag_eval.config import CONTEXT_PAIR
from mrag_eval.core import Claim, Failure, Grounding, Hit, Scored, Span, Value, failed_in, is_language, titled, way_to
from mrag_eval.platform import Store, Wait, cache_dir, content_key, from_json, made_once, to_json
from mrag_eval.scoring._reasons import DECLINED, EMPTY, NO_CLASSIFIER, NO_CORRECT, NO_PASSAGES
from mrag_eval.text import sentence_spans

# Key of a row's cell: the languages of its answer and of the passages shown, ``de->en``.
EVIDENCE = "answer_evidence"
_FORMAT = "grounding/2"
_ANSWERED = way_to("answer")
# Rows whose pairs are read together: enough for batches of equal lengths.
_CHUNK = 128


def _is_text(text: str) -> bool:
    return any(map(str.isalnum, text))


def claims_of(answer: str, lang: str) -> Iterator[Span]:
    """Yield the spans of an answer's sentences that hold a letter or a digit, without the white space around them."""
    for start, end in sentence_spans(answer, lang):
        text = answer[start:end]
        if _is_text(text):
            yield Span(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))


def with_grounding(
    rows: Sequence[Scored],
    checker: models.Checker,
    *,
    use_cache: bool = True,
    at_once: int = _CHUNK,
    languages: bool = False,
) -> list[Scored]:
    """Return the rows with the claims of their answers, or with the failures of what checks them.

    Rows without an answer, without the text of a passage, and those that decline are left alone. Citations in an answer
    are not read. Findings are cached on disk by the classifier and all that it reads. ``at_once`` answers are checked
    together, and their ``languages`` are shown if they are asked for.
    """
    held = [i for i, row in enumerate(rows) if _why_not(row) is None and failed_in(row.failures, _ANSWERED) is None]
    langs = _answer_languages([rows[i] for i in held])
    asked: dict[str, models.Asked] = {}
    keys = {}
    for i, lang in zip(held, langs, strict=True):
        one = asked_about(rows[i], lang, languages=languages)
        if one.claims:
            # judges are asked for each row: equal requests are their models' to notice
            keys[i] = content_key(_FORMAT, dict(checker.identity), to_json(one)) if use_cache else str(i)
            asked[keys[i]] = one
    faults: dict[str, str] = {}
    opened = closing(Store(cache_dir() / "grounding.sqlite")) if use_cache else nullcontext()
    with opened as store, Wait(f"checking answers with {checker.name}", len(asked), "answers") as wait:

        def made(part: Sequence[str]) -> Iterator[Mapping[str, Any]]:
            found = dict(zip(part, checker.findings([asked[key] for key in part]), strict=True))
            faults.update((key, said) for key, said in found.items() if isinstance(said, str))
            yield {key: {"claims": to_json(said)} for key, said in found.items() if not isinstance(said, str)}
            wait.add(len(part))

        known = made_once(asked, made, store, lambda value: isinstance(value, dict), at_once=at_once)
    out = list(rows)
    for i, lang in zip(held, langs, strict=True):
        if (key := keys.get(i)) in faults:
            failure = Failure.of("grounding", checker.name, faults[key])
            out[i] = replace(rows[i], failures=(*rows[i].failures, failure))
        else:
            found = {"lang": lang, "claims": ()} if key is None else {**known[key], "lang": lang}
            checked = placed(from_json(Grounding, found, "the cache", "delete it"), rows[i].passages)
            out[i] = replace(rows[i], grounding=checked)
    return out


def asked_about(row: Scored, lang: str, *, languages: bool) -> models.Asked:
    """Return what is asked about the answer of a row, in ``lang``, with ``languages`` if they are shown."""
    answer = metrics.without_citations(row.answer, lang)
    # a title alone is no passage
    texts = tuple(titled(hit.title, hit.text) if _is_text(hit.text) else "" for hit in row.passages)
    one = models.Asked(row.doc.query, answer, tuple(claims_of(answer, lang)), texts)
    return replace(one, lang=row.doc.query_lang, langs=tuple(hit.lang for hit in row.passages)) if languages else one


def placed(found: Grounding, passages: Sequence[Hit]) -> Grounding:
    """Return the claims with id and language of the passages shown that decided them; none decided by another."""

    def own(claim: Claim) -> Claim:
        number = claim.passage
        if number is None or not 0 < number <= len(passages):
            return replace(claim, passage=None, id="", lang="")
        return replace(claim, id=passages[number - 1].id, lang=passages[number - 1].lang)

    return replace(found, claims=tuple(map(own, found.claims)))


def _why_not(row: Scored) -> str | None:
    """Return why there is nothing to check; None if there is."""
    if not any(_is_text(hit.text) for hit in row.passages):
        return NO_PASSAGES
    if row.declined or metrics.declines(row.answer, row.doc.query_lang, row.doc.choices or ()):
        return DECLINED
    return None if _is_text(metrics.without_citations(row.answer, row.doc.query_lang)) else EMPTY


def _answer_languages(rows: Sequence[Scored]) -> list[str]:
    """Return the language of each answer: the question's, unless a longer answer is detected in another."""
    asked = [row.doc.query_lang for row in rows]
    rate = metrics.correct_language_rate([row.answer for row in rows], asked)
    return [
        str(label) if correct is False and is_language(str(label)) else lang
        for lang, label, correct in zip(asked, rate.detected, rate.correct, strict=True)
    ]


def context_pair(lang: str, passages: Sequence[Hit]) -> dict[str, str]:
    """Return a language and that of the passages shown, by key: ``de->en``, ``de->several``, ``de->unknown``.

    It is empty without a passage.
    """
    if not any(hit.lang or hit.text for hit in passages):
        return {}
    shown = sorted({hit.lang for hit in passages if hit.lang}) or ["unknown"]
    return {CONTEXT_PAIR: f"{lang}->{shown[0] if len(shown) == 1 else 'several'}"}


def evidence_pair(grounding: Grounding, passages: Sequence[Hit]) -> str:
    """Return the languages of an answer and of what was shown: ``de->en``, ``de->several``, ``de->unknown``."""
    pair = context_pair(grounding.lang, [hit for hit in passages if _is_text(hit.text)])
    return pair.get(CONTEXT_PAIR, f"{grounding.lang}->unknown")


def grounded(rows: Sequence[Scored]) -> list[Value]:
    """Return the share of each answer's claims that a passage shown supports."""
    return [_grounded(row) for row in rows]


def _grounded(row: Scored) -> Value:
    if (reason := _why_not(row)) is not None:
        return reason
    if row.grounding is None:
        return NO_CLASSIFIER
    if undecided := row.grounding.undecided:
        return undecided[0].why_unjudged
    return EMPTY if row.grounding.supported is None else row.grounding.supported


def crossed(name: str, rows: Sequence[Scored], right: Sequence[Value] | None = None) -> list[Value]:
    """Return 1 for each row that is right or wrong, and supported or not, as ``name`` says (``right_supported``).

    ``right`` are the values of the metric that says whether answers are right. A row is supported if all its claims
    are.
    """
    wanted, _, support = name.partition("_")
    values = [NO_CORRECT] * len(rows) if right is None else right
    out: list[Value] = []
    for value, found in zip(values, grounded(rows), strict=True):
        reason = next((said for said in (found, value) if isinstance(said, str)), None)
        alike = (value == 1.0) == (wanted == "right") and (found == 1.0) == (support == "supported")
        out.append(float(alike) if reason is None else reason)
    return out
