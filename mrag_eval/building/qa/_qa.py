"""Benchmark built from a user's own documents by ``mrag-eval build qa``, following The Cross-Lingual Cost.

Each document is kept in one language, drawn at random. Its questions are asked in independently drawn languages, and
their categories are drawn by share (section 3.2 and Appendix A.2). A model writes the question and the answer, a model
checks them, and the remaining questions are balanced over languages.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TypeVar

import numpy as np

from mrag_eval.building.qa._qa_config import LANGUAGE, Balance, Choice, QaConfig, QaDocument, QaQuestion
from mrag_eval.building.review._review import ReviewDocument, ReviewItem
from mrag_eval.building.review._review_outcome import Review
from mrag_eval.building.steps._asking import Ask, ask_items, fault, model_identity
from mrag_eval.building.steps._records import Outcome, Settle, dropped, kept
from mrag_eval.building.steps._steps import Step
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.steps._words import count_words
from mrag_eval.core import as_verdict, base_language, is_language, language_name
from mrag_eval.datasets import sha256_file
from mrag_eval.metrics import LanguageDetector, ScriptDetector, accepts, default_detector
from mrag_eval.models import AuxModel, Parsed, parse_json, parse_tag
from mrag_eval.platform import DataError

PROMPTS = ("qa_write", "qa_check")
_PUNCTUATION = ("P", "Z", "C")


@dataclass(frozen=True)
class QaPlan:
    """Inputs of a pipeline. ``versions`` lists the languages that every document of the corpus is available in."""

    corpus: Path
    sha256: str
    config: QaConfig
    writer: AuxModel
    checker: AuxModel
    versions: Mapping[str, Sequence[str]]

    @property
    def doc_languages(self) -> list[str]:
        return sorted({lang for langs in self.versions.values() for lang in langs})

    @property
    def categories(self) -> dict[str, Mapping[str, Choice]]:
        """Return the categories, the language of the user first."""
        given = dict(self.config.categories)
        even = {lang: Choice(share=1) for lang in self.doc_languages}
        return {LANGUAGE: given.pop(LANGUAGE, even), **given}

    @property
    def user_languages(self) -> list[str]:
        return sorted(self.categories[LANGUAGE])


def plan_qa(corpus: Path, config: QaConfig, writer: AuxModel, checker: AuxModel) -> QaPlan:
    """Read the ids and languages of the corpus. Raises DataError for files that cannot be read."""
    from mrag_eval.retrievers import read_corpus

    versions: dict[str, list[str]] = {}
    for document in read_corpus(corpus, keys=config.keys or None):
        versions.setdefault(document.id, []).append(document.lang)
    return QaPlan(corpus, _sha256(corpus), config, writer, checker, versions)


def _sha256(corpus: Path) -> str:
    from mrag_eval.platform import content_key

    if corpus.is_file():
        return sha256_file(corpus)
    files = sorted(path for path in corpus.rglob("*") if path.is_file())
    return content_key(*((str(path.relative_to(corpus)), sha256_file(path)) for path in files))


def linked_questions(plan: QaPlan) -> list[Step]:
    """Return the steps up to the questions for human review: documents, draw, write, check, distinct."""
    config, prompts = plan.config, Prompts(PROMPTS, plan.config.prompts)
    asks = {name: {label: c.model_dump() for label, c in choices.items()} for name, choices in plan.categories.items()}
    sizes = {"per_document": config.per_document, "sample": config.sample, "excerpt_words": config.excerpt_words}
    drawing = {"categories": asks, **sizes}
    read = {"corpus": plan.sha256, "keys": config.keys, "min_words": config.min_words, "seed": config.seed}
    writer, checker = model_identity(plan.writer), model_identity(plan.checker)
    return [
        Step("documents", lambda items, settle: _documents(plan, settle), read, whole=True),
        Step(
            "draw",
            lambda items, settle: _draw(plan, items, settle),
            {**drawing, "seed": config.seed},
            QaDocument,
            whole=True,
        ),
        Step(
            "write",
            lambda items, settle: _write(plan, prompts, items, settle),
            {"model": writer, "prompt": prompts.hashes("qa_write"), "languages": plan.user_languages},
            QaQuestion,
            models=[plan.writer],
        ),
        Step(
            "check",
            lambda items, settle: _check(plan, prompts, items, settle),
            {"model": checker, "prompt": prompts.hashes("qa_check")},
            QaQuestion,
            models=[plan.checker],
        ),
        Step("distinct", _distinct, {}, QaQuestion, whole=True),
    ]


def review_step(sheets: Sequence[Path], judged: Callable[[Sequence[QaQuestion]], Review]) -> Step:
    """Return the step that keeps the questions that annotators pass, with their corrections.

    Without ``sheets`` it keeps everything.
    """

    def work(items: Sequence[QaQuestion], settle: Settle) -> None:
        decisions = judged(items).decisions if sheets and items else {}
        for item in items:
            decision = decisions.get(item.id)
            if decision is None:
                settle(item.id, kept(item))
            elif decision.answer is None:
                settle(item.id, dropped(f"review: {decision.reason}"))
            else:
                settle(item.id, kept(replace(item, answer=decision.answer, corrected=decision.corrected)))

    hashes = [sha256_file(path) if path.is_file() else None for path in sheets]
    return Step("review", work, {"sheets": hashes}, QaQuestion, whole=True)


def balance_step(config: QaConfig) -> Step:
    """Return the step that draws equal numbers of questions per language pair, or per document language."""

    def work(items: Sequence[QaQuestion], settle: Settle) -> None:
        cells = {item.id: cell_of(config.balance, item.user_lang, item.doc_lang) for item in items}
        chosen, _ = balanced(cells, np.random.default_rng([config.seed, 2]))
        for item in items:
            settle(item.id, kept(item) if item.id in chosen else dropped("surplus of its languages"))

    return Step("balance", work, {"over": config.balance, "seed": config.seed}, QaQuestion, whole=True)


def review_items(items: Sequence[QaQuestion]) -> list[ReviewItem]:
    """Return the questions as items of the review sheet."""
    return [
        ReviewItem(
            item.id,
            item.question,
            item.answer,
            item.user_lang,
            (ReviewDocument(item.excerpt, item.doc_lang, item.title),),
            ", ".join(item.traits.values()),
        )
        for item in items
    ]


def empty_pairs(plan: QaPlan, items: Sequence[QaQuestion]) -> list[str]:
    """Return the pairs of question and document language that can be drawn but have no question."""
    there = Counter((item.user_lang, item.doc_lang) for item in items)
    return [f"{u}->{d}" for u, d in product(plan.user_languages, plan.doc_languages) if not there[u, d]]


# ----------------------------------------------------------------------------------------------------- the steps


def _documents(plan: QaPlan, settle: Settle) -> None:
    """Keep one version of every document, in a language drawn at random."""
    from mrag_eval.retrievers import read_corpus

    chosen = drawn_languages(plan.versions, np.random.default_rng([plan.config.seed, 0]))
    for document in read_corpus(plan.corpus, keys=plan.config.keys or None):
        if document.lang != chosen[document.id]:
            continue
        words = count_words(document.text)
        if words < plan.config.min_words:
            settle(document.id, dropped("too short", f"{words} words, at least {plan.config.min_words} are needed"))
            continue
        versions = tuple(sorted(plan.versions[document.id]))
        settle(document.id, kept(QaDocument(document.id, document.lang, document.title, document.text, versions)))


def _draw(plan: QaPlan, items: Sequence[QaDocument], settle: Settle) -> None:
    """Settle the questions to write: each gets a profile and the excerpt of the document that it is written from."""
    from mrag_eval.retrievers import Document, chunk_documents

    config, rng = plan.config, np.random.default_rng([plan.config.seed, 1])
    if config.sample is not None and config.sample < len(items):
        asked = set(rng.choice(len(items), size=config.sample, replace=False).tolist())
        for i, item in enumerate(items):
            if i not in asked:
                settle(item.id, dropped("not sampled"))
        items = [item for i, item in enumerate(items) if i in asked]
    profiles = drawn_categories(plan.categories, len(items) * config.per_document, rng)
    for place, item in enumerate(items):
        pieces = [item.text]
        if count_words(item.text) > config.excerpt_words:
            document = Document(item.id, item.lang, item.text)
            cut = {"method": "sentences", "size": config.excerpt_words, "title_in_front": False}
            pieces = [passage.text for passage in chunk_documents([document], cut, token_counter=count_words)]
            # the rest after the last full excerpt is as good a source, unless it is very short
            if len(pieces) > 1 and count_words(pieces[-1]) < config.min_words:
                pieces.pop()
        made = []
        for n in range(config.per_document):
            drawn = profiles[place * config.per_document + n]
            excerpt = pieces[int(rng.integers(len(pieces)))]
            name = f"{item.id}#{n + 1}"
            made.append(QaQuestion(name, item.id, item.lang, item.title, excerpt, drawn[LANGUAGE], drawn))
        settle(item.id, kept(*made))


def _profile(plan: QaPlan, item: QaQuestion) -> list[str]:
    return [plan.categories[name][label].ask for name, label in item.traits.items()]


def _shown(item: QaQuestion) -> list[dict[str, str]]:
    return [{"title": item.title, "text": item.excerpt, "lang": item.doc_lang}]


def _write(plan: QaPlan, prompts: Prompts, items: Sequence[QaQuestion], settle: Settle) -> None:
    languages = sorted({*plan.user_languages, *plan.doc_languages})

    def asks(item: QaQuestion) -> list[Ask[Pair]]:
        texts = {"traits": _profile(plan, item)}
        conversation = prompts.conversation("qa_write", texts, lang=item.user_lang, passages=_shown(item))
        return [Ask(conversation, lambda reply: read_pair(reply, item.user_lang, languages))]

    def make(item: QaQuestion, pairs: list[Pair]) -> Outcome:
        return kept(replace(item, question=pairs[0].question, answer=pairs[0].answer))

    ask_items(plan.writer, items, asks, make, settle, seat="qa writer")


def _check(plan: QaPlan, prompts: Prompts, items: Sequence[QaQuestion], settle: Settle) -> None:
    def asks(item: QaQuestion) -> list[Ask[dict[str, bool]]]:
        texts = {"traits": _profile(plan, item), "question": item.question, "answer": item.answer}
        conversation = prompts.conversation("qa_check", texts, lang=item.user_lang, passages=_shown(item))
        return [Ask(conversation, read_checks)]

    def make(item: QaQuestion, verdicts: list[dict[str, bool]]) -> Outcome:
        # an item fails once, at the first check that it does not pass
        failed = next((reason for key, reason in CHECKS.items() if not verdicts[0][key]), None)
        return kept(item) if failed is None else dropped(failed, item.question)

    ask_items(plan.checker, items, asks, make, settle, seat="qa checker")


def _distinct(items: Sequence[QaQuestion], settle: Settle) -> None:
    """Keep the first of questions that differ only in case, spaces and punctuation."""
    seen: dict[str, str] = {}
    for item in items:
        first = seen.setdefault(_bare(item.question), item.id)
        settle(item.id, kept(item) if first == item.id else dropped("duplicate", f"as {first}"))


def _bare(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in folded if unicodedata.category(char)[0] not in _PUNCTUATION)


def check_plan(plan: QaPlan) -> list[str]:
    """Return warnings to show before any model is called; raise DataError for an unusable corpus."""
    if not plan.versions:
        raise DataError(f"{plan.corpus}: holds no document", "one JSON object per line with id, lang and text")
    notes = []
    if len(plan.doc_languages) == 1 and plan.user_languages == plan.doc_languages:
        notes.append(
            f"all documents and all questions are in '{plan.doc_languages[0]}': no pair of languages is measured; name "
            "the users' languages under categories.language"
        )
    return notes


T = TypeVar("T", bound=Hashable)


def drawn_languages(versions: Mapping[str, Sequence[str]], rng: np.random.Generator) -> dict[str, str]:
    """Draw a language for every document, uniformly among its versions (The Cross-Lingual Cost, 3.2)."""
    return {name: sorted(langs)[int(rng.integers(len(langs)))] for name, langs in versions.items()}


def drawn_categories(
    categories: Mapping[str, Mapping[str, Choice]], n: int, rng: np.random.Generator
) -> list[dict[str, str]]:
    """Draw ``n`` combinations of categories, each category by its shares and independently of the others."""
    columns = {}
    for name, choices in categories.items():
        shares = np.array([choice.share for choice in choices.values()], dtype=np.float64)
        labels = list(choices)
        columns[name] = [labels[i] for i in rng.choice(len(labels), size=n, p=shares / shares.sum())]
    return [{name: column[i] for name, column in columns.items()} for i in range(n)]


def balanced(cells: Mapping[str, T], rng: np.random.Generator) -> tuple[set[str], int]:
    """Draw ids so that every cell has as many as the smallest; return them and that number.

    ``cells`` maps an id to its cell, so a cell without ids does not count.
    """
    members: dict[T, list[str]] = defaultdict(list)
    for name, cell in cells.items():
        members[cell].append(name)
    if not members:
        return set(), 0
    smallest = min(map(len, members.values()))
    kept = {listed[i] for listed in members.values() for i in rng.permutation(len(listed))[:smallest].tolist()}
    return kept, smallest


def cell_of(balance: Balance, user_lang: str, doc_lang: str) -> tuple[str, ...]:
    """Return the cell to balance over: the language pair, the document's language, or nothing."""
    return {"pairs": (user_lang, doc_lang), "documents": (doc_lang,), "none": ()}[balance]


