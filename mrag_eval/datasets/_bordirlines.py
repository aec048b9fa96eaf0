"""BordIRlines: BorderLines' questions with the documents that two retrievers found for them (Li et al., ACL 2025).

The questions, options and controllers come from BorderLines (``data.borderlines``). The documents come from
BordIRlines' own files (``data.path``), which are read if ``data.embedder`` names one of its two retrievers. The join is
:func:`~mrag_eval.datasets._bordirlines_files.read_queries`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import model_validator

from mrag_eval.config import AbsolutePath, Languages, Names
from mrag_eval.core import RESOURCE_GROUPS, RagDoc, base_language, normalize_language
from mrag_eval.core import language_name as name
from mrag_eval.datasets._base import Benchmark, DataBlock, Expected, LoaderSpec, option_facts
from mrag_eval.datasets._borderlines import (
    BORDERLINES,
    CODES,
    UNKNOWN,
    BorderLines,
    Question,
    read_borderlines,
    territories_file,
)
from mrag_eval.datasets._bordirlines_files import (
    AnnotatedBy,
    Documents,
    Hits,
    Label,
    bare_page,
    data_folder,
    names_of_document,
    provenance,
    read_annotations,
    read_hits,
    read_queries,
)
from mrag_eval.datasets._content import Part
from mrag_eval.datasets._declaration import Declaration, HubDataset, LanguageGroups
from mrag_eval.datasets._files import hub_folder, hub_place, read_json, require_path
from mrag_eval.datasets._origin import Origin
from mrag_eval.datasets._published import Published
from mrag_eval.platform import DataError, content_key, did_you_mean

HUB = HubDataset(id="borderlines/bordirlines", licence="MIT")
BENCHMARK = Declaration(
    name="bordirlines",
    title="BordIRlines",
    asks="disputed territories in the languages of their claimants, multiple choice",
    sources=(HUB, BORDERLINES),
    shareable=True,
    languages=tuple(sorted(normalize_language(code) for code in CODES)),
    breakdowns=("resource_group", "country"),
    main_metric="concurrence.controller_share",
    metrics=tuple(
        f"concurrence.{name}"
        for name in (
            *("KB_CS", "Con_CS", "Non_CS", "delta_CS_ratio", "delta_CS_difference", "Cst_CS_unk", "Cst_CS_all"),
            *("countries_mean", "countries_std", "read", "refused", "unread"),
        )
    ),
    modes=("no_ir", "qlang", "qlang+en", "en_only", "rel_langs", "swap_docs"),
    groups=LanguageGroups(called="the classes of Joshi et al. (2020)", members=RESOURCE_GROUPS),
    papers=("li2025multilingual", "li2024borderlines"),
    published=("bordirlines",),
    needs=("download",),
    tasks="bordirlines",
)
EMBEDDERS = ("openai", "m3")
# Published number of questions (section 3.1).
QUESTIONS = 720
Personas = Literal["plain", "un", "nationalist", "demographic"]
_HUB_FILES = ("data/queries.tsv", "data/all_docs.json", "data/*_annotations.tsv", "data/*/*/*/*_query_hits.tsv")


class BordirlinesBlock(DataBlock):
    """Data block. ``path`` and ``borderlines`` are local copies of the two repositories; the default is the hub.

    BorderLines' files may also be in ``path`` itself or in its folder ``borderlines``.

    ``embedder`` selects the published hits to read (default: only the questions). ``documents`` keeps those of the
    first ``retrieval.k`` that were judged relevant, or those judged not relevant, by ``annotations``. ``flip`` replaces
    a document that supports one claimant by one that supports another, and keeps the questions for which that is
    possible.
    ``persona`` is the person who asks or answers; the asker of ``nationalist`` and ``demographic`` belongs to the
    claimant that speaks the question's language, the first in the file's order if several do. ``languages`` and
    ``territories`` select questions.
    ``resource_groups`` is a JSON file of groups of languages, ``{name: [codes]}``, to break scores down by (default:
    :data:`mrag_eval.core.RESOURCE_GROUPS`, the classes of Joshi et al., 2020: high is 4 and 5, mid is 3, low is 0 to
    2).
    """

    revision: str | None = HUB.revision
    borderlines: AbsolutePath | None = None
    embedder: Literal["openai", "m3"] | None = None
    documents: Literal["all", "relevant", "non_relevant"] = "all"
    flip: bool = False
    annotations: AnnotatedBy = "llm_fewshot"
    persona: Personas = "plain"
    languages: Languages | None = None
    territories: Names | None = None
    resource_groups: AbsolutePath | None = None

    @model_validator(mode="after")
    def _filters_need_documents(self) -> BordirlinesBlock:
        if (self.documents != "all" or self.flip) and self.embedder is None:
            key = "flip" if self.flip else f"documents = {self.documents}"
            raise ValueError(f"{key} requires published hits: set embedder to openai or m3")
        return self


def load(block: BordirlinesBlock) -> Benchmark:
    """Load the questions, and the published hits of one embedder if the block names one."""
    lines = read_borderlines(_lines_folder(block))
    questions = _kept(lines.questions, block)
    asked_in = {question.lang for question in lines.questions}
    groups, usual = _resource_groups(block.resource_groups), _resource_groups(None)
    docs = [_doc(question, lines, block.persona, asked_in, groups) for question in questions]
    notes = [f"{len(docs)} questions on {len({q.territory.name for q in questions})} territories", *lines.notes]
    if block.persona in ("nationalist", "demographic"):
        plain = sum("country" not in doc.extra for doc in docs)
        notes.append(f"{plain} control questions have no asker, since no claimant speaks English there")

    def as_published() -> list[RagDoc]:
        return [_doc(question, lines, "plain", asked_in, usual) for question in lines.questions]

    origin = Origin(
        {"borderlines": lines.place},
        {} if block.resource_groups is None else {"resource_groups": content_key(groups)},
        {"questions": Part(len(lines.questions), as_published)},
        own=lines.own,
    )
    if block.embedder is None:
        return Benchmark("bordirlines", docs, None, tuple(notes), origin)
    if block.path is None:
        root = data_folder(hub_folder("bordirlines", HUB.id, _HUB_FILES, block.revision))
        place = hub_place(HUB.id, block.revision, root)
    else:
        root = data_folder(block.path)
        place = {"path": str(root)}
    hashes: dict[str, str] = {}
    published, counts, more, documents = _published(block, root, lines, {doc.id for doc in docs}, hashes)
    origin = replace(
        origin,
        settings={**origin.settings, "queries_with_documents": counts, "searchable": published.pool},
        documents={block.embedder: documents},
        corpus={"passages": documents.rows},
        beside={**place, "corpus": {**place, "sha256": provenance(hashes)}},
    )
    notes += more
    return Benchmark("bordirlines", docs, None, tuple(notes), origin, published)


def _lines_folder(block: BordirlinesBlock) -> Path | None:
    """Return the folder of BorderLines' files: the given one, else ``data.path`` or its folder ``borderlines``; None:
    the hub.
    """
    if block.path is not None:
        require_path(block.path, "bordirlines")
    if block.borderlines is not None or block.path is None:
        return block.borderlines
    return next((p for p in (block.path, block.path / "borderlines") if territories_file(p) is not None), None)


def _kept(questions: Sequence[Question], block: BordirlinesBlock) -> list[Question]:
    names = {question.territory.name for question in questions}
    for wanted in block.territories or ():
        if wanted not in names:
            raise DataError(f"bordirlines: no territory '{wanted}'{did_you_mean(wanted, names)}")
    kept = [
        question
        for question in questions
        if (block.territories is None or question.territory.name in block.territories)
        and (block.languages is None or question.lang in block.languages)
    ]
    if not kept:
        raise DataError(f"bordirlines: no question in {', '.join(block.languages or ())} on the territories chosen")
    return kept


def _resource_groups(file: Path | None) -> dict[str, str]:
    """Return language without its script -> group; raise DataError for a language in two groups."""
    groups: Any = RESOURCE_GROUPS if file is None else read_json(file)[0]
    if not isinstance(groups, Mapping) or not all(isinstance(codes, list | tuple) for codes in groups.values()):
        raise DataError(f"{file}: expected an object of groups, each a list of language codes")
    out: dict[str, str] = {}
    for group, codes in groups.items():
        for code in codes:
            if out.setdefault(base_language(str(code)), group) != group:
                raise DataError(
                    f"{file}: language '{code}' is in two groups, '{out[base_language(str(code))]}' and '{group}'"
                )
    return out


def _doc(
    question: Question, lines: BorderLines, persona: Personas, asked_in: Collection[str], groups: Mapping[str, str]
) -> RagDoc:
    territory = question.territory
    spoken = [code for code in dict.fromkeys(territory.claimant_langs) if code in asked_in]
    extra: dict[str, Any] = {
        "territory": territory.name,
        "claimants": list(territory.claimants),
        "claimant_langs": list(territory.claimant_langs),
        "controller": territory.controller or UNKNOWN,
        "controller_lang": territory.controller_lang,
        "control_query": question.control,
        "region": territory.region,
        "resource_group": groups.get(base_language(question.lang), "other"),
        "candidates": subjects(territory.name, territory.claimants),
        "persona": persona,
        **option_facts(question.options),
    }
    if persona in ("nationalist", "demographic") and question.lang in territory.claimant_langs:
        country = territory.claimants[territory.claimant_langs.index(question.lang)]
        facts = lines.countries[country]
        extra |= {"country": country, "country_language": name(question.lang)}
        extra |= {"religion": str(facts.get("Religion") or ""), "population": str(facts.get("Population") or "")}
    controller = territory.controller
    return RagDoc(
        id=question.id,
        query=question.text,
        query_lang=question.lang,
        choices=question.options,
        gold_choice=territory.claimants.index(controller) if controller in territory.claimants else None,
        relevant_langs=tuple(dict.fromkeys([*spoken, "en"])),
        group_id=territory.name,
        extra=extra,
    )


def subjects(territory: str, claimants: Sequence[str]) -> list[str]:
    """Return the topics of a question's documents: the territory (each of its names, separated by ``/``) and every
    claimant.
    """
    return list(dict.fromkeys([*(part.strip() for part in territory.split("/")), *claimants]))


def _published(
    block: BordirlinesBlock, root: Path, lines: BorderLines, wanted: set[str], hashes: dict[str, str]
) -> tuple[Published, dict[str, int], list[str], Part]:
    joined, other_text = read_queries(root, lines.questions, hashes)
    documents = Documents(root, hashes)
    by_embedder = {name: read_hits(root, name, joined, documents, hashes) for name in EMBEDDERS}
    hits = by_embedder[str(block.embedder)]
    if not any(hits.values()):
        raise DataError(f"bordirlines: no hits of embedder '{block.embedder}' under {root}")
    notes = [f"{other_text} questions have different wording in queries.tsv"] if other_text else []
    questions = {question.id: question for question in lines.questions}
    labels = _labels(block, root, joined, questions, hits, hashes, notes)
    runs = {
        mode: {row: tuple((hit.passage, hit.score) for hit in found) for row, found in rows.items() if row in wanted}
        for mode, rows in hits.items()
    }
    counts = {mode: len(rows) for mode, rows in runs.items()}
    used = {passage for rows in runs.values() for run in rows.values() for passage, _ in run}
    passages = {key: documents.passages[key] for key in used}
    shown = {pair: label.as_labels() for pair, label in labels.items()}
    searchable, pool = _searchable(by_embedder, questions, documents)
    published = Published(runs, passages, searchable, shown, pool, block.documents, block.flip)
    return published, counts, notes, _as_found(hits, documents, labels)


def _as_found(hits: Hits, documents: Documents, labels: Mapping[tuple[str, str], Label]) -> Part:
    """Return the passages of an embedder's hits, with the hits and the labels, before any is left out or exchanged."""
    found = {hit.passage for rows in hits.values() for listed in rows.values() for hit in listed}

    def records() -> Iterator[Any]:
        yield from (documents.passages[passage] for passage in found)
        for mode, rows in hits.items():
            yield from ([mode, row, hit.rank, hit.score, hit.passage] for row, listed in rows.items() for hit in listed)
        yield from ([*pair, label.as_labels()] for pair, label in labels.items())

    return Part(len(found), records)


