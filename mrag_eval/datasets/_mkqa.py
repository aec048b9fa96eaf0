"""MKQA: Natural Questions in parallel translations (Longpre et al., 2021), as RAG in multilingual settings uses it.

The paper uses the questions that are also in KILT's Natural Questions, so that the Wikipedia pages that answer them are
known. Answers are only the ``text`` fields; questions without any (long answers, unanswerable ones) are left out. The
aliases, which the paper ignores, are kept in ``extra["aliases"]`` for a separate metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from mrag_eval.config import AbsolutePath
from mrag_eval.core import GivenPassage, RagDoc, language_name, titled
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, HubDataset, WebFile
from mrag_eval.datasets._files import (
    file_in,
    hub_dataset,
    hub_place,
    is_script_refusal,
    iter_jsonl,
    require_columns,
    require_path,
    require_text,
    sha256_file,
    web_file,
)
from mrag_eval.datasets._kilt import KILT, PARAGRAPHS_FILE, KiltNq, kilt_paragraphs, read_kilt_nq, usable_aliases
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import ConfigError, DataError, content_key

HUB = HubDataset(id="apple/mkqa", licence="CC-BY-SA-3.0", note="its hub card says CC BY 3.0", megabytes=20)
ORIGINAL = WebFile(url="https://github.com/apple/ml-mkqa/raw/main/dataset/mkqa.jsonl.gz", licence="CC-BY-SA-3.0")
LANGUAGES = ("ar", "de", "en", "es", "fi", "fr", "it", "ja", "ko", "pt", "ru", "th", "zh")
# Number of questions in the paper's intersection with KILT (its Table 4), in every language.
PAPER_ROWS = 2_827
# Number of questions with an answer, of any kind but the long ones.
ANSWERED = 6_758
Code = Literal["ar", "de", "en", "es", "fi", "fr", "it", "ja", "ko", "pt", "ru", "th", "zh"]
_COLUMNS = ("example_id", "queries", "answers")
# Chinese is Simplified Chinese.
_KEYS = {"zh": "zh_cn"}
BENCHMARK = Declaration(
    name="mkqa",
    title="MKQA",
    asks="Natural Questions in 13 parallel translations, short answers",
    sources=(HUB, ORIGINAL, KILT),
    shareable=True,
    languages=LANGUAGES,
    main_metric="char3gram_recall",
    modes=("no_ir", "en_only", "qlang", "qlang+en", "all"),
    papers=("longpre2021mkqa", "chirkova2024mrag"),
    published=("mrag",),
    needs=("download", "index"),
    tasks="mkqa",
)
# The order of the hub's class labels; the original file holds the names.
_TYPES = ("entity", "long_answer", "unanswerable", "date", "number", "number_with_unit", "short_phrase", "binary")


class MkqaBlock(DataBlock):
    """Data block: ``language`` of the questions; ``kilt`` a local copy of KILT's Natural Questions.

    ``subset``: ``kilt`` keeps the questions that KILT holds (the paper's), ``all`` every question with an answer, with
    unknown relevant pages.

    ``gold`` is the text that answers a question: KILT's ``page``, or its ``paragraph``, which comes with the row; its
    text is read from ``paragraphs``, KILT's knowledge source.
    """

    split: Literal["train"] = "train"
    revision: str | None = HUB.revision
    language: Code
    subset: Literal["kilt", "all"] = "kilt"
    kilt: AbsolutePath | None = None
    gold: Literal["page", "paragraph"] = "page"
    paragraphs: AbsolutePath | None = None


@dataclass(frozen=True, slots=True)
class _Answers:
    texts: tuple[str, ...]
    aliases: tuple[str, ...]
    type: str


@dataclass(frozen=True, slots=True)
class _Row:
    """A question in the 13 languages; ``answers`` has no text if the question has no answer."""

    id: str
    where: str
    queries: Mapping[str, str]
    answers: Mapping[str, _Answers]


@dataclass(frozen=True)
class _Table:
    rows: tuple[_Row, ...]
    where: str
    place: Mapping[str, Any]


def load(block: MkqaBlock) -> Benchmark:
    """Load one language of MKQA. ``group_id`` is the example id, shared by all languages.

    ``relevant_ids`` are the ids of the English Wikipedia pages that KILT names (``gold_doc_lang`` is ``en``).
    """
    table = _read(block)
    kilt = None if block.subset == "all" else read_kilt_nq(block.kilt)
    chosen = table.rows if kilt is None else _in_kilt(table, kilt)
    gold = _gold(chosen, kilt, block)
    answered = [row for row in chosen if row.answers[block.language].texts]
    docs = [_doc(row, block.language, kilt, gold) for row in answered]
    if not docs:
        raise DataError(
            f"mkqa: no question with an answer in {language_name(block.language)} "
            f"is left of {len(chosen)} in {table.where}"
        )
    settings: dict[str, Any] = {}
    if gold is not None:
        texts = [[passage.id, passage.text] for row in sorted(gold) for passage in gold[row]]
        settings["paragraphs"] = {"paragraphs": len(texts), "content": content_key(texts)}
    origin = Origin(
        {**table.place, **({} if kilt is None else {"kilt": dict(kilt.place)})},
        settings,
        # KILT's paragraphs are identified on their own
        {_part(block): Part(len(docs), lambda: [_doc(row, block.language, kilt, None) for row in answered])},
        beside={} if gold is None else {"paragraphs": {"path": str(block.paragraphs)}},
    )
    english = {row.id: own[0] for row in answered if (own := row.answers["en"].texts)}
    return Benchmark("mkqa", docs, None, _notes(block, table, len(chosen), docs), origin, english=english)


def _part(block: MkqaBlock) -> str:
    return language_name(block.language)


def _notes(block: MkqaBlock, table: _Table, chosen: int, docs: list[RagDoc]) -> tuple[str, ...]:
    parts = f"{len(docs):,} questions in {language_name(block.language)}"
    if block.subset == "kilt":
        parts += f", of {chosen:,} that KILT holds too"
    notes = [f"{parts}, of {len(table.rows):,} in the file ({chosen - len(docs):,} without an answer)"]
    unknown = sum(not doc.relevant_ids for doc in docs) if block.subset == "kilt" else 0
    if unknown:
        notes.append(f"KILT names no {block.gold} for {unknown:,} of them")
    return tuple(notes)


def _in_kilt(table: _Table, kilt: KiltNq) -> tuple[_Row, ...]:
    chosen = tuple(row for row in table.rows if row.id in kilt.places)
    if not chosen:
        raise DataError(
            f"mkqa: none of the {len(table.rows):,} example ids in {table.where} is among the {len(kilt.places):,} of "
            f"{kilt.where}",
            "data.kilt is KILT's nq-train-kilt.jsonl; data.subset=all takes every question, without relevant pages",
        )
    return chosen


# Id of a question -> the passages that answer it.
_Gold = Mapping[str, tuple[GivenPassage, ...]]


def _gold(rows: Iterable[_Row], kilt: KiltNq | None, block: MkqaBlock) -> _Gold | None:
    """Return the paragraphs that KILT names for each question, if the block asks for them; else None."""
    if block.gold == "page":
        return None
    if kilt is None:
        raise ConfigError("mkqa: data.gold=paragraph requires data.subset=kilt", "leave out data.gold, or data.subset")
    if block.paragraphs is None:
        raise ConfigError(
            f"mkqa: data.gold=paragraph needs data.paragraphs, KILT's {PARAGRAPHS_FILE}, which holds their texts",
            f"--metadata data.paragraphs={PARAGRAPHS_FILE}, or the tasks mkqa_oracle_pages_<language>, "
            "which need an index alone",
        )
    named = {row.id: kilt.paragraphs(row.id) for row in rows}
    texts = kilt_paragraphs(block.paragraphs, frozenset(place for places in named.values() for place in places))
    return {
        name: tuple(
            # numbered from 1, as in the authors' oracle runs
            GivenPassage(
                f"{page}_{number + 1}", "en", titled(*texts[page, number]), texts[page, number][0], page, is_gold=True
            )
            for page, number in places
            if (page, number) in texts
        )
        for name, places in named.items()
    }


def _doc(row: _Row, language: str, kilt: KiltNq | None, gold: _Gold | None) -> RagDoc:
    answers = row.answers[language]
    query = row.queries.get(language)
    if query is None:
        raise DataError(
            f"{row.where}: no question in {language_name(language)} (key '{_KEYS.get(language, language)}')"
        )
    own = () if gold is None else gold[row.id]
    pages = () if kilt is None else kilt.pages(row.id)
    return RagDoc(
        id=row.id,
        query=query,
        query_lang=language,
        answers=answers.texts,
        gold_doc_lang=None if kilt is None else "en",
        given_passages=own,
        relevant_ids=pages if gold is None else tuple(dict.fromkeys(passage.doc_id for passage in own)),
        relevant_documents=True,
        group_id=row.id,
        extra={"answer_type": answers.type, "aliases": list(answers.aliases)},
    )


def _read(block: MkqaBlock) -> _Table:
    if block.path is None:
        return _from_hub(block.revision)
    path = require_path(block.path, "mkqa")
    path = file_in(path, ("mkqa.jsonl.gz", "mkqa.jsonl"), f"mkqa: {path}", f"download it: {ORIGINAL.url}")
    return _from_file(path, path.stat().st_mtime_ns)


# The leaves of a group read the same file in succession.
@lru_cache(maxsize=2)
def _from_file(path: Path, _mtime_ns: int) -> _Table:
    rows = _rows((f"{path}, line {number}", row) for number, row in iter_jsonl(path))
    return _Table(rows, str(path), {"path": str(path), "sha256": sha256_file(path)})


@lru_cache(maxsize=2)
def _from_hub(revision: str | None) -> _Table:
    """Load the hub's Parquet files; if the hub only has the loading script, the file that the script would download."""
    try:
        dataset = hub_dataset("mkqa", HUB.id, "mkqa", "train", revision, _COLUMNS)
    except DataError as error:
        if not is_script_refusal(error):
            raise
        path = web_file("mkqa", ORIGINAL.url)
        return _Table(_from_file(path, path.stat().st_mtime_ns).rows, ORIGINAL.url, {"url": ORIGINAL.url})
    rows = _rows((f"{HUB.id}, row {index}", row) for index, row in enumerate(dataset))
    return _Table(rows, HUB.id, hub_place(HUB.id, revision, dataset, split="train"))


def _rows(records: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[_Row, ...]:
    rows: dict[str, _Row] = {}
    for where, record in records:
        require_columns(record, _COLUMNS, where)
        given = record["example_id"]
        if isinstance(given, bool) or not isinstance(given, int | str) or not str(given).strip():
            raise DataError(f"{where}: 'example_id' must be a whole number or text, found {given!r:.40}")
        name = str(given)
        if name in rows:
            raise DataError(f"{where}: example_id {name} was used before ({rows[name].where})")
        queries, answers = record["queries"], record["answers"]
        for key, value in (("queries", queries), ("answers", answers)):
            if not isinstance(value, Mapping):
                raise DataError(f"{where}: '{key}' must be an object by language, found {type(value).__name__}")
        asked = {code: queries.get(_KEYS.get(code, code)) for code in LANGUAGES}
        rows[name] = _Row(
            name,
            where,
            {code: require_text(text, where, f"queries.{code}").strip() for code, text in asked.items() if text},
            {code: _answers(answers.get(_KEYS.get(code, code)), code, where) for code in LANGUAGES},
        )
    if not rows:
        raise DataError("mkqa: the file holds no question")
    return tuple(rows.values())


def _answers(value: Any, code: str, where: str) -> _Answers:
    if value is None:
        return _Answers((), (), "missing")
    if isinstance(value, Mapping):  # the hub's columns may have one object of lists instead
        value = [dict(zip(value, items, strict=True)) for items in zip(*value.values(), strict=True)]
    if not isinstance(value, list) or not all(isinstance(answer, Mapping) for answer in value):
        raise DataError(f"{where}: 'answers.{_KEYS.get(code, code)}' must be a list of objects")
    texts: dict[str, None] = {}
    aliases: list[str] = []
    for answer in value:
        if "text" not in answer:
            raise DataError(f"{where}: an answer in '{_KEYS.get(code, code)}' has no key 'text'")
        if isinstance(answer["text"], str) and answer["text"].strip():
            texts[answer["text"].strip()] = None
            # an exploded alias belongs to one answer: pieces of two answers' aliases are not counted together
            aliases += usable_aliases(answer.get("aliases") or (), (), code)
    kept = tuple(texts)
    return _Answers(kept, tuple(a for a in dict.fromkeys(aliases) if a not in texts), _type(value))


def _type(answers: list[Mapping[str, Any]]) -> str:
    kind = answers[0].get("type") if answers else None
    if isinstance(kind, int) and 0 <= kind < len(_TYPES):
        return _TYPES[kind]
    return str(kind or "missing")


def published(block: MkqaBlock) -> Mapping[str, int]:
    """Return the papers' counts."""
    return {_part(block): ANSWERED if block.subset == "all" else PAPER_ROWS}


def expected(block: MkqaBlock) -> Expected:
    """Return what the papers' counts tell of the rows."""
    unread = (KILT.setting,) if block.subset == "all" else ()
    return Expected(sum(published(block).values()), (block.language,), unread=unread)


LOADER = LoaderSpec(BENCHMARK, MkqaBlock, load, expected=expected, published=published)
