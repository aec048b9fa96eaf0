"""XRAG: questions over eight given news articles, two of which support the answer (Liu et al., 2025).

Monolingual retrieval (section 3): questions in de, es, zh or ar over English articles. Multilingual retrieval: over
articles in English and in the question's language, one supporting and three distracting in each. The files have no key
for the setting of a row, so the articles' languages decide: a row is monolingual if they are all English.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import field_validator, model_validator

from mrag_eval.config import AbsolutePath
from mrag_eval.core import GivenPassage, RagDoc, is_language, same_language
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, HubDataset
from mrag_eval.datasets._files import (
    file_in,
    hub_file,
    hub_place,
    iter_jsonl,
    require_columns,
    require_path,
    require_text,
    sha256_file,
    unique_ids,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.datasets._xrag_english import Part as EnglishPart
from mrag_eval.datasets._xrag_english import in_english, passage_id, read_translations, with_failures
from mrag_eval.platform import DataError, content_key, number_of

HUB = HubDataset(
    id="AmazonScience/XRAG", revision="ead86612ac265e578ffee6f838c2180fec6428d9", licence="CC-BY-NC-4.0", megabytes=438
)
LANGUAGES = ("de", "es", "zh", "ar")
BENCHMARK = Declaration(
    name="xrag",
    title="XRAG",
    asks="questions over eight given news articles, two of which support the answer",
    sources=(HUB,),
    shareable=False,
    languages=(*LANGUAGES, "en"),
    breakdowns=("q_type", "a_type", "crossdoc_type"),
    main_metric="judged_accuracy",
    papers=("liu2025xrag",),
    published=("xrag",),
    needs=("download", "judge"),
    tasks="xrag",
)
# Rows per language on the dataset card; the multilingual counts of the development file differ by language.
_SIZES: dict[tuple[str, str], dict[str, int]] = {
    ("test", "mono"): dict.fromkeys((*LANGUAGES, "en"), 1000),
    ("test", "multi"): dict.fromkeys(LANGUAGES, 300),
    ("dev", "mono"): dict.fromkeys((*LANGUAGES, "en"), 584),
    ("dev", "multi"): {"ar": 112, "de": 164, "es": 333, "zh": 40},
}
_TEXTS = ("question", "answer", "en_question", "en_answer", "language")
_LISTS = ("articles", "dates", "is_support")
# Tokens of the eight articles of a row: the size of the test file, over its 5,200 rows, at four bytes a token.
_GIVEN_TOKENS = 20_000
# Of eight articles either four or none are in the question's language: fewer than two is a detector error.
_MIN_FOREIGN_SHARE = 0.25
# Enough of an article to detect its language.
_DETECT_CHARS = 500


class Detector(Protocol):
    """A language detector for texts (any detector of ``mrag_eval.metrics``)."""

    def detect(self, texts: Sequence[str]) -> list[str]:
        """Return one BCP 47 label per text."""
        ...

    def __hash__(self) -> int:
        """Return a hash: results are cached by detector."""
        ...


class XragBlock(DataBlock):
    """Data block: ``setting`` and the question's ``language``; ``en`` selects the English originals of the monolingual
    set.

    ``english`` names the parts to replace by their English versions (the controls EQ, ES, ED of section 5.4); the
    English articles are read from the file ``translations``; without one, the run's translator makes them.
    """

    split: Literal["test", "dev"] = "test"
    revision: str | None = HUB.revision
    setting: Literal["mono", "multi"]
    language: Literal["de", "es", "zh", "ar", "en"]
    english: tuple[EnglishPart, ...] = ()
    translations: AbsolutePath | None = None

    @field_validator("english", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _possible(self) -> XragBlock:
        if self.setting == "multi" and self.language == "en":
            raise ValueError("language 'en' requires setting 'mono': the multilingual questions are in de, es, zh, ar")
        if self.setting == "mono" and set(self.english) - {"question"}:
            raise ValueError("the articles of setting 'mono' are in English: only 'question' can be replaced there")
        if self.language == "en" and self.english:
            raise ValueError("questions and articles of language 'en' are in English: leave 'english' out")
        return self


@dataclass(frozen=True)
class _Row:
    """A checked row; ``languages`` has the language of every article: English, or the question's own."""

    where: str
    id: str
    row: Mapping[str, Any]
    languages: tuple[str, ...]

    @property
    def multi(self) -> bool:
        return any(code != "en" for code in self.languages)


