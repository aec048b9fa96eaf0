"""Files of a user's own territories in BorderLines' layout, which the ``bordirlines`` tasks read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from mrag_eval.building.territories._territory_questions import OwnQuestion
from mrag_eval.building.territories._territory_tables import Claimant, Entity
from mrag_eval.core import language_name
from mrag_eval.datasets import OWN_LANGUAGES, UNKNOWN, query_id
from mrag_eval.platform import write_whole


def write_borderlines(
    folder: Path, entities: Sequence[Entity], claimants: Mapping[str, Claimant], questions: Sequence[OwnQuestion]
) -> None:
    """Write the tables and, for every language, its questions, options and territory positions.

    The English questions go into the table of territories, where every territory needs one. Files of languages without
    questions are removed.
    """
    english = {item.territory: item.question for item in questions if item.lang == "en"}
    write_whole(folder / "disputed_territories.csv", _territories(entities, english))
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


def _territories(entities: Sequence[Entity], english: Mapping[str, str]) -> str:
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
