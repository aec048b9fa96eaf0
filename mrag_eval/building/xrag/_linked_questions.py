"""Questions that need both articles of a pair: written, checked and translated (XRAG, section 4.2)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mrag_eval.building.review._review import Holds, ReviewDocument, ReviewItem
from mrag_eval.building.review._review_outcome import Review, crossdoc_type
from mrag_eval.building.steps._asking import (
    Ask,
    all_tags,
    ask_each,
    ask_items,
    failure,
    fault,
    one_of_words,
    tagged_pairs,
)
from mrag_eval.building.steps._records import Drop, Outcome, Settle, dropped, kept
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.steps._words import copied_share, count_words
from mrag_eval.building.xrag._articles import Library
from mrag_eval.building.xrag._xrag_records import Article, LinkedQuestion, SimplePair
from mrag_eval.building.xrag._xrag_settings import XragSettings
from mrag_eval.core import language_name
from mrag_eval.judging import Case, verdict_rubric
from mrag_eval.models import Answered, AuxModel, Parsed, generate_parsed, parse_tag
from mrag_eval.platform import at_once

KIND_NAMES = {"aggregation": "aggregation", "comparison": "comparison", "multihop": "multi-hop", "set": "set"}
# Replies that mean "nothing", in the models' wordings.
NONE_WORDS = frozenset({"none", "n/a", "null", "unknown", ""})
_PARTS = ("first", "second")
# A question, and the simple pairs selected for it, by article; None if there are not some of both.
_Asked = tuple[str, tuple[tuple[SimplePair, ...], ...] | None]
# Names of simple pairs in the prompt: A1 is the first pair of the first article.
_NAMED_PAIR = re.compile(r"\b([AB])\s?(\d+)\b", re.IGNORECASE)


def is_none(text: str) -> bool:
    """Return whether the content of a reply means "none"."""
    return text.strip(" .\"'").casefold() in NONE_WORDS


def topic(model: AuxModel, prompts: Prompts, library: Library, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Keep the pairs whose articles a model calls topically related."""

    def asks(item: LinkedQuestion) -> list[Ask[str]]:
        texts = {part: library.article(end).text for part, end in zip(_PARTS, item.ends, strict=True)}
        return [Ask(prompts.conversation("topic", texts), lambda reply: one_of_words(reply, "related", ("yes", "no")))]

    def make(item: LinkedQuestion, answers: list[str]) -> Outcome:
        return kept(item) if answers[0] == "yes" else dropped("not related")

    ask_items(model, items, asks, make, settle, seat="build topic")


def summaries(
    model: AuxModel,
    prompts: Prompts,
    settings: XragSettings,
    library: Library,
    items: Sequence[LinkedQuestion],
    settle: Settle,
) -> None:
    """Summarise both articles; ``copied`` is the share of each summary's word 4-grams that occur in its article."""
    limits = settings.limits

    def ask(name: str) -> Ask[str]:
        article = library.article(name)
        texts = {"text": article.text, "max_words": str(limits.summary_words)}

        def read(reply: str) -> Parsed[str]:
            parsed = parse_tag(reply, "summary")
            if not parsed.value:
                return Parsed(None, parsed.error or "<summary> is empty")
            words = count_words(parsed.value)
            if words > limits.summary_words:
                return fault(
                    "summary too long", f"the summary has {words} words, at most {limits.summary_words} are allowed"
                )
            if limits.copied is not None and copied_share(parsed.value, article.text) > limits.copied:
                return fault("summary copies", "the summary repeats the article's own phrases: use other words")
            return Parsed(parsed.value)

        return Ask(prompts.conversation("summary", texts, lang=article.lang), read)

    def make(item: LinkedQuestion, answers: list[str]) -> Outcome:
        texts = [library.article(end).text for end in item.ends]
        copied = tuple(round(copied_share(*pair), 3) for pair in zip(answers, texts, strict=True))
        return kept(replace(item, summaries=tuple(answers), copied=copied))

    ask_items(model, items, lambda item: [ask(end) for end in item.ends], make, settle, seat="build summary")


