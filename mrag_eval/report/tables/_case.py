"""One disputed territory: answers by model, mode and language, viewpoints of the documents, and who cites which."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mrag_eval.config import mode_named
from mrag_eval.core import pipe_table
from mrag_eval.datasets import NEUTRAL, NOT_RELEVANT
from mrag_eval.metrics import UNKNOWN_CONTROLLER, parse_citations
from mrag_eval.platform import DataError, did_you_mean
from mrag_eval.report.files._leaves import variants
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import (
    config_beside,
    models_beside,
    open_samples,
    part_beside,
    result_beside,
    sample_files,
    task_of,
)
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.report.tables._requirements import first_stage
from mrag_eval.scoring import TerritoryAnswer, TerritoryQuestion

_UNLABELLED = "no label"
_FORM = re.compile(r"_(direct|citation|likelihood)(?:_|$)")


@dataclass(frozen=True, slots=True)
class CitedPlace:
    """The number of a document in a prompt (from 0, as in ``<doc0>``), and how often the reply cites it."""

    document: int
    times: int


@dataclass(frozen=True)
class CaseRun:
    """One model in one task. ``answers``: language -> the country named, None if none was named.

    ``retriever`` is the one whose documents are shown, None without documents. ``variant`` names the settings and the
    part of the rows in which the run differs from others of its model, mode, retriever and form; empty without any.

    ``replies`` are as given. ``documents``: language -> viewpoint -> number of documents in the prompt.
    ``citations``: document -> language of the question -> its place in the prompt, and how often the reply cites it;
    empty for replies without citations.
    """

    model: str
    task: str
    mode: str
    form: str
    answers: Mapping[str, str | None]
    replies: Mapping[str, str]
    documents: Mapping[str, Mapping[str, int]]
    citations: Mapping[str, Mapping[str, CitedPlace]]
    retriever: str | None = None
    variant: str = ""

    @property
    def shown_mode(self) -> str:
        """Return the mode with what distinguishes the run: ``qlang (openai, documents=relevant)``."""
        told = ", ".join(filter(None, (self.retriever, self.variant)))
        return f"{self.mode} ({told})" if told else self.mode


@dataclass(frozen=True)
class TerritoryCase:
    """A territory and every run that asked about it."""

    territory: str
    claimants: tuple[str, ...]
    controller: str
    languages: tuple[str, ...]
    runs: tuple[CaseRun, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the case as JSON values."""
        return asdict(self)


def read_case(territory: str, paths: Sequence[Path]) -> TerritoryCase:
    """Return the answers and documents on a territory in the sample files at ``paths``.

    Raises DataError for a territory that no file asks about, naming the closest one that occurs.
    """
    known: dict[str, None] = {}
    found: list[tuple[Path, CaseRun]] = []
    facts: TerritoryQuestion | None = None
    languages: dict[str, None] = {}
    models = models_beside(sample_files(paths))
    for path, model in models.items():
        asked = [(sample, sample.record.concurrence) for sample in open_samples(path)]
        known |= dict.fromkeys(answer.territory for _, answer in asked if answer is not None)
        here = [(sample, answer) for sample, answer in asked if answer is not None and answer.territory == territory]
        if not here:
            continue
        facts = here[0][1]
        found.append((path, _run(path, model, here)))
        languages |= dict.fromkeys(found[-1][1].answers)
    if facts is None:
        hint = did_you_mean(territory, known) if known else ": no file has questions about territories"
        raise DataError(f"no sample on '{territory}'{hint}", "name the samples of tasks bordirlines_...")
    runs = _told_apart(found)
    ordered = sorted(runs, key=lambda run: (run.model, run.form, mode_named(run.mode).shows_passages, run.task))
    return TerritoryCase(territory, facts.claimants, facts.controller, tuple(sorted(languages)), tuple(ordered))


def _told_apart(found: Sequence[tuple[Path, CaseRun]]) -> list[CaseRun]:
    """Return the runs, those that only their settings distinguish with their variants."""
    groups: dict[tuple[str | None, ...], list[tuple[Path, CaseRun]]] = defaultdict(list)
    for path, run in found:
        groups[run.model, run.mode, run.retriever, run.form].append((path, run))
    out = []
    for members in groups.values():
        files = [path for path, _ in members]
        records = [None if (r := result_beside(file)) is None else r.measurement(task_of(file)) for file in files]
        parts = [part_beside(file) for file in files]
        told = zip(members, parts, variants(records, parts), strict=True)
        several = len(set(parts)) > 1
        out += [
            replace(run, variant=", ".join(filter(None, (variant, (part or "all rows") if several else ""))))
            for (_, run), part, variant in told
        ]
    return out