def load(block: XragBlock, detector: Detector | None = None) -> Benchmark:
    """Load one language of one setting; ``given_passages`` are in display order.

    The order is the row's ``article_order`` if that is a permutation. If it is not, or if it is uninformative (the
    identity, with the supporting articles first), the articles are shuffled by (seed, row id) so that the supporting
    articles are not first. ``block.english`` changes texts and languages, never the rows or their order.
    """
    path = _file(block)
    rows, total, digest = _read(path, path.stat().st_mtime_ns, block.language, detector)
    if not rows:
        raise DataError(f"xrag: {path} holds no question in '{block.language}' ({total} rows)")
    found = [item for item in rows if item.multi == (block.setting == "multi")]
    if block.language == "en":  # after the choice of setting: a row of the other one must not replace the original
        found = list({item.row["en_question"]: item for item in reversed(found)}.values())[::-1]
    if not found:
        raise DataError(
            f"xrag: {path} holds no row of setting '{block.setting}' in '{block.language}' "
            f"({len(rows)} rows of the language, distinguished by the languages of their articles)"
        )
    ids, repeated = unique_ids([item.id for item in found])
    orders = [_order(item, block.seed) for item in found]
    docs = [_doc(name, item, order, block.language) for name, item, (order, _) in zip(ids, found, orders, strict=True)]
    notes = _notes(block, docs, sum(shuffled for _, shuffled in orders), repeated)
    place: dict[str, Any] = {"path": str(block.path)} if block.path else hub_place(HUB.id, block.revision, path)
    settings: dict[str, Any] = {"seed": block.seed}
    beside: dict[str, Any] = {}

    def as_stored() -> list[RagDoc]:
        # the order of articles is drawn where the file gives none
        kept = [range(len(order)) if drawn else order for order, drawn in orders]
        return [_doc(*each, block.language) for each in zip(ids, found, kept, strict=True)]

    parts = {_part(block): Part(len(docs), as_stored)}
    if block.english:
        translations = read_translations(block.translations, block.english)
        docs = [in_english(doc, block.english, translations) for doc in docs]
        notes += (f"in English: {', '.join(block.english)}",)
        if any(passage.shown_in for doc in docs for passage in doc.given_passages):
            notes += ("the run's translator translates these articles (no data.translations)",)
        if translations is not None:
            made = sum(p.original_lang is not None for doc in docs for p in doc.given_passages)
            docs, slips = with_failures(docs, translations, partial(_detected, detector=detector))
            if slips:
                notes += (
                    f"{slips} of {made} translations are not in English by the detector: their rows have a failure",
                )
            settings["translations"] = content_key(translations.texts)
            beside["translations"] = {"path": str(translations.path), "sha256": translations.sha256}
    origin = Origin({**place, "sha256": {path.name: digest}}, settings, parts, beside=beside)
    return Benchmark("xrag", docs, None, notes, origin)


def _part(block: XragBlock) -> str:
    return f"{block.split} {block.setting} {block.language}"


def _file(block: XragBlock) -> Path:
    name = f"xrag.{block.split}.jsonl"
    if block.path is None:
        return hub_file("xrag", HUB.id, name, block.revision)
    path = require_path(block.path, "xrag")
    return file_in(path, (name, f"{name}.gz"), f"xrag: {path}", f"download it from the dataset {HUB.id}")


# Mono and multi leaves of a language follow one another; the file is hundreds of megabytes.
@lru_cache(maxsize=2)
def _read(path: Path, _mtime_ns: int, language: str, detector: Detector | None) -> tuple[list[_Row], int, str]:
    """Return the checked rows of a language, the total number of rows, and the SHA-256.

    For ``en`` each English question with the same articles is returned once.
    """
    kept: list[tuple[str, dict[str, Any]]] = []
    originals: set[tuple[str, int]] = set()
    total = 0
    for number, row in iter_jsonl(path):
        total += 1
        where = f"{path}, line {number}"
        _check(row, where)
        if language == "en":
            original = (row["en_question"], hash(tuple(sorted(row["articles"]))))
            if original in originals:
                continue
            originals.add(original)
        elif not same_language(row["language"], language):
            continue
        kept.append((where, row))
    languages = _article_languages([row for _, row in kept], detector)
    rows = [_Row(where, str(row["id"]), row, codes) for (where, row), codes in zip(kept, languages, strict=True)]
    return rows, total, sha256_file(path)


def _check(row: Mapping[str, Any], where: str) -> None:
    require_columns(row, ("id", *_TEXTS, *_LISTS), where)
    for key in _TEXTS:
        require_text(row[key], where, key)
    if not is_language(row["language"]):
        raise DataError(f"{where}: unknown language '{row['language']}'")
    articles = row["articles"]
    if not isinstance(articles, list) or not articles:
        raise DataError(f"{where}: 'articles' must be a list of texts, none found")
    for key in _LISTS:
        if not isinstance(row[key], list) or len(row[key]) != len(articles):
            raise DataError(f"{where}: '{key}' must be a list as long as 'articles' ({len(articles)})")
    for index, article in enumerate(articles):
        require_text(article, where, f"articles[{index}]")
    for index, mark in enumerate(row["is_support"]):
        if str(mark) not in ("0", "1", "True", "False"):
            raise DataError(f"{where}: is_support[{index}] = {mark!r} is neither 0 nor 1")


def _article_languages(rows: Sequence[Mapping[str, Any]], detector: Detector | None) -> list[tuple[str, ...]]:
    """Return the language of every article of every row; a single one in the row's own language counts as English."""
    labels = iter(_detected([article for row in rows for article in row["articles"]], detector))
    out = []
    for row in rows:
        own = row["language"]
        marks = [is_language(label) and same_language(label, own) for label in islice(labels, len(row["articles"]))]
        multi = not same_language(own, "en") and sum(marks) >= _MIN_FOREIGN_SHARE * len(marks)
        out.append(tuple(own if multi and mark else "en" for mark in marks))
    return out


