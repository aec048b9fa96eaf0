"""Lines of a sample file: every key against what the row, its reply and its record make of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from mrag_eval.platform import HIDDEN, number_of
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Differing, Remark
from mrag_eval.report.verification._task_here import RowsHere, TaskHere
from mrag_eval.retrieval import said_text
from mrag_eval.scoring import TASK_MEASURES, halved_metrics, option_texts, reference_of

# Keys of the row in a sample that retrieval adds to the benchmark's own.
RETRIEVED = ("absent_ids", "passages", "ranking", "searched_with", "reranked", "trace", "withheld")
# Keys that are compared with nothing here: the replies, and the record, which is made again from them.
_OWN = ("resps", "rows", "votes")
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


def sample_lines(file: ResultFile, here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Compare the lines of a task, key by key, with what they must hold, and their hashes with that of the task.

    A key that no line has is a fault, too.
    """
    leaf = here.leaf
    differing = Differing(leaf.task, len(samples), "by its row")
    names = {name for record in samples.records for name in record.values}
    halved = halved_metrics(samples.records, names)
    of_task = [name for name in TASK_MEASURES if name in samples.keys]
    together, said = hashlib.sha256(), hashlib.sha256()
    hidden = 0
    for sample, number in zip(samples, _numbers(here, samples), strict=True):
        line = {key: value for key, value in sample.line.items() if key not in _OWN}
        columns: dict[str, Any] = {name: value for name, value in sample.record.values.items() if name not in halved}
        # with several ranks the harness has None where a row has no value
        columns |= dict.fromkeys(name for name in sample.record.unscored if sample.line.get(name, 0) is None)
        wanted = _line(here, sample, {**columns, **dict.fromkeys(of_task)}) | {"doc_id": number}
        if any(line.get(key) != wanted[key] for key in _HASHES) and HIDDEN in json.dumps(line):
            hidden += 1
            wanted |= {key: line.get(key) for key in _HASHES}
        differing.compare(sample.record.row, line, wanted)
        together.update("".join(str(sample.line.get(key)) for key in _HASHES).encode("utf-8", "surrogatepass"))
        reply = str((sample.line.get("filtered_resps") or [""])[0])
        said.update(said_text(sample.line.get("doc") or {}, reply).encode("utf-8", "surrogatepass"))
    yield from differing.findings()
    if hidden:
        yield Remark(
            leaf.task, "note", f"a secret is hidden in {number_of(hidden, 'row')}: their hashes are of the text"
        )
    if (file.content.get("task_hashes") or {}).get(leaf.task) != together.hexdigest():
        yield Remark(leaf.task, "fault", "task_hashes: the hash of the task is not that of its samples")
    if "log" in leaf.measurement.subject and not hidden and leaf.measurement.subject["log"] != said.hexdigest():
        yield Remark(leaf.task, "fault", "subject.log: the hash of the log is not that of its replies")


def _line(here: TaskHere, sample: Sample, columns: Mapping[str, Any]) -> dict[str, Any]:
    line, config = sample.line, here.leaf.config
    doc = _doc(here.rows, sample)
    filters = config.raw.get("filter_list")
    listed = ["rows", *(["votes"] if "votes" in line else []), *columns]
    metrics = line.get("metrics")
    wanted = {
        "doc": doc,
        "target": reference_of(doc),
        "arguments": _requests(here, sample, doc),
        "filter": filters[0].get("name") if filters else "none",
        # their order is that of the task's metrics
        "metrics": metrics if isinstance(metrics, list) and sorted(metrics) == sorted(listed) else listed,
        "doc_hash": _doc_hash(here.rows, sample),
        "prompt_hash": sha256_text(prompt_text(sample)),
        "target_hash": sha256_text(str(line.get("target"))),
        **columns,
    }
    replies = line.get("resps") or ()
    kept = line.get("filtered_resps") if filters else [given[0] if given else None for given in replies]
    return wanted | {"filtered_resps": kept}


def _doc(rows: RowsHere | None, sample: Sample) -> dict[str, Any]:
    doc: dict[str, Any] = dict(sample.line.get("doc") or {})
    row = sample.record.row
    if rows is None or row not in rows.order:
        return {**doc, "id": row}
    logged = rows.logged(row)
    return logged if rows.found is not None else logged | {key: doc[key] for key in RETRIEVED if key in doc}


def _requests(here: TaskHere, sample: Sample, doc: Mapping[str, Any]) -> dict[str, Any]:
    """Return the requests of a row, with the prompt as it stands: one for its reply, or one for each option."""
    prompt = _first_request(sample).get("arg_0")
    config = here.leaf.config
    if config.raw.get("output_type") != "multiple_choice":
        return {"gen_args_0": {"arg_0": prompt, "arg_1": dict(config.generation)}}
    options = option_texts(doc) if doc.get("choices") else []
    return {f"gen_args_{i}": {"arg_0": prompt, "arg_1": text} for i, text in enumerate(options)}


def _numbers(here: TaskHere, samples: Samples) -> list[Any]:
    """Return the row number of each sample: by the rows here, else those of ``--samples``, else from 0 on."""
    if here.rows is not None and here.rows.repeated is not None:
        return [here.rows.order.get(record.row) for record in samples.records]
    given = samples.numbers
    asked = [*(here.leaf.config.samples or range(len(samples)))]
    return given if sorted(given, key=str) == sorted(asked, key=str) else [*asked, *given[len(asked) :]]


def _doc_hash(rows: RowsHere | None, sample: Sample) -> str:
    line, row = sample.line, sample.record.row
    doc = line.get("doc")
    if rows is None or rows.found is None or row not in rows.order or doc != rows.logged(row):
        return _dumped_hash(doc)
    # the runs of several models show the same rows, with their keys in the same order
    if rows.kept.get(("doc_hash", row)) != line.get("doc_hash"):
        rows.kept["doc_hash", row] = _dumped_hash(doc)
    return str(rows.kept["doc_hash", row])


def _dumped_hash(doc: Any) -> str:
    return sha256_text(json.dumps(doc, indent=2, ensure_ascii=False))


def _first_request(sample: Sample) -> Mapping[str, Any]:
    requests = sample.line.get("arguments")
    first = requests.get("gen_args_0") if isinstance(requests, Mapping) else None
    return first if isinstance(first, Mapping) else {}


def prompt_text(sample: Sample) -> str:
    """Return the prompt of the first request; the turns of a chat as the JSON text that an API was sent."""
    prompt = _first_request(sample).get("arg_0")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)


def sha256_text(text: str) -> str:
    """Return the hash of a text as the harness makes it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