def _labels(
    block: BordirlinesBlock,
    root: Path,
    joined: Mapping[str, str],
    questions: Mapping[str, Question],
    hits: Hits,
    hashes: dict[str, str],
    notes: list[str],
) -> dict[tuple[str, str], Label]:
    """Return labels by (row id, our passage id), for every hit that has one."""
    found = read_annotations(root, block.annotations, joined, questions, hashes)
    if found is None:
        if block.documents != "all":
            raise DataError(
                f"bordirlines: data.documents={block.documents}, but no {block.annotations} labels in {root}"
            )
        return {}
    out: dict[tuple[str, str], Label] = {}
    for rows in hits.values():
        for row, listed in rows.items():
            for hit in listed:
                names = names_of_document(hit.passage.partition(":")[2])
                label = next((found.labels[row, name] for name in names if (row, name) in found.labels), None)
                if label is not None:
                    out[row, hit.passage] = label
    notes.append(f"{len(out)} pairs of query and document have {block.annotations} labels")
    if found.contradictory or found.undecided:
        notes.append(f"left out: {found.contradictory} contradictory labels, {found.undecided} pairs without majority")
    if found.unclear:
        notes.append(f"{found.unclear} relevant pairs have no majority for a viewpoint, and so none")
    return out


def _searchable(
    by_embedder: Mapping[str, Hits], questions: Mapping[str, Question], documents: Documents
) -> tuple[dict[str, dict[str, int]], str]:
    """Return, by row, the number of documents per language that were searched for its territory, and which these are.

    They are all paragraphs of every page that a retriever found for the territory in any mode, if the files hold
    paragraphs that no retriever found; else the number of those found is all that is known.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for hits in by_embedder.values():
        for rows in hits.values():
            for row, listed in rows.items():
                found[questions[row].territory.name].update(hit.passage for hit in listed)

    def pages(passages: set[str]) -> set[str]:
        return {bare_page(documents.passages[passage].doc_id) for passage in passages}

    every = {passage for passages in found.values() for passage in passages}
    sizes = documents.paragraphs()
    whole = sum(sizes[page] for page in pages(every)) > len(every)
    counts: dict[str, Counter[str]] = {}
    for territory, passages in found.items():
        if whole:
            counts[territory] = Counter()
            for page in pages(passages):
                counts[territory][page.partition(":")[0]] += sizes[page]
        else:
            counts[territory] = Counter(documents.passages[passage].lang for passage in passages)
    pool = "all paragraphs of the pages found" if whole else "the paragraphs found by either retriever in any mode"
    by_row = {row: dict(counts[q.territory.name]) for row, q in questions.items() if q.territory.name in counts}
    return by_row, pool


def published(block: BordirlinesBlock) -> Mapping[str, int]:
    """Return the number of all questions, from which the block chooses."""
    return {"questions": QUESTIONS}


def expected(block: BordirlinesBlock) -> Expected:
    """Return what the dataset card tells of the rows; the number of a part of them is not known beforehand."""
    whole = block.languages is None and block.territories is None and not block.flip and block.documents == "all"
    unread = [] if block.embedder is not None else [HUB.setting]
    if block.path is not None and block.path.exists() and _lines_folder(block) is not None:
        unread.append(BORDERLINES.setting)
    return Expected(QUESTIONS if whole else None, block.languages or (), unread=tuple(unread))


LOADER = LoaderSpec(BENCHMARK, BordirlinesBlock, load, expected=expected, published=published)
