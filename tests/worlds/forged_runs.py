"""Tampering with finished runs: one value is changed, alone or with everything that is computed from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mrag_eval.platform import MragError, content_key, tasks_folder
from mrag_eval.report import Verified, open_samples, verify
from mrag_eval.report.files._results import read_result_file
from mrag_eval.report.files._scored_rows import ScoredSamples
from mrag_eval.report.verification._harness_checks import directions_of, reported_again
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import RowRecord, halved_metrics, summarize

KeyPath = tuple[str | int, ...]


class Run:
    """The files of a finished run, read, to be changed and written back."""

    def __init__(self, folder: Path, tasks: Path) -> None:
        self.path = next(folder.rglob("results_*.json"))
        # the task files of a world are its official ones
        self.tasks = tasks if any(tasks.glob("*.yaml")) else tasks_folder()
        self._whole = self.path.read_text("utf-8")
        self._lines = {
            task: self.file(task).read_text("utf-8").splitlines() for task in json.loads(self._whole)["configs"]
        }
        self.restore()

    def restore(self) -> None:
        """Forget all changes."""
        self.content: dict[str, Any] = json.loads(self._whole)
        self.samples = {task: [json.loads(line) for line in lines] for task, lines in self._lines.items()}

    def file(self, task: str) -> Path:
        """Return the sample file of a task."""
        return self.path.parent / f"samples_{task}_{self.path.stem.removeprefix('results_')}.jsonl"

    def write(self) -> None:
        """Write the files back."""
        for task, rows in self.samples.items():
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            self.file(task).write_text(text, "utf-8")
        self.path.write_text(json.dumps(self.content, ensure_ascii=False), "utf-8")

    def verified(self) -> Verified | None:
        """Write the files and verify them; None if they are refused as a whole."""
        self.write()
        try:
            (found,) = verify([self.path], self.tasks)
        except MragError:
            return None
        return found

    def blamed(self) -> list[str]:
        """Return the faults and deviations that verification finds; one line for files that are refused.

        A task's file of another version is one, too: its settings are not known.
        """
        found = self.verified()
        if found is None:
            return ["refused"]
        other = [one for one in found.of("open") if one.key == "task"]
        return [f"{one.task}: {one.text}" for one in (*found.of("fault"), *found.of("deviation"), *other)]

    def agree(self, task: str) -> bool:
        """Make everything that is computed from the rows of a task agree with them, as a careful forger does.

        Return False for rows from which nothing can be computed.
        """
        try:
            self._agree(task)
        except (MragError, KeyError, TypeError, ValueError, AttributeError, IndexError):
            return False
        return True

    def _agree(self, task: str) -> None:
        rows, config = self.samples[task], self.content["configs"][task]
        records = [RowRecord.from_dict(row["rows"]) for row in rows]
        halved = halved_metrics(records, {name for record in records for name in record.values})
        for row, record in zip(rows, records, strict=True):
            for name in [name for name in row if name in record.values or name in record.unscored]:
                del row[name]
            row |= {name: value for name, value in record.values.items() if name not in halved}
            prompt = row["arguments"]["gen_args_0"]["arg_0"]
            row["doc_hash"] = _hash(json.dumps(row["doc"], indent=2, ensure_ascii=False))
            row["prompt_hash"] = _hash(prompt if isinstance(prompt, str) else prompt[0])
            row["target_hash"] = _hash(str(row["target"]))
        together = "".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows)
        self.content["task_hashes"][task] = _hash(together)
        metadata = config["metadata"]
        scores = summarize(
            records, config["measurement"]["setting"]["retrieval"].get("seed", 0), metadata.get("pretrained")
        )
        config["scores"] = scores.to_dict()
        self.write()
        file = read_result_file(self.path)
        samples = open_samples(self.file(task), repeated=True)
        here = TaskHere.of(file.leaves[task])
        directions = directions_of(here, samples)
        self.content["results"][task] = reported_again(
            file, here, samples, ScoredSamples.of(records), scores, directions
        )
        self.record(task)

    def record(self, task: str) -> None:
        """Make the record of what was measured that of the harness's keys and of the rows."""
        config = self.content["configs"][task]
        found = config["measurement"]
        found["setting"] |= {name: config[name] for name in found["setting"] if name in config}
        found["setting"]["version"] = config["metadata"].get("version")
        ids = sorted({str(row["rows"]["row"]) for row in self.samples[task]})
        found["data"]["ran"] |= {"rows": len(ids), "ids": content_key(ids)}


def keys_of(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every value, and of every empty list or object; of a list, those of its first item."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from keys_of(inner, (*path, key))
    elif isinstance(value, list) and value:
        yield from keys_of(value[0], (*path, 0))
    else:
        yield path


def dotted(path: KeyPath) -> str:
    """Return a path without the numbers of items."""
    return ".".join(part for part in path if isinstance(part, str))


def changed(value: Any) -> Any:
    """Return another value of the same kind."""
    if value is None:
        return 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 + 0.1234
    if isinstance(value, str):
        return f"{value}x"
    return [*value, "x"] if isinstance(value, list) else {**value, "x": 1}


def change(whole: Any, path: KeyPath, new: Callable[[Any], Any] = changed) -> None:
    """Change the value behind a path in place."""
    *above, last = path
    for part in above:
        whole = whole[part]
    whole[last] = new(whole[last])


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