def _retriever(config: TaskConfig) -> str | None:
    """Return whose documents a run shows: those published for an embedder, or found in a corpus of the user's."""
    if not config.searches or config.corpus is None:
        return None
    published = config.data.get("embedder")
    return first_stage(config) if published is None else str(published)


def _run(path: Path, model: str, samples: Sequence[tuple[Sample, TerritoryAnswer]]) -> CaseRun:
    task = task_of(path)
    answers: dict[str, str | None] = {}
    replies: dict[str, str] = {}
    documents: dict[str, dict[str, int]] = {}
    citations: dict[str, dict[str, CitedPlace]] = {}
    for sample, answer in samples:
        answers[answer.query_lang] = answer.country
        replies[answer.query_lang] = sample.answer
        views = Counter((hit.labels or {}).get("viewpoint", _UNLABELLED) for hit in sample.passages)
        documents[answer.query_lang] = dict(views)
        if sample.record.citations is not None:
            times = Counter(parse_citations(sample.record.citations.answer).inline)
            for number, hit in enumerate(sample.passages):
                citations.setdefault(hit.id, {})[answer.query_lang] = CitedPlace(number, times[number])
    form = _FORM.search(task)
    config = config_beside(path)
    named = (model, task, config.mode or "?", form[1] if form else "?")
    return CaseRun(*named, answers, replies, documents, citations, _retriever(config))


def shown_case(case: TerritoryCase) -> str:
    """Return Markdown tables: answers (``*`` if they differ from those without retrieval), documents by viewpoint, and
    for every run with citations which document each language cites.
    """
    head = ["model", "mode", "answers", *case.languages]
    rows = []
    for run in case.runs:
        plain = [r for r in case.runs if r.model == run.model and not mode_named(r.mode).shows_passages]
        before = next((r for r in plain if r.form == run.form), plain[0] if plain else None)
        rows.append([run.model, run.shown_mode, run.form, *(_answer(run, before, lang) for lang in case.languages)])
    controller = "nobody known" if case.controller == UNKNOWN_CONTROLLER else case.controller
    out = [
        f"### {case.territory}",
        f"claimed by {', '.join(case.claimants)} · controlled by {controller}",
        "",
        pipe_table(head, rows),
    ]
    marks = {"*": "`*` another answer than without retrieval", "(none)": "`(none)` no option could be read"}
    answers = " ".join(cell for row in rows for cell in row[3:])
    legend = " · ".join(said for mark, said in marks.items() if mark in answers)
    out += ["", legend] if legend else []
    views = [*case.claimants, NEUTRAL, NOT_RELEVANT, _UNLABELLED]
    shown = [view for view in views if any(view in d for run in case.runs for d in run.documents.values())]
    if shown:
        head = ["mode", "question", *(f"for {view}" if view in case.claimants else view for view in shown)]
        seen: dict[tuple[str, ...], None] = {}
        for run in case.runs:
            for lang, counts in sorted(run.documents.items()):
                if counts:
                    line = (run.shown_mode, lang, *(str(counts.get(view, 0)) for view in shown))
                    seen[line] = None
        table = pipe_table(head, list(seen), "ll" + "r" * len(shown))
        out += ["", "Documents in the prompt, by the claim they support", "", table]
    for run in case.runs:
        out += _cited(run)
    return "\n".join(out)


def _cited(run: CaseRun) -> list[str]:
    """Return a table of the documents that a run shows: a column for each language of the question."""
    langs = sorted({lang for places in run.citations.values() for lang in places})
    if not langs:
        return []
    cited = {name: sum(p.times > 0 for p in places.values()) for name, places in run.citations.items()}
    rows = []
    for name in sorted(run.citations, key=lambda name: (-cited[name], -len(run.citations[name]), name)):
        places = run.citations[name]
        shown = [f"{p.document}{f' ({p.times} x)' if p.times else ''}" if (p := places.get(x)) else "" for x in langs]
        rows.append([name, *shown, f"{cited[name]} of {len(places)}"])
    return [
        "",
        f"Documents that {run.model} cites in {run.shown_mode}, by language of the question",
        "",
        pipe_table(["document", *langs, "cited by"], rows, "l" + "r" * (len(langs) + 1)),
        "",
        "the number of the document in the prompt, and how often the explanation cites it; blank: not shown",
    ]


def _answer(run: CaseRun, before: CaseRun | None, lang: str) -> str:
    if lang not in run.answers:
        return ""
    answer = run.answers[lang]
    others = before.answers if before is not None and mode_named(run.mode).shows_passages else {}
    changed = lang in others and others[lang] != answer
    return (answer or "(none)") + ("*" if changed else "")
