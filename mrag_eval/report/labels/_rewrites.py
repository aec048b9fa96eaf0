"""The planner's rewritings of queries by type: narrow, paraphrase or expand (CORAL, section 5.4).

A model labels every rewriting in the traces of a run, or people do. The model's reliability is its agreement with
people, who label pairs of queries without seeing its labels.
"""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import TracedQuestion, columns, score_text
from mrag_eval.datasets import read_table
from mrag_eval.models import AuxModel, Parsed, came_back_line, generate_parsed, get, parse_json, summed
from mrag_eval.platform import (
    ConfigError,
    Count,
    DataError,
    Natural,
    csv_cell,
    did_you_mean,
    number_of,
    replaced,
    unescaped,
)
from mrag_eval.prompts import Conversation, load_template
from mrag_eval.report.labels._documents import Annotator
from mrag_eval.retrieval import read_traces

TYPES = ("narrow", "paraphrase", "expand")
_COLUMNS = ("previous", "rewritten", "label")

# (query before, query after)
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A query that replaced another in round ``round`` (2 or later) of a question."""

    task: str
    row: str
    round: int
    query_lang: str
    previous: str
    rewritten: str

    @property
    def pair(self) -> Pair:
        return self.previous, self.rewritten


@dataclass(frozen=True)
class RewriteLabels:
    """Labels. ``types``: pair -> its type; ``failed``: pair -> why it has none; ``seats``: what came back."""

    types: Mapping[Pair, str] = field(default_factory=dict)
    failed: Mapping[Pair, str] = field(default_factory=dict)
    seats: Mapping[str, Any] = field(default_factory=dict)


def rewrites_of(records: Sequence[TracedQuestion]) -> list[Rewrite]:
    """Return every rewriting in the traces, in their order; a round that kept its query has none.

    The query of round 1 may contain the options as well, so a first rewriting is compared with the question alone.
    """
    out = []
    for record in records:
        rounds = record.trace.rounds
        before = record.query
        searched = rounds[0].query if rounds else ""
        for each in rounds[1:]:
            if _folded(each.query) not in (_folded(searched), _folded(before)):
                out.append(Rewrite(record.task, record.id, each.round, record.query_lang, before, each.query))
                before = searched = each.query
    return out


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def drawn(records: Sequence[TracedQuestion], questions: int | None, seed: int) -> list[TracedQuestion]:
    """Return ``questions`` of the records, drawn at random, in their order; all for None, or if there are no more."""
    if questions is None or questions >= len(records):
        return list(records)
    picked = np.random.default_rng(seed).choice(len(records), size=questions, replace=False)
    return [records[int(index)] for index in sorted(picked)]


def label_rewrites(pairs: Sequence[Pair], model: AuxModel | Annotator) -> RewriteLabels:
    """Label each pair's type by the model; equal pairs are asked once.

    After a reply that cannot be read, the model is asked once more. If that fails, the pair has no label, and its
    reason is counted.
    """
    template = load_template("rewrite", role="annotate")
    asked = list(dict.fromkeys(pairs))
    conversations: list[Conversation] = []
    for previous, rewritten in asked:
        system, user = template.render({"query": previous, "query_lang": "en"}, [], {"rewritten": rewritten})
        conversations.append([{"role": "system", "content": system}, {"role": "user", "content": user}])
    # anything that replies like a seat is accepted
    seat: Any = model.seat("label rewrites") if isinstance(model, AuxModel) else model
    answered = generate_parsed(seat, conversations, read_type)
    types = {pair: answer.value for pair, answer in zip(asked, answered, strict=True) if answer.value is not None}
    failed = {
        pair: answer.reason or "no label" for pair, answer in zip(asked, answered, strict=True) if answer.value is None
    }
    return RewriteLabels(types, failed, summed([{seat.role: seat.take()}]) if isinstance(model, AuxModel) else {})


def read_type(reply: str) -> Parsed[str]:
    """Return the type that a reply names in its JSON object."""
    parsed = parse_json(reply, ("type",))
    if parsed.value is None:
        return Parsed(None, parsed.error)
    said = str(parsed.value["type"]).strip().casefold()
    return Parsed(said) if said in TYPES else Parsed(None, f"'type' must be one of {', '.join(TYPES)}")


def read_people(path: Path) -> dict[Pair, str]:
    """Return people's labels from a CSV or TSV file with the columns previous, rewritten and label.

    Rows without a label are skipped. Raises DataError for an unknown type, and for a pair with two types.
    """
    out: dict[Pair, str] = {}
    for number, row in read_table(path, _COLUMNS):
        label = row["label"].strip().casefold()
        if not label:
            continue
        if label not in TYPES:
            raise DataError(f"{path}, row {number}: unknown label '{row['label']}'{did_you_mean(label, TYPES)}")
        pair = (unescaped(row["previous"]), unescaped(row["rewritten"]))
        if out.setdefault(pair, label) != label:
            raise DataError(f"{path}, row {number}: the pair has another label above", "keep one of them")
    if not out:
        raise DataError(f"{path}: no row has a label", f"write one of {', '.join(TYPES)} into the column 'label'")
    return out


def write_pairs(rewrites: Sequence[Rewrite], path: Path, seed: int) -> int:
    """Write a CSV file of the rewritings to label by hand (each pair once, shuffled) and return their number."""
    if path.exists():
        raise ConfigError(f"--write {path}: the file is there already, perhaps with labels", "name another one")
    pairs = list(dict.fromkeys(rewrite.pair for rewrite in rewrites))
    order = np.random.default_rng(seed).permutation(len(pairs))
    with replaced(path) as part, part.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(_COLUMNS)
        writer.writerows((*map(csv_cell, pairs[int(index)]), "") for index in order)
    return len(pairs)


def shares(rewrites: Sequence[Rewrite], labels: RewriteLabels) -> dict[str, Any]:
    """Return the share of each type among labelled rewritings, with Wilson intervals: overall, by task, by round."""
    cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for rewrite in rewrites:
        label = labels.types.get(rewrite.pair)
        if label is not None:
            for cell in ("all", rewrite.task):
                cells["task"][cell].append(label)
            cells["round"][str(rewrite.round)].append(label)
    return {
        "overall": _shares(cells["task"].pop("all", [])),
        "by_task": {task: _shares(found) for task, found in sorted(cells["task"].items())},
        "by_round": {number: _shares(found) for number, found in sorted(cells["round"].items())},
    }


def _shares(found: Sequence[str]) -> dict[str, Any]:
    from mrag_eval.metrics import undefined, wilson

    counts = Counter(found)
    return {
        name: (wilson(counts[name], len(found)) if found else undefined("no label", "Wilson")).as_dict()
        for name in TYPES
    }


def final_labels(rewrites: Sequence[Rewrite], people: Sequence[Mapping[Pair, str]]) -> RewriteLabels:
    """Return the labels on which all people agree (section 5.4); those of one person are final.

    Queries are compared without regard to white space, which a spreadsheet may change.
    """
    given = [{_spaced(pair): label for pair, label in one.items()} for one in people]
    types, failed = {}, {}
    for pair in dict.fromkeys(rewrite.pair for rewrite in rewrites):
        found = [one[_spaced(pair)] for one in given if _spaced(pair) in one]
        if len(found) < len(given):
            failed[pair] = f"labelled by {len(found)} of {len(given)}" if found else "not labelled"
        elif len(set(found)) > 1:
            failed[pair] = "people disagree"
        else:
            types[pair] = found[0]
    return RewriteLabels(types, failed)


def _spaced(pair: Pair) -> Pair:
    return " ".join(pair[0].split()), " ".join(pair[1].split())


def agreement(first: Mapping[Pair, str], second: Mapping[Pair, str]) -> dict[str, Any]:
    """Return Cohen's kappa of two labellers over the pairs that both labelled, equal labels, and the confusions."""
    from mrag_eval.metrics import cohen_kappa

    both = [(label, second[pair]) for pair, label in first.items() if pair in second]
    return {
        "pairs": len(both),
        "equal": sum(a == b for a, b in both),
        "kappa": cohen_kappa([a for a, _ in both], [b for _, b in both]).as_dict(),
        "confusion": {a: {b: both.count((a, b)) for b in TYPES} for a in TYPES},
    }