def shares_of(labels: Iterable[str]) -> dict[str, float]:
    """Return the share of every label that occurs; empty for no labels."""
    counts: dict[str, int] = defaultdict(int)
    for label in labels:
        counts[label] += 1
    total = sum(counts.values())
    return {label: count / total for label, count in counts.items()}


# The checker's decisions, and the reason for dropping an item that fails one.
CHECKS = {
    "answerable": "not answerable",
    "faithful": "not faithful",
    "self_contained": "not self-contained",
    "natural": "not natural",
    "fits": "not as drawn",
}
# The language of shorter texts is identified by script or not at all: detectors guess there, especially on names in
# answers.
_MIN_CHARS = {"question": 20, "answer": 40}


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and its answer."""

    question: str
    answer: str


def read_pair(reply: str, lang: str, languages: Sequence[str]) -> Parsed[Pair]:
    """Parse the pair in a reply: two tags, both texts in ``lang`` if that can be detected (among ``languages``)."""
    texts = []
    for tag in ("question", "answer"):
        parsed = parse_tag(reply, tag)
        if parsed.value is None:
            return Parsed(None, parsed.error)
        text = " ".join(parsed.value.split())
        if not text:
            return Parsed(None, f"<{tag}> is empty")
        texts.append(text)
    for kind, text in zip(("question", "answer"), texts, strict=True):
        found = detected(text, tuple(languages), _MIN_CHARS[kind])
        if is_language(found) and not accepts(base_language(lang), found):
            return fault(
                f"{kind} in another language", f"the {kind} is in {language_name(found)}, not in {language_name(lang)}"
            )
    if texts[0].casefold() == texts[1].casefold():
        return fault("answer repeats the question", "the answer is the question again")
    return Parsed(Pair(*texts))


def read_checks(reply: str) -> Parsed[dict[str, bool]]:
    """Parse all verdicts in a reply."""
    tagged = parse_tag(reply, "verdict")
    if tagged.value is None:
        return Parsed(None, tagged.error)
    parsed = parse_json(tagged.value, tuple(CHECKS))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    verdicts = {key: as_verdict(parsed.value[key]) for key in CHECKS}
    unclear = next((key for key, verdict in verdicts.items() if verdict is None), None)
    if unclear is not None:
        return Parsed(None, f"'{unclear}' is {parsed.value[unclear]!r:.60}, neither 'yes' nor 'no'")
    return Parsed({key: bool(verdict) for key, verdict in verdicts.items()})


def detected(text: str, languages: tuple[str, ...], min_chars: int) -> str:
    """Return the language of ``text``.

    The script decides if only one of ``languages`` uses it, else the default detector for texts of at least
    ``min_chars`` characters, else ``und``.
    """
    return _detector(languages, min_chars).detect([text])[0]


class _LongTexts:
    """The default detector, restricted to texts that are long enough for it."""

    supported = None

    def __init__(self, min_chars: int) -> None:
        self._min_chars = min_chars

    def detect(self, texts: Sequence[str]) -> list[str]:
        labels = default_detector().detect([text.replace("\n", " ") for text in texts])
        return [label if len(text) >= self._min_chars else "und" for text, label in zip(texts, labels, strict=True)]


@lru_cache(maxsize=16)
def _detector(languages: tuple[str, ...], min_chars: int) -> LanguageDetector:
    return ScriptDetector(languages, fallback=_LongTexts(min_chars))