def simple_pairs(
    model: AuxModel, prompts: Prompts, settings: XragSettings, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Write question-answer pairs on each summary; settle one record per question type to write."""
    limits = settings.limits

    def fits(question: str, answer: str) -> bool:
        short = count_words(question) <= limits.simple_question_words
        return short and count_words(answer) <= limits.simple_answer_words

    def read(reply: str) -> Parsed[list[SimplePair]]:
        found = tagged_pairs(reply, "question", "answer")
        if not found:
            return Parsed(None, "there is no <question> followed by its <answer> in the reply")
        if not any(fits(*pair) for pair in found):
            most = f"{limits.simple_question_words} words, an answer {limits.simple_answer_words}"
            return fault("simple pairs too long", f"a question may have at most {most}")
        return Parsed(found)

    def asks(item: LinkedQuestion) -> list[Ask[list[SimplePair]]]:
        numbers = {
            "question_words": str(limits.simple_question_words),
            "answer_words": str(limits.simple_answer_words),
            "max_pairs": str(limits.simple_pairs),
        }
        return [Ask(prompts.conversation("simple_qa", {"text": text, **numbers}), read) for text in item.summaries]

    def make(item: LinkedQuestion, answers: list[list[SimplePair]]) -> Outcome:
        drops: list[Drop] = []
        sets = []
        for found in answers:
            within = [pair for pair in found if fits(*pair)]
            drops += [Drop("a simple pair too long")] * (len(found) - len(within))
            drops += [Drop("a simple pair too many")] * max(0, len(within) - limits.simple_pairs)
            sets.append(tuple(within[: limits.simple_pairs]))
        made = [replace(item, id=f"{item.id}-{kind}", type=kind, pairs=tuple(sets)) for kind in settings.types]
        return Outcome(tuple(made), tuple(drops))

    ask_items(model, items, asks, make, settle, seat="build simple_qa")


def questions(
    model: AuxModel, prompts: Prompts, settings: XragSettings, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Write linked questions of the item's type, one record each, with the simple pairs that were selected for it."""
    limits = settings.limits

    def reader(item: LinkedQuestion) -> Callable[[str], Parsed[list[_Asked]]]:
        def read(reply: str) -> Parsed[list[_Asked]]:
            found = all_tags(reply, "question")
            if not found:
                return Parsed(None, "there is no <question> in the reply")
            names = dict(tagged_pairs(reply, "question", "pairs"))
            asked = [(q, selected_pairs(names.get(q, ""), item.pairs)) for q in found if not is_none(q)]
            if asked and not any(selected for _, selected in asked):
                return fault(
                    "question without selected pairs",
                    "every <question> must be followed by <pairs>, which names at least one pair of each set (A1, B2)",
                )
            if asked and all(count_words(question) > limits.question_words for question, _ in asked):
                return fault("question too long", f"a question may have at most {limits.question_words} words")
            return Parsed(asked)

        return read

    def asks(item: LinkedQuestion) -> list[Ask[list[_Asked]]]:
        texts: dict[str, Any] = {
            "kind": item.type,
            "kind_name": KIND_NAMES[item.type],
            "max_words": str(limits.question_words),
            "most": str(limits.questions_per_type),
        }
        for part, pairs in zip(_PARTS, item.pairs, strict=True):
            texts[f"{part}_questions"] = [question for question, _ in pairs]
            texts[f"{part}_answers"] = [answer for _, answer in pairs]
        return [Ask(prompts.conversation("questions", texts), reader(item))]

    def make(item: LinkedQuestion, answers: list[list[_Asked]]) -> Outcome:
        found = answers[0]
        if not found:
            return dropped("no question of this type")
        chosen = [(question, selected) for question, selected in found if selected is not None]
        within = [entry for entry in chosen if count_words(entry[0]) <= limits.question_words]
        drops = [Drop("a question without selected pairs")] * (len(found) - len(chosen))
        drops += [Drop("a question too long")] * (len(chosen) - len(within))
        drops += [Drop("a question too many")] * max(0, len(within) - limits.questions_per_type)
        made = [
            replace(item, id=f"{item.id}-{n}", question=question, pairs=selected)
            for n, (question, selected) in enumerate(within[: limits.questions_per_type], 1)
        ]
        return Outcome(tuple(made), tuple(drops))

    ask_items(model, items, asks, make, settle, seat="build questions")


def selected_pairs(names: str, pairs: Sequence[Sequence[SimplePair]]) -> tuple[tuple[SimplePair, ...], ...] | None:
    """Return the simple pairs that a reply names, by article; None unless it names existing pairs of both."""
    named = [(0 if letter in "Aa" else 1, int(number) - 1) for letter, number in _NAMED_PAIR.findall(names)]
    if any(not 0 <= n < len(pairs[side]) for side, n in named):
        return None
    chosen = (sorted({n for s, n in named if s == side}) for side in range(len(pairs)))
    selected = tuple(tuple(side[n] for n in numbers) for side, numbers in zip(pairs, chosen, strict=True))
    return selected if all(selected) else None


def answers(
    model: AuxModel,
    prompts: Prompts,
    settings: XragSettings,
    library: Library,
    items: Sequence[LinkedQuestion],
    settle: Settle,
) -> None:
    """Answer every question from both texts and its selected simple pairs; drop one without an answer."""

    def asks(item: LinkedQuestion) -> list[Ask[str]]:
        first, second = map(library.article, item.ends)
        texts = item.summaries if settings.answer_from == "summaries" else (first.text, second.text)
        pairs = [pair for side in item.pairs for pair in side]
        given: dict[str, Any] = {
            "question": item.question,
            "first": texts[0],
            "first_date": first.date,
            "second": texts[1],
            "second_date": second.date,
            "pair_questions": [question for question, _ in pairs],
            "pair_answers": [answer for _, answer in pairs],
        }
        return [Ask(prompts.conversation("answer", given), lambda reply: parse_tag(reply, "answer"))]

    def make(item: LinkedQuestion, given: list[str]) -> Outcome:
        answer = " ".join(given[0].split())
        return dropped("not answerable") if is_none(answer) else kept(replace(item, answer=answer))

    ask_items(model, items, asks, make, settle, seat="build answer")


# A language detector is trusted on questions longer than this, or if hardly a letter is in a script of the target
# language.
_JUDGED_FROM, _OFF_SCRIPT = 40, 0.95


def translate(model: AuxModel, prompts: Prompts, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Translate question and answer of every item into its ``language``; another language is a fault."""

    def asks(item: LinkedQuestion) -> list[Ask[tuple[str, str]]]:
        texts, lang = {"question": item.question, "answer": item.answer}, item.language

        def read(reply: str) -> Parsed[tuple[str, str]]:
            found = tagged_pairs(reply, "question", "answer")
            if not found or is_none(found[-1][0]):
                return Parsed(None, "there is no <question> followed by its <answer> in the reply")
            if not in_language(found[-1][0], lang):
                return fault("translated into another language", f"the question is not in {language_name(lang)}")
            return Parsed(found[-1])

        return [Ask(prompts.conversation("translation", texts, lang=lang), read)]

    def make(item: LinkedQuestion, answers: list[tuple[str, str]]) -> Outcome:
        question, answer = answers[0]
        return kept(replace(item, translated_question=question, translated_answer=answer))

    ask_items(model, items, asks, make, settle, seat="build translation")


def translation_item(record: LinkedQuestion) -> ReviewItem:
    """Return a translation as an item of a review sheet, with the English question and answer as its document.

    On this sheet, ``natural`` and ``answerable`` are of the translated question: whether it reads well, and whether it
    asks for the English answer. ``correct`` is whether the answers are the same.
    """
    english = ReviewDocument(f"{record.question}\n\n{record.answer}", "en")
    question, answer = record.translated_question, record.translated_answer
    return ReviewItem(record.id, question, answer, record.language, (english,), "translation")


def settle_translations(found: Review, items: Sequence[LinkedQuestion], settle: Settle) -> None:
    """Settle the items whose translation passed, with corrected answers; drop the others with the reason."""
    for item in items:
        decision = found.decisions[item.id]
        if decision.answer is None:
            settle(item.id, dropped(f"review of translations: {decision.reason}"))
        else:
            settle(item.id, kept(replace(item, translated_answer=decision.answer)))


def in_language(text: str, lang: str) -> bool:
    """Return whether a text may be in the language, as far as a detector can judge short texts."""
    from mrag_eval.metrics import code_switch_share, correct_language_rate

    correct = correct_language_rate([text], [lang], min_chars=1).correct[0]
    if correct is not False:
        return True
    off_script = code_switch_share(text, lang).share or 0.0
    return len(text) <= _JUDGED_FROM and off_script < _OFF_SCRIPT


HOLDS: tuple[Holds, ...] = ("sufficient", "some", "none")
KNOWN = "answered without documents"


def closed_book(
    models: Mapping[str, AuxModel], judge: AuxModel, prompts: Prompts, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Drop every question that any of the models answers without documents, according to the judge.

    All models are asked concurrently. A failed call leaves its question out for this run; a reply that cannot be parsed
    is not an answer.
    """
    conversations = [prompts.conversation("closed_book", {"question": item.question}) for item in items]

    def ask(name: str) -> Callable[[], list[Answered[str]]]:
        seat = models[name].seat("build closed_book")
        return lambda: generate_parsed(seat, conversations, lambda reply: parse_tag(reply, "answer"))

    said = at_once({name: ask(name) for name in models}) if items else {}
    rubric = verdict_rubric()
    cases: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    lost: dict[str, Any] = {}
    for name, given in said.items():
        for item, answer in zip(items, given, strict=True):
            if answer.value is not None and not is_none(answer.value):
                cases[item.id].append((name, Case(item.id, item.question, "en", (item.answer,), answer.value)))
            elif answer.reason not in (None, "unreadable"):
                lost.setdefault(item.id, failure([answer]))

    def asks(item: LinkedQuestion) -> list[Ask[Any]]:
        return [Ask(*rubric.request(case)) for _, case in cases[item.id]]

    def make(item: LinkedQuestion, verdicts: list[Answered[Any]]) -> Outcome:
        right = [name for (name, _), v in zip(cases[item.id], verdicts, strict=True) if v.value and v.value.verdict]
        if right:
            return dropped(KNOWN, ", ".join(right))
        missing = lost.get(item.id) or failure(verdicts)
        if missing is not None:
            return Outcome(drops=(missing,))
        return kept(replace(item, unknown_to=tuple(models)))

    ask_each(judge, items, asks, make, settle, seat="build judge")


def holds_ask(prompts: Prompts, item: LinkedQuestion, article: Article) -> Ask[str]:
    """Return the question how much of an answer an article contains."""
    texts = {"question": item.question, "answer": item.answer, "text": article.text, "date": article.date}
    return Ask(prompts.conversation("holds", texts), lambda reply: one_of_words(reply, "holds", HOLDS))


def what_each_holds(
    model: AuxModel, prompts: Prompts, library: Library, items: Sequence[LinkedQuestion], settle: Settle
) -> None:
    """Label how much of the answer each article contains, and derive XRAG's ``crossdoc_type``.

    0: one article suffices; 1: one does, and the other supports it; 2: each contains part. A question is dropped if one
    article contains nothing and the other does not suffice. Labels of a review then replace the model's.
    """

    def asks(item: LinkedQuestion) -> list[Ask[str]]:
        return [holds_ask(prompts, item, library.article(end)) for end in item.ends]

    def make(item: LinkedQuestion, answers: list[str]) -> Outcome:
        found = [next(word for word in HOLDS if word == answer) for answer in answers]
        outcome = with_labels(item, found)
        return with_people(replace(item, holds=tuple(found))) if outcome.made else outcome

    ask_items(model, items, asks, make, settle, seat="build holds")


def with_labels(item: LinkedQuestion, holds: Sequence[Holds]) -> Outcome:
    """Return the item with how much each of its articles contains, and its ``crossdoc_type``; drop it without one."""
    kind = crossdoc_type(holds)
    if kind is None:
        return dropped("not in the articles", " and ".join(holds))
    return kept(replace(item, holds=tuple(holds), crossdoc_type=kind))


def with_people(item: LinkedQuestion) -> Outcome:
    """Return the item with its reviewers' label of each article; where they gave none, the model's is kept."""
    labels = zip(item.people_holds or (None, None), item.holds, strict=True)
    return with_labels(item, [people or model for people, model in labels])