def _detected(articles: Sequence[str], detector: Detector | None) -> list[str]:
    if detector is None:
        from mrag_eval.metrics import default_detector

        detector = default_detector()
    return detector.detect([article[:_DETECT_CHARS].replace("\n", " ") for article in articles])


def _supports(row: Mapping[str, Any]) -> list[bool]:
    # written as numbers or as digit strings
    return [str(mark) in ("1", "True") for mark in row["is_support"]]


def _order(item: _Row, seed: int) -> tuple[list[int], bool]:
    """Return the display order of the articles, and whether it had to be drawn."""
    import numpy as np

    count = len(item.row["articles"])
    supports = _supports(item.row)
    given = _permutation(item.row.get("article_order"), count)
    identity = list(range(count))
    in_front = sorted(supports, reverse=True)
    if given is not None and not (given == identity and supports == in_front):
        return given, False
    key = hashlib.sha256(item.id.encode()).digest()
    rng = np.random.default_rng([seed, int.from_bytes(key[:8], "big")])
    while True:
        drawn = [int(index) for index in rng.permutation(count)]
        # all articles support the answer, or none does: there is no better order
        if [supports[index] for index in drawn] != in_front or len(set(supports)) == 1:
            return drawn, True


def _permutation(value: Any, count: int) -> list[int] | None:
    """Return ``value`` as 0-based positions if it is a permutation (counted from 0 or 1), else None."""
    if not isinstance(value, list):
        return None
    try:
        order = [int(index) for index in value]
    except (TypeError, ValueError):
        return None
    for base in (0, 1):
        if sorted(order) == list(range(base, count + base)):
            return [index - base for index in order]
    return None


def _doc(name: str, item: _Row, order: Sequence[int], language: str) -> RagDoc:
    row, supports = item.row, _supports(item.row)
    passages = tuple(
        GivenPassage(
            id=passage_id(name, index),
            lang=item.languages[index],
            text=row["articles"][index].strip(),
            doc_id=passage_id(name, index),
            is_gold=supports[index],
            date="" if row["dates"][index] is None else str(row["dates"][index]),
        )
        for index in order
    )
    prefix = "en_" if language == "en" else ""
    crossdoc = row.get("crossdoc_type")
    extra = {
        "en_question": row["en_question"].strip(),
        "en_answer": row["en_answer"].strip(),
        "q_type": row.get("q_type"),
        "a_type": row.get("a_type"),
        "crossdoc_type": None if crossdoc is None else _as_int(crossdoc, item.where, "crossdoc_type"),
    }
    return RagDoc(
        id=name,
        query=row[f"{prefix}question"].strip(),
        query_lang=language,
        answers=(row[f"{prefix}answer"].strip(),),
        given_passages=passages,
        relevant_langs=tuple(dict.fromkeys(item.languages)),
        relevant_ids=tuple(passage.id for passage in passages if passage.is_gold),
        # intervals resample the translations of one English question together
        group_id=hashlib.sha256(row["en_question"].strip().encode()).hexdigest()[:12],
        extra=extra,
    )


def _as_int(value: Any, where: str, key: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise DataError(f"{where}: '{key}' must be a whole number, found {value!r:.40}") from None


def _notes(block: XragBlock, docs: Sequence[RagDoc], shuffled: int, repeated: int) -> tuple[str, ...]:
    gold = {sum(p.is_gold for p in doc.given_passages) for doc in docs}
    sizes = {len(doc.given_passages) for doc in docs}
    notes = [
        f"{len(docs)} questions of setting '{block.setting}' in {block.language} "
        "(settings distinguished by the detected languages of the articles)",
        f"articles in the order of article_order in {len(docs) - shuffled} rows, "
        f"shuffled (seed {block.seed}) in {shuffled}",
    ]
    if block.setting == "multi":
        uneven = sum(2 * sum(p.lang == "en" for p in doc.given_passages) != len(doc.given_passages) for doc in docs)
        if uneven:
            notes.append(f"{number_of(uneven, 'row')} whose articles are not half English by the detector")
    if gold != {2} or sizes != {8}:
        notes.append("not every row has 2 supporting of 8 articles")
    if repeated:
        notes.append(f"{repeated} repeated row ids were given a suffix (~2)")
    return tuple(notes)


def published(block: XragBlock) -> Mapping[str, int]:
    """Return the number of rows on the dataset card."""
    return {_part(block): _SIZES[block.split, block.setting][block.language]}


def expected(block: XragBlock) -> Expected:
    """Return what the dataset card tells of the rows."""
    return Expected(sum(published(block).values()), (block.language,), given_tokens=_GIVEN_TOKENS)


LOADER = LoaderSpec(BENCHMARK, XragBlock, load, expected=expected, published=published)
