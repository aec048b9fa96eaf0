"""BLEnD, short answers: the questions of 16 countries in their own languages, with the annotators' answers and votes.

A question counts in a country only if enough of its annotators could answer it there (Myung et al., 2024); the others
are left out and counted. Answers are local and English spellings with votes, in ``extra["votes"]``, most votes first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec, one_of
from mrag_eval.datasets._blend import COUNTRIES, FACTS, HUB, LANGUAGES, TIERS
from mrag_eval.datasets._content import parts_by
from mrag_eval.datasets._declaration import Declaration
from mrag_eval.datasets._files import hub_dataset, hub_place, read_json, require_columns, require_path, require_text
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError

HUB_CONFIG = "annotations"
BENCHMARK = Declaration(
    name="blend_saq",
    title="BLEnD",
    asks="everyday culture of 16 countries, in their 13 languages, short answers",
    sources=(HUB,),
    shareable=True,
    languages=LANGUAGES,
    breakdowns=("country",),
    main_metric="sem_b",
    groups=TIERS,
    papers=("myung-etal-2024-blend",),
    needs=("download", "index"),
    tasks="blend_saq",
)
# country -> (split on the hub, valid questions among the published 500)
SOURCES: dict[str, tuple[str, int]] = {name: facts[2:] for name, facts in FACTS.items()}
_COLUMNS = ("question", "en_question", "annotations", "idks")
# This many annotators without an answer, or without knowledge, make a question invalid.
_MAX_UNANSWERED = 3
_MAX_UNKNOWN = 5


class BlendSaqBlock(DataBlock):
    """Data block: ``country`` or ``language`` select rows; ``question_language`` is the questions' language."""

    split: str = "test"
    revision: str | None = HUB.revision
    country: str | None = None
    language: str | None = None
    question_language: Literal["local", "en"] = "local"


def load(block: BlendSaqBlock) -> Benchmark:
    """Load the valid questions of one country, one language or all."""
    one_of("country", block.country, COUNTRIES)
    one_of("language", block.language, LANGUAGES)
    asked = published(block)
    if not asked:
        raise DataError(f"blend_saq: no question of country '{block.country}' in language '{block.language}'")
    docs: list[RagDoc] = []
    left_out: Counter[str] = Counter()
    place: dict[str, Any] = {} if block.path is None else {"path": str(block.path), "sha256": {}}
    found = 0
    for country in asked:
        for where, question_id, record in _records(block, country, place):
            found += 1
            require_columns(record, _COLUMNS, where)
            reason = why_invalid(record)
            if reason is None:
                docs.append(_doc(country, question_id, record, block.question_language, where))
            else:
                left_out[reason] += 1
    reasons = "; ".join(f"{count} {reason}" for reason, count in left_out.items())
    notes = [f"{len(docs)} of {found} questions are valid" + (f", left out: {reasons}" if reasons else "")]
    english = [doc.id for doc in docs if block.question_language == "local" and doc.query_lang != doc.culture_lang]
    if english:
        notes.append(f"asked in English, as the files have no text in their own language: {', '.join(english)}")
    origin = Origin(place, parts=parts_by(docs, lambda doc: doc.extra["country"]))
    return Benchmark("blend_saq", docs, None, tuple(notes), origin)


def why_invalid(record: Mapping[str, Any]) -> str | None:
    """Return the reason why a country's question is invalid, or None; other keys of ``idks`` are ignored."""
    idks = record["idks"] or {}
    if (idks.get("no-answer") or 0) + (idks.get("not-applicable") or 0) >= _MAX_UNANSWERED:
        return "have no answer there or do not apply"
    if (idks.get("idk") or 0) >= _MAX_UNKNOWN:
        return "unknown to the annotators"
    return None if record["annotations"] else "without an annotation"


def _records(block: BlendSaqBlock, country: str, place: dict[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (where, question id, record) of a country; complete ``place``."""
    if block.path is None:
        split = SOURCES[country][0]
        rows = hub_dataset("blend_saq", HUB.id, HUB_CONFIG, split, block.revision, ("ID", *_COLUMNS))
        place |= hub_place(HUB.id, block.revision, rows, config=HUB_CONFIG)
        for row in rows:
            yield f"{HUB.id}, split {split}, question {row['ID']}", row["ID"], row
        return
    file = _file(require_path(block.path, "blend_saq"), country)
    annotations, place["sha256"][file.name] = read_json(file)
    if not isinstance(annotations, dict):
        raise DataError(f"{file}: expected questions by id, found {type(annotations).__name__}")
    for question_id, record in annotations.items():
        yield f"{file}, question {question_id}", question_id, record


def _file(path: Path, country: str) -> Path:
    found = [path] if path.is_file() else sorted(path.glob(f"**/{country}_data.json*"))
    if not found or not found[0].name.startswith(f"{country}_data.json"):
        raise DataError(
            f"blend_saq: no file {country}_data.json(.gz) in {path}",
            "give the folder of the raw annotations (data/annotations of the original repository)",
        )
    return found[0]


def _doc(country: str, question_id: str, record: Mapping[str, Any], asked_in: str, where: str) -> RagDoc:
    language = COUNTRIES[country][0]
    # one question of the published files has no Chinese text
    local = language == "en" or (asked_in == "local" and bool(str(record["question"] or "").strip()))
    key = "question" if local else "en_question"
    votes = sorted((_answer(entry, where) for entry in record["annotations"]), key=lambda entry: -entry["count"])
    forms = [form for part in ("answers", "en_answers") for entry in votes for form in entry[part]]
    return RagDoc(
        id=f"{country}/{question_id}",
        query=require_text(record[key], where, key).strip(),
        query_lang=language if local else "en",
        answers=tuple(dict.fromkeys(forms)),
        culture_lang=language,
        relevant_langs=(language,),
        group_id=question_id,
        extra={"country": country, "tier": TIERS.of(language), "votes": votes},
    )


def _answer(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    require_columns(entry, ("answers", "en_answers", "count"), where)
    count = entry["count"]
    if not isinstance(count, int) or count < 1:
        raise DataError(f"{where}: 'count' must be a number of votes, found {count!r}")
    # numeric answers are numbers in some files
    parts = {
        part: [str(form).strip() for form in entry[part] or () if str(form).strip()]
        for part in ("answers", "en_answers")
    }
    return {**parts, "count": count}


def published(block: BlendSaqBlock) -> Mapping[str, int]:
    """Return the numbers of valid questions among the published ones, by country."""
    return {
        country: SOURCES[country][1]
        for country, (code, _) in COUNTRIES.items()
        if block.country in (None, country) and block.language in (None, code)
    }


def expected(block: BlendSaqBlock) -> Expected:
    """Return what the published counts of valid questions tell of the rows."""
    kept = published(block)
    codes = tuple(dict.fromkeys(COUNTRIES[country][0] for country in kept))
    asked = codes if block.question_language == "local" else ("en",)
    return Expected(sum(kept.values()), asked, codes)


LOADER = LoaderSpec(BENCHMARK, BlendSaqBlock, load, expected=expected, published=published)
