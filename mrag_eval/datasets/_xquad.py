"""XQuAD under the protocol of The Cross-Lingual Cost: every paragraph in one language, questions in another.

XQuAD (Artetxe et al., 2020) holds the same 240 paragraphs and 1,190 questions in each language, in the same order. The
Cross-Lingual Cost (section 3.2) keeps each document in one language drawn uniformly at random and draws the language of
each question independently, so that every pair of question and document language is measured and the one relevant
passage is known.

The draw is reproducible: ``rng = numpy.random.default_rng(seed)``, the languages sorted by code, then ``rng.integers(0,
L, 240)`` for the paragraphs and, from the same generator, ``rng.integers(0, L, 1190)`` for the questions, both in file
order. With ``imbalance`` the paragraphs are drawn differently (:func:`~mrag_eval.datasets._imbalance.kept_versions`)
and the questions are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import field_validator

from mrag_eval.config import AbsolutePath
from mrag_eval.core import Passage, RagDoc, language_name
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, HubDataset
from mrag_eval.datasets._files import (
    hub_dataset,
    hub_place,
    read_json,
    read_squad,
    require_columns,
    require_path,
    require_text,
)
from mrag_eval.datasets._imbalance import Imbalance, imbalance_note, kept_versions
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import ConfigError, DataError, content_key, did_you_mean

HUB = HubDataset(id="google/xquad", licence="CC-BY-SA-4.0")
# Available from both the hub and the original repository (th and ro are in both too, but not in every copy).
LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
_KNOWN = (*LANGUAGES, "ro", "th")
# Number of questions in each language.
QUESTIONS = 1_190
BENCHMARK = Declaration(
    name="xquad",
    title="XQuAD",
    asks="paragraphs and questions in languages drawn at random, relevance known",
    sources=(HUB,),
    shareable=True,
    languages=LANGUAGES,
    main_metric="char3gram_recall",
    papers=("artetxe-etal-2020-cross", "amiraz2025crosslingual"),
    needs=("download",),
    tasks="xquad_rag",
)


class XquadBlock(DataBlock):
    """Data block: languages (ten by default), a JSON file that fixes the draw, and a filter on the question's language.

    ``parallel`` asks every question in every language instead of in one, for consistency over languages.
    """

    split: str = "validation"
    revision: str | None = HUB.revision
    languages: tuple[str, ...] | None = None
    assignment: AbsolutePath | None = None
    question_language: str | None = None
    parallel: bool = False

    @field_validator("languages")
    @classmethod
    def _known(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for code in value or ():
            if code not in _KNOWN:
                raise ValueError(f"XQuAD has no language '{code}'{did_you_mean(code, _KNOWN)}")
        if value is not None and len(set(value)) != len(value):
            raise ValueError("a language is named twice")
        if value == ():
            raise ValueError("at least one language is needed")
        return value


@dataclass(frozen=True)
class _Question:
    id: str
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class _Edition:
    """One language's XQuAD, in file order; ``paragraph_of[j]`` is the paragraph of question j.

    ``where`` names the file or the hub's rows, ``place`` is what the results record of that.
    """

    lang: str
    paragraphs: tuple[str, ...]
    questions: tuple[_Question, ...]
    paragraph_of: tuple[int, ...]
    where: str
    place: Mapping[str, Any]

    # tasks that ask in other languages share the editions
    @cached_property
    def part(self) -> Part:
        """Return the rows for their identity: paragraphs and questions, each with its position in the file.

        Languages are drawn by position, so the order of the file is part of what was published.
        """
        return Part(len(self.questions), self._as_published)

    def _as_published(self) -> Iterator[list[Any]]:
        yield from ([self.lang, *paragraph] for paragraph in enumerate(self.paragraphs))
        for position, (one, paragraph) in enumerate(zip(self.questions, self.paragraph_of, strict=True)):
            yield [self.lang, position, paragraph, one.id, one.text, one.answers]


@dataclass(frozen=True)
class _Assignment:
    languages: tuple[str, ...]
    paragraphs: tuple[str, ...]
    questions: tuple[str, ...]


def load(block: XquadBlock) -> Benchmark:
    """Load XQuAD with one language per paragraph and per question; the corpus is the whole paragraphs, without
    titles.
    """
    fixed = None if block.assignment is None else _read_assignment(block.assignment)
    codes = _languages(block, fixed)
    editions = {code: _edition(block, code) for code in codes}
    _check_parallel(editions)
    first = editions[codes[0]]
    drawn = fixed or _draw(codes, len(first.paragraphs), len(first.questions), block.seed)
    if (len(drawn.paragraphs), len(drawn.questions)) != (len(first.paragraphs), len(first.questions)):
        raise DataError(
            f"{block.assignment}: {len(drawn.paragraphs)} paragraph and {len(drawn.questions)} question languages, "
            f"but the files hold {len(first.paragraphs)} paragraphs and {len(first.questions)} questions"
        )
    if block.imbalance is not None:
        drawn = _imbalanced(drawn, block.imbalance, block.seed)
    width = max(3, len(str(len(first.paragraphs) - 1)))
    names = [f"xquad-p{index:0{width}d}" for index in range(len(first.paragraphs))]
    corpus = [
        Passage(id=name, lang=code, text=editions[code].paragraphs[index], doc_id=name)
        for index, (name, code) in enumerate(zip(names, drawn.paragraphs, strict=True))
    ]
    docs = [
        _doc(index, code, editions, drawn, names, first.paragraph_of[index], block.parallel)
        for index, asked in enumerate(drawn.questions)
        for code in (codes if block.parallel else (asked,))
        if block.question_language in (None, code)
    ]
    notes = [
        f"{len(docs)} questions on {len(corpus)} paragraphs, languages {' '.join(codes)}, "
        + ("every question in each, " if block.parallel and block.question_language is None else "")
        + (f"assignment from {block.assignment}" if fixed else f"drawn with seed {block.seed}")
    ]
    if block.imbalance is not None:
        notes.append(imbalance_note(drawn.paragraphs, block.imbalance))
    origin = _origin(block, editions, drawn)
    answers = {one.id: one.answers[0] for one in editions["en"].questions} if "en" in editions else {}
    english = {doc.id: answers[doc.extra["question_id"]] for doc in docs if answers}
    return Benchmark("xquad", docs, corpus, tuple(notes), origin, parallel=_parallel(editions), english=english)


def _parallel(editions: dict[str, _Edition]) -> list[dict[str, str]]:
    """Return every question and every paragraph in all languages: a perfect translation."""
    questions = zip(*(edition.questions for edition in editions.values()), strict=True)
    paragraphs = zip(*(edition.paragraphs for edition in editions.values()), strict=True)
    out = [{code: q.text for code, q in zip(editions, versions, strict=True)} for versions in questions]
    return out + [dict(zip(editions, versions, strict=True)) for versions in paragraphs]


def _imbalanced(drawn: _Assignment, imbalance: Imbalance, seed: int) -> _Assignment:
    if "en" not in drawn.languages or len(drawn.languages) < 2:
        raise ConfigError(
            f"data: imbalance needs English and another language, this set has {', '.join(drawn.languages)}",
            "name both in data.languages",
        )
    names = [str(index) for index in range(len(drawn.paragraphs))]
    kept = kept_versions(names, [drawn.languages] * len(names), imbalance, seed)
    return replace(drawn, paragraphs=tuple(kept))


def _doc(
    index: int,
    asked: str,
    editions: dict[str, _Edition],
    drawn: _Assignment,
    names: Sequence[str],
    paragraph: int,
    parallel: bool,
) -> RagDoc:
    kept = drawn.paragraphs[paragraph]
    question = editions[asked].questions[index]
    return RagDoc(
        id=f"{question.id}-{asked}" if parallel else question.id,
        query=question.text,
        query_lang=asked,
        answers=question.answers,
        gold_doc_lang=kept,
        relevant_ids=(names[paragraph],),
        group_id=names[paragraph],
        extra={"paragraph_answers": list(editions[kept].questions[index].answers), "question_id": question.id},
    )


def _languages(block: XquadBlock, fixed: _Assignment | None) -> tuple[str, ...]:
    if fixed is None:
        codes = tuple(sorted(block.languages or LANGUAGES))
    else:
        codes = tuple(sorted(fixed.languages))
        if block.languages is not None and set(block.languages) != set(codes):
            raise ConfigError(
                f"data: languages = {', '.join(block.languages)}, but {block.assignment} assigns {', '.join(codes)}",
                "leave out data.languages: the assignment file names them",
            )
    if block.question_language is not None and block.question_language not in codes:
        raise ConfigError(
            f"data: no question is asked in question_language '{block.question_language}'"
            + did_you_mean(block.question_language, codes),
            f"the languages of this set: {', '.join(codes)}",
        )
    return codes


def _draw(codes: Sequence[str], n_paragraphs: int, n_questions: int, seed: int) -> _Assignment:
    import numpy as np

    rng = np.random.default_rng(seed)
    paragraphs = rng.integers(0, len(codes), size=n_paragraphs)
    questions = rng.integers(0, len(codes), size=n_questions)
    return _Assignment(tuple(codes), tuple(codes[i] for i in paragraphs), tuple(codes[i] for i in questions))


def _read_assignment(path: Path) -> _Assignment:
    value, _ = read_json(path)
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object, found {type(value).__name__}")
    keys = ("languages", "paragraph_language", "question_language")
    require_columns(value, keys, str(path))
    for key in keys:
        if not isinstance(value[key], list) or not all(isinstance(code, str) for code in value[key]):
            raise DataError(f"{path}: '{key}' must be a list of language codes")
    for key in keys[1:]:
        for index, code in enumerate(value[key]):
            if code not in value["languages"]:
                raise DataError(f"{path}: {key}[{index}] is '{code}', which is not among 'languages'")
    for code in value["languages"]:
        if code not in _KNOWN:
            raise DataError(f"{path}: XQuAD has no language '{code}'{did_you_mean(code, _KNOWN)}")
    return _Assignment(*(tuple(value[key]) for key in keys))


def _edition(block: XquadBlock, code: str) -> _Edition:
    if block.path is None:
        return _from_hub(block, code)
    folder = require_path(block.path, "xquad")
    for name in (f"xquad.{code}.json.gz", f"xquad.{code}.json"):
        if (folder / name).is_file():
            status = (folder / name).stat()
            return _from_file(folder / name, code, status.st_mtime_ns, status.st_size)
    raise DataError(
        f"xquad: {folder} has no file xquad.{code}.json(.gz)",
        f"copy it there, or leave {language_name(code)} out: data.languages",
    )


# Tasks that ask in other languages read the same files in succession.
@lru_cache(maxsize=2 * len(_KNOWN))
def _from_file(path: Path, code: str, _mtime_ns: int, _size: int) -> _Edition:
    rows, digest = read_squad(path)
    return _edition_of(rows, code, str(path), {"path": str(path), "sha256": digest})


def _from_hub(block: XquadBlock, code: str) -> _Edition:
    columns = ("id", "context", "question", "answers")
    rows = hub_dataset("xquad", HUB.id, f"xquad.{code}", block.split, block.revision, columns)
    place = hub_place(HUB.id, block.revision, rows, split=block.split)
    return _edition_of(rows, code, f"{HUB.id}, config xquad.{code}", place)


def _edition_of(rows: Iterable[Mapping[str, Any]], code: str, where: str, place: Mapping[str, Any]) -> _Edition:
    paragraphs: list[str] = []
    questions: dict[str, _Question] = {}
    paragraph_of: list[int] = []
    for row in rows:
        # every row repeats its paragraph, in the files with white space around it; its questions are consecutive
        context = require_text(row["context"], f"{where}, row {len(questions)}", "context").strip()
        if not paragraphs or context != paragraphs[-1]:
            paragraphs.append(context)
        question = _question(row["id"], row["question"], row["answers"]["text"], where)
        if question.id in questions:
            raise DataError(f"{where}: question id '{question.id}' occurs twice")
        questions[question.id] = question
        paragraph_of.append(len(paragraphs) - 1)
    if not questions:
        raise DataError(f"{where}: holds no question")
    return _Edition(code, tuple(paragraphs), tuple(questions.values()), tuple(paragraph_of), where, place)


def _question(name: Any, text: Any, answers: Sequence[str], where: str) -> _Question:
    name = require_text(name, where, "id")
    kept = tuple(dict.fromkeys(answer.strip() for answer in answers))
    if not kept:
        raise DataError(f"{where}: question {name} has no answer")
    return _Question(name, require_text(text, f"{where}, question {name}", "question").strip(), kept)


def _check_parallel(editions: dict[str, _Edition]) -> None:
    """Check that every edition has the same ids on the same paragraphs, since the protocol swaps languages by
    position.
    """
    (first_code, first), *rest = editions.items()
    for code, edition in rest:
        if len(edition.paragraphs) != len(first.paragraphs) or edition.paragraph_of != first.paragraph_of:
            raise DataError(f"xquad: the {code} and {first_code} files differ in their paragraphs: not parallel copies")
        for ours, theirs in zip(edition.questions, first.questions, strict=True):
            if ours.id != theirs.id:
                raise DataError(
                    f"xquad: question '{ours.id}' of {code} is in the position of '{theirs.id}' of {first_code}"
                )


def _origin(block: XquadBlock, editions: Mapping[str, _Edition], drawn: _Assignment) -> Origin:
    seed = {"seed": None if block.assignment else block.seed}
    settings: dict[str, Any] = {**seed, "languages": list(editions)}
    corpus: dict[str, Any] = {"drawn": seed}
    beside: dict[str, Any] = {}
    if block.parallel:
        settings["parallel"] = True
    if block.assignment is not None:
        settings["assignment"] = content_key([drawn.languages, drawn.paragraphs, drawn.questions])
        beside["assignment"] = {"path": str(block.assignment)}
    if block.imbalance is not None:
        settings["imbalance"] = {"seed": block.seed} | block.imbalance.model_dump(exclude_none=True)
        corpus = {"drawn": settings["imbalance"]}
    if block.path is None:
        place = dict(editions[drawn.languages[0]].place)
    else:
        place = {"path": str(block.path), "sha256": {code: one.place["sha256"] for code, one in editions.items()}}
    return Origin(place, settings, {code: one.part for code, one in editions.items()}, corpus=corpus, beside=beside)


def _asked_languages(block: XquadBlock) -> tuple[str, ...]:
    if block.assignment is not None and block.assignment.is_file():
        return _read_assignment(block.assignment).languages
    return block.languages or LANGUAGES


def published(block: XquadBlock) -> Mapping[str, int]:
    """Return the number of questions in each language, from which those of a task are drawn."""
    return dict.fromkeys(_asked_languages(block), QUESTIONS)


def expected(block: XquadBlock) -> Expected:
    """Return what is known of the rows: every question in each language, or in one that is drawn for it."""
    editions = _asked_languages(block)
    asked = editions if block.question_language is None else (block.question_language,)
    return Expected(QUESTIONS * len(asked) // (1 if block.parallel else len(editions)), asked)


LOADER = LoaderSpec(BENCHMARK, XquadBlock, load, versions=True, expected=expected, published=published)