def between_people(people: Mapping[str, Mapping[Pair, str]]) -> list[dict[str, Any]]:
    """Return the agreement of each two people; ``people`` are their labels by name."""
    return [
        {"first": a, "second": b, **agreement(people[a], people[b]), "labelled": [len(people[a]), len(people[b])]}
        for a, b in combinations(people, 2)
    ]


def with_model(people: Mapping[str, Mapping[Pair, str]], labels: RewriteLabels) -> list[dict[str, Any]]:
    """Return the agreement of each person with the model, and why pairs of theirs have no label of the model's."""
    return [
        {
            "first": name,
            "second": "model",
            **agreement(given, labels.types),
            "labelled": [len(given)],
            "failed": dict(Counter(labels.failed[pair] for pair in given if pair in labels.failed)),
        }
        for name, given in people.items()
    ]


def rewrites_report(
    places: Sequence[Path],
    model: str | AuxModel | Annotator | None = None,
    *,
    task: str | None = None,
    questions: Count | None = None,
    seed: Natural = 0,
    people: Sequence[Path] = (),
    write: Path | None = None,
) -> dict[str, Any]:
    """Return the rewritings in the traces under ``places`` and, with a model, their types.

    Args:
        task: Read only this task.
        questions: Number of questions to draw at random. The default is all.
        seed: Random seed of the draw and of the order in the file.
        people: files of labels, one per person, to compare with each other and with the model, and for the shares of
            their final labels.
        write: a file of the pairs to label by hand.

    Raises ConfigError and DataError for invalid requests.
    """
    labelled = {str(path): read_people(path) for path in people}
    records, older = read_traces(places, task)
    asked = drawn(records, questions, seed)
    found = rewrites_of(asked)
    report: dict[str, Any] = {
        "questions": len(asked),
        "of": len(records),
        "older": older,
        "rewritten": len({(rewrite.task, rewrite.row) for rewrite in found}),
        "rewrites": len(found),
    }
    if write is not None:
        report["written"] = {"file": str(write), "pairs": write_pairs(found, write, seed)}
    if labelled:
        report["final"] = _labelled(found, final_labels(found, list(labelled.values())))
        report["people"] = between_people(labelled)
    if model is None:
        return report
    client: Any = get(model) if isinstance(model, str) else model
    if isinstance(client, AuxModel):
        client.check()
    theirs = [pair for given in labelled.values() for pair in given]
    labels = label_rewrites([*(rewrite.pair for rewrite in found), *theirs], client)
    report |= {**_labelled(found, labels), "seats": labels.seats}
    if labelled:
        report["agreement"] = with_model(labelled, labels)
    return report


