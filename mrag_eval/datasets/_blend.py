"""BLEnD, multiple choice: everyday culture of 16 countries, asked in English (Myung et al., 2024).

The published file holds every combination of options, so CORAL (appendix B.1) keeps one version, drawn at random, of
each question in each country: 5,081 in all. Here the draw is seeded by (seed, country, question id), so it does not
depend on which other rows are loaded.

The questions are English, so ``query_lang`` is always ``en``: monoRAG, which searches the corpus of the query's
language (CORAL, section 4.2), searches English. The language of the country's community is ``culture_lang``; CORAL's
ablation (section 5.3) searches that one (modes ``own`` and ``own+en``).
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mrag_eval.core import CORAL_TIERS, RagDoc
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec, one_of, option_facts
from mrag_eval.datasets._blend_mcq import generate
from mrag_eval.datasets._content import parts_by
from mrag_eval.datasets._declaration import Declaration, HubDataset, LanguageGroups
from mrag_eval.datasets._files import (
    hub_dataset,
    hub_place,
    iter_csv,
    iter_jsonl,
    read_json,
    require_columns,
    require_path,
    require_text,
    sha256_file,
)
from mrag_eval.datasets._origin import Origin
from mrag_eval.platform import DataError, JsonFault, json_value

if TYPE_CHECKING:
    from numpy.random import Generator

HUB = HubDataset(
    id="nayeon212/BLEnD", licence="CC-BY-SA-4.0", note="on its hub card; the original repository states none"
)
HUB_CONFIG = "multiple-choice-questions"
TIERS = LanguageGroups(called="CORAL's tiers", members=CORAL_TIERS)
BENCHMARK = Declaration(
    name="blend",
    title="BLEnD",
    asks="everyday culture of 16 countries, in English, multiple choice",
    sources=(HUB,),
    shareable=True,
    languages=("en",),
    breakdowns=("country",),
    main_metric="acc",
    groups=TIERS,
    papers=("myung-etal-2024-blend",),
    published=("coral",),
    needs=("download", "index"),
    tasks="blend",
)
# country -> (language of its community, questions in CORAL's Table 4, split on the hub, valid questions of the 500)
FACTS: dict[str, tuple[str, int, str, int]] = {
    "US": ("en", 310, "US", 461),
    "UK": ("en", 304, "GB", 456),
    "Spain": ("es", 325, "ES", 469),
    "Mexico": ("es", 334, "MX", 479),
    "South_Korea": ("ko", 366, "KR", 475),
    "North_Korea": ("ko", 290, "KP", 444),
    "Indonesia": ("id", 334, "ID", 480),
    "China": ("zh", 335, "CN", 474),
    "Algeria": ("ar", 304, "DZ", 437),
    "Greece": ("el", 320, "GR", 460),
    "Iran": ("fa", 306, "IR", 456),
    "Azerbaijan": ("az", 325, "AZ", 469),
    "West_Java": ("su", 286, "JB", 458),
    "Assam": ("as", 358, "AS", 477),
    "Northern_Nigeria": ("ha", 249, "NG", 455),
    "Ethiopia": ("am", 335, "ET", 472),
}
# country -> (source language, questions in CORAL's Table 4)
COUNTRIES: dict[str, tuple[str, int]] = {name: facts[:2] for name, facts in FACTS.items()}
LANGUAGES = tuple(sorted({code for code, _ in COUNTRIES.values()}))
_COLUMNS = ("MCQID", "ID", "country", "prompt", "choices", "choice_countries", "answer_idx")


class BlendBlock(DataBlock):
    """Data block: ``country`` or ``language`` keep one country or source language; ``source`` selects file or
    annotations.
    """

    split: str = "test"
    revision: str | None = HUB.revision
    source: Literal["mcq", "annotations"] = "mcq"
    country: str | None = None
    language: str | None = None
    validity: Literal["any_country", "own_country"] = "any_country"


@dataclass(frozen=True)
class _Rows:
    """The multiple-choice file: keys are cheap to read, rows are read by position."""

    keys: Callable[[], Iterable[tuple[str, str, str]]]
    fetch: Callable[[Sequence[int]], Iterator[tuple[str, Mapping[str, Any]]]]
    place: dict[str, Any]


def load(block: BlendBlock) -> Benchmark:
    """Load one seeded version of every (country, question), for one country, one language or all."""
    one_of("country", block.country, COUNTRIES)
    one_of("language", block.language, LANGUAGES)
    docs, notes, place = _annotated(block) if block.source == "annotations" else _published(block)
    kept = [
        doc
        for doc in docs
        if block.country in (None, doc.extra["country"]) and block.language in (None, doc.culture_lang)
    ]
    if not kept:
        wanted = ", ".join(
            f"{key} '{value}'" for key, value in (("country", block.country), ("language", block.language)) if value
        )
        raise DataError(f"blend: no question of {wanted or 'any country'} in {place.get('path', HUB.id)}")
    notes.insert(0, f"{len(kept)} questions, one version each, seed {block.seed}")
    parts = parts_by(kept, lambda doc: doc.extra["country"])
    made = {"validity": block.validity} if block.source == "annotations" else {}
    return Benchmark("blend", kept, None, tuple(notes), Origin(place, {**made, "seed": block.seed}, parts))


def _rng(seed: int, country: str, question_id: str) -> Generator:
    from numpy.random import default_rng

    key = hashlib.sha256(f"{country}/{question_id}".encode()).digest()
    return default_rng([seed, int.from_bytes(key[:8], "big")])


# --- the published multiple-choice file


def _published(block: BlendBlock) -> tuple[list[RagDoc], list[str], dict[str, Any]]:
    rows = _from_hub(block) if block.path is None else _from_path(block.path)
    versions: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    total = repeated = 0
    for index, (country, question_id, mcq_id) in enumerate(rows.keys()):
        total += 1
        if mcq_id in versions[country, question_id]:
            repeated += 1
        else:
            versions[country, question_id][mcq_id] = index
    picked = []
    for (country, question_id), found in versions.items():
        names = sorted(found, key=lambda name: (len(name), name))
        picked.append(found[names[int(_rng(block.seed, country, question_id).integers(len(names)))]])
    docs = [_doc(row, where) for where, row in rows.fetch(sorted(picked))]
    notes = [f"{total} rows, {len(docs)} distinct (country, question)"] if total != len(docs) else []
    if repeated:
        notes.append(f"{repeated} rows repeat an MCQID of their country and were left out")
    return docs, notes, rows.place


def _doc(row: Mapping[str, Any], where: str) -> RagDoc:
    country = row["country"]
    if country not in COUNTRIES:
        raise DataError(f"{where}: unknown country '{country}'")
    by_letter = _letters(row["choices"], where, "choices")
    origin = _letters(row["choice_countries"], where, "choice_countries")
    letters = sorted(by_letter)
    if row["answer_idx"] not in by_letter:
        raise DataError(f"{where}: answer_idx '{row['answer_idx']}' is not among the options {', '.join(letters)}")
    return _rag_doc(
        id_=f"{country}/{row['MCQID']}",
        country=country,
        question_id=row["ID"],
        question=bare_question(require_text(row["prompt"], where, "prompt")),
        choices=tuple(by_letter[letter].strip() for letter in letters),
        origin=[origin.get(letter, "") for letter in letters],
        gold=letters.index(row["answer_idx"]),
    )


def _rag_doc(
    *, id_: str, country: str, question_id: str, question: str, choices: tuple[str, ...], origin: list[str], gold: int
) -> RagDoc:
    language = COUNTRIES[country][0]
    return RagDoc(
        id=id_,
        query=question,
        query_lang="en",
        answers=(choices[gold],),
        choices=choices,
        gold_choice=gold,
        culture_lang=language,
        relevant_langs=(language,),
        group_id=question_id,
        extra={"country": country, "tier": TIERS.of(language), "choice_countries": origin, **option_facts(choices)},
    )


def _letters(value: Any, where: str, key: str) -> dict[str, str]:
    """Return the options, stored as JSON text of letter -> text, as a dict."""
    try:
        parsed = json_value(value) if isinstance(value, str) else value
    except JsonFault as error:
        raise DataError(f"{where}: '{key}' is not JSON ({error.reason})") from None
    if not isinstance(parsed, dict) or len(parsed) < 2 or not all(isinstance(v, str) for v in parsed.values()):
        raise DataError(f"{where}: '{key}' must map at least two letters to texts")
    return parsed


_FIRST_OPTION = re.compile(r"\n\s*A\s*[.):]\s")
# The question itself: up to its question mark and the following remarks in brackets (which may nest once).
_QUESTION = re.compile(r".*\?(?:\s*\((?:[^()]|\([^()]*\))*\)\.?)*", re.DOTALL)


def bare_question(prompt: str) -> str:
    """Return the question of a ready-made prompt, without instruction, option lines and closing cue.

    Everything from the line of option A on is removed. In the published file the question is followed by an instruction
    that asks for JSON, so the question ends at its last question mark, or at a directly following remark in brackets
    about the format of the answer.
    """
    option = _FIRST_OPTION.search(prompt)
    head = (prompt[: option.start()] if option else prompt).strip()
    if "answer_choice" not in head and "JSON" not in head:
        return head
    question = _QUESTION.match(head)
    return question[0].strip() if question else head.partition("\n")[0].strip()


def _from_hub(block: BlendBlock) -> _Rows:
    dataset = hub_dataset("blend", HUB.id, HUB_CONFIG, block.split, block.revision, _COLUMNS)
    keys = dataset.select_columns(["country", "ID", "MCQID"])

    def fetch(indices: Sequence[int]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for index, row in zip(indices, dataset.select(indices), strict=True):
            yield f"{HUB.id}, row {index}", row

    place = hub_place(HUB.id, block.revision, dataset, config=HUB_CONFIG, split=block.split)
    return _Rows(lambda: ((row["country"], row["ID"], row["MCQID"]) for row in keys), fetch, place)


def _from_path(path: Path) -> _Rows:
    files = _mcq_files(require_path(path, "blend"))

    def rows() -> Iterator[tuple[str, Mapping[str, Any]]]:
        for file in files:
            yield from _read(file)

    def keys() -> Iterator[tuple[str, str, str]]:
        for where, row in rows():
            require_columns(row, _COLUMNS, where)
            yield row["country"], row["ID"], row["MCQID"]

    def fetch(indices: Sequence[int]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        wanted = set(indices)
        return (item for index, item in enumerate(rows()) if index in wanted)

    return _Rows(keys, fetch, {"path": str(path), "sha256": {file.name: sha256_file(file) for file in files}})


def _mcq_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    for pattern in ("mc_questions_file*.csv*", "mc_questions_file*.json*", "mcq*.csv*"):
        found = sorted(path.glob(f"**/{pattern}"))
        if found:
            # the parts of the CSV form one file; of two versions of the JSON the newer one is used
            return found if ".csv" in pattern else found[-1:]
    raise DataError(
        f"blend: no multiple-choice file (mc_questions_file*.csv or .json) under {path}",
        "make the questions from the raw annotations: --metadata data.source=annotations",
    )


def _read(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    name = file.name.removesuffix(".gz")
    if name.endswith(".csv"):
        yield from ((f"{file}, row {number}", row) for number, row in iter_csv(file, _COLUMNS))
    elif name.endswith(".jsonl"):
        yield from ((f"{file}, line {number}", row) for number, row in iter_jsonl(file))
    else:
        value, _ = read_json(file)
        if not isinstance(value, list):
            raise DataError(f"{file}: expected a list of questions, found {type(value).__name__}")
        yield from ((f"{file}, question {index}", row) for index, row in enumerate(value))


# --- raw annotations


def _annotated(block: BlendBlock) -> tuple[list[RagDoc], list[str], dict[str, Any]]:
    if block.path is None:
        raise DataError(
            "blend: source 'annotations' needs the raw annotation files (<Country>_data.json)",
            "give their folder: --metadata data.path=PATH (folder data/annotations of the original repository)",
        )
    folder = require_path(block.path, "blend")
    annotations: dict[str, Any] = {}
    hashes: dict[str, str] = {}
    for country in COUNTRIES:
        found = sorted(folder.glob(f"**/{country}_data.json*"))
        if not found:
            raise DataError(
                f"blend: {folder} has no file {country}_data.json(.gz)",
                "wrong options come from the other countries, so all 16 are needed",
            )
        annotations[country], hashes[found[0].name] = read_json(found[0])
        for question_id, record in annotations[country].items():
            where = f"{found[0]}, question {question_id}"
            require_columns(record, ("question", "en_question", "annotations", "idks"), where)
    made = generate(annotations, lambda *key: _rng(block.seed, *key), validity=block.validity)
    docs = [
        _rag_doc(
            id_=f"{item.country}/{item.question_id}",
            country=item.country,
            question_id=item.question_id,
            # if the local language is English, the local question reads better than its translation
            question=(
                annotations[item.country][item.question_id]["question"].strip()
                if COUNTRIES[item.country][0] == "en"
                else item.question
            ),
            choices=item.choices,
            origin=list(item.countries),
            gold=item.gold,
        )
        for item in made
    ]
    asked = len(set().union(*annotations.values()))
    fewer = sum(len(doc.choices or ()) < 4 for doc in docs)
    notes = [
        f"made from annotations: {len({doc.group_id for doc in docs})} of {asked} questions pass ({block.validity}), "
        f"{fewer} with fewer than four options; not the published multiple-choice set"
    ]
    return docs, notes, {"path": str(block.path), "sha256": hashes}


def _asked(block: BlendBlock) -> list[str]:
    """Return the countries that a block reads."""
    return [
        country
        for country, (code, _) in COUNTRIES.items()
        if block.country in (None, country) and block.language in (None, code)
    ]


def published(block: BlendBlock) -> Mapping[str, int] | None:
    """Return the sizes of CORAL's Table 4; None for questions made from the annotations, which nobody published."""
    return {country: COUNTRIES[country][1] for country in _asked(block)} if block.source == "mcq" else None


def expected(block: BlendBlock) -> Expected:
    """Return what CORAL's Table 4 tells of the rows; how many the annotations give is not known beforehand."""
    sizes = published(block)
    codes = tuple(dict.fromkeys(COUNTRIES[country][0] for country in _asked(block)))
    return Expected(None if sizes is None else sum(sizes.values()), ("en",), codes)


LOADER = LoaderSpec(BENCHMARK, BlendBlock, load, expected=expected, published=published)
