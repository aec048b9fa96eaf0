"""The inputs that an attack found answered without a next step, or accepted: each with its case, or its test.

A value is the beginning of a case's title, or a test as MODULE.NAME.
"""

from __future__ import annotations

from collections.abc import Mapping

_RUN = "run --model oracle_answer --include_path tasks --tasks mine"
_TASK = "run --model oracle_answer --include_path mine --tasks new"

# Ended in a request to report it.
WITHOUT_A_STEP: Mapping[str, str] = {
    "a folder as the task": "run --model oracle_answer --include_path tasks --tasks .",
    "no task": "run --model oracle_answer --include_path tasks",
    "a misspelt model type": "run --model dummmy",
    "a limit below 0": f"{_RUN} --limit -3",
    "a limit of 0": f"{_RUN} --limit 0",
    "samples of no list": f'{_RUN} --samples {{"plain":"x"}}',
    "samples of no task": f"{_RUN} --samples [1]",
    "metadata that is no JSON": f"{_RUN} --metadata {{a",
    "a broken task file": f"{_TASK}: broken",
    "an empty task file": f"{_TASK}: empty",
    "a task file with a list": f"{_TASK}: a list",
    "a task file with tabs": f"{_TASK}: tabs",
    "a binary task file": f"{_TASK}: binary",
    "an unknown function": f"{_TASK}: unknown function",
    "a task without a name": f"{_TASK}: task: null",
    "a task without a class": f"{_TASK}: missing class",
    "questions nested deeply": "questions: nested deeply",
    "documents nested deeply": "documents: nested deeply",
    "an id of 6,000 digits": "questions: a number of 6,000 digits",
    "an id of a document of 6,000 digits": "documents: a number of 6,000 digits",
    "a manifest of another kind": "index search wrong water, a manifest: kind: another one",
    "a manifest nested deeply": "index search wrong water, a manifest: nested deeply",
    "a run folder with a number for a file": "a run folder, file: 5",
    "a run folder with a list for a row": "retrieved rows: a list",
    "samples with another document": "report full -o new.html: doc: a text",
    "samples with other passages": "report full -o new.html: passages: of texts",
    "samples with another trace": "report full -o new.html: trace: a list",
    "samples with a score in words": "report full -o new.html: score: a text",
    "a working folder that is not UTF-8": "test_bad_inputs.test_a_working_folder_that_is_not_utf_8_is_named",
    "a cache of an unknown user": "MRAG_CACHE=~nobody-here/x retrieve",
    "no space for a report": "test_full_outputs.test_a_full_disk_is_said",
    "no space for an export": "test_full_outputs.test_a_full_disk_is_said",
    "no space for a sheet": "test_full_outputs.test_a_full_disk_is_said",
    "no space for a baseline": "test_full_outputs.test_a_full_disk_is_said",
    "a terminal that knows ASCII alone": "test_bad_inputs.test_a_terminal_that_knows_few_characters_is_no_fault",
}
# Taken, with exit code 0.
ACCEPTED: Mapping[str, str] = {
    "results below a file": f"{_RUN} --output_path rules.yaml/out",
    "results in /proc": f"{_RUN} --output_path /proc/out",
    "results on a full disk": "test_results_on_disk.test_a_full_disk_is_no_success",
    "half a surrogate pair in a reply": "test_results_on_disk.test_half_a_surrogate_pair_in_a_reply_keeps_every_row",
    "a task with a slash in its name": "task: my/task",
    "a task with a way out of the folder in its name": "task: ../../evil",
    "an overwritten folder": "index build corpus.jsonl tasks --kind bm25 --overwrite",
    "an overwritten file": "index build corpus.jsonl rules.yaml --kind bm25 --overwrite",
    "a folder of tasks that does not exist": "tasks --folder nope --check",
    "a GPU that is not there": "retrieval: {mode: all, kind: dense, device: cuda}",
    "a misspelt key of a question": "question {'answers': None, 'anwsers': ['here']}",
    "an unknown setting that differs": "compare a b --differs nope",
    "an id with a newline": "question {'id': 'a\\nb'}",
    "an id with NUL": "question {'id': 'a\\x00b'}",
    "a number that is true": "retrieval: {mode: all, k: true}",
    "a metric named twice": "metrics: [match, match]",
    "a manifest without files": "index search wrong water, a manifest: no files",
    "a judge's address that is none": "models: {m: {model: local-completions, model_args: {base_url: nourl}}}",
    "examples for retrieval tasks": f"{_RUN} --num_fewshot 3",
    "an index of an unknown embedder": "index search dense water, embedder: nope",
}