def _labelled(found: Sequence[Rewrite], labels: RewriteLabels) -> dict[str, Any]:
    """Return the shares of the types, and why rewritings have none."""
    failed = Counter(labels.failed[rewrite.pair] for rewrite in found if rewrite.pair in labels.failed)
    return {"shares": shares(found, labels), "unlabelled": dict(failed)}


def shown_report(report: Mapping[str, Any]) -> str:
    """Return the report as text."""
    questions = number_of(report["questions"], "question")
    drawn = f" (drawn from {report['of']:,})" if report["questions"] != report["of"] else ""
    lines = [f"{number_of(report['rewrites'], 'rewriting')} in {report['rewritten']:,} of {questions}{drawn}"]
    if report["older"]:
        lines.append(f"left out: {report['older']:,} traces of the same rows in older samples; name one run's samples")
    if "written" in report:
        lines.append(f"{report['written']['pairs']:,} pairs to label in {report['written']['file']}")
    if "final" in report:
        lines += ["people, final labels", *_share_lines(report["final"])]
    if "shares" in report:
        lines += ["model", *_share_lines(report), *([f"  {came_back_line(told)}"] if (told := report["seats"]) else [])]
    for found in [*report.get("people", ()), *report.get("agreement", ())]:
        lines += _agreement_lines(found)
    return "\n".join(lines)


def _share_lines(found: Mapping[str, Any]) -> list[str]:
    tasks = found["shares"]["by_task"]
    cells = {"overall": found["shares"]["overall"], **(tasks if len(tasks) > 1 else {})}
    cells |= {f"round {number}": shares for number, shares in found["shares"]["by_round"].items()}
    lines = [f"  {line}" for line in columns([(cell, _line(shares)) for cell, shares in cells.items()])]
    return lines + [f"  no label: {count:,} ({reason})" for reason, count in found["unlabelled"].items()]


def _line(found: Mapping[str, Any]) -> str:
    if next(iter(found.values()))["value"] is None:
        return "no label"
    parts = (f"{name} {score_text(e['value'], e['low'], e['high'])}" for name, e in found.items())
    return f"{' · '.join(parts)}  (n = {next(iter(found.values()))['n']:,})"


def _agreement_lines(found: Mapping[str, Any]) -> list[str]:
    kappa = found["kappa"]
    value = score_text(
        kappa["value"], kappa["low"], kappa["high"], scale=1, digits=2, undefined=str(kappa.get("reason"))
    )
    first, second = found["first"], found["second"]
    labelled = " and ".join(f"{count:,}" for count in found["labelled"])
    lines = [
        f"{first} and {second}: kappa {value} · {found['equal']} of {found['pairs']} equal "
        f"(labelled by hand: {labelled})"
    ]
    lines += [f"  {first}: {name:<11} {second}: {json.dumps(row)[1:-1]}" for name, row in found["confusion"].items()]
    lines += [f"  no label of the model: {count} ({reason})" for reason, count in found.get("failed", {}).items()]
    return lines
