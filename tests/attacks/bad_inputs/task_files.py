"""Task files that no task can be made of, and settings of a task that contradict each other."""

from __future__ import annotations

from tests.attacks.bad_inputs.case import UNREADABLE, Case

_CLASS = "class: !function mrag_eval.task.RagTask\n"
_REST = """\
task: new
metrics: [match]
generation_kwargs: {until: []}
data: {benchmark: jsonl, path: questions.jsonl, corpus: corpus.jsonl}
"""
# What the file holds, and words of the message.
FILES: dict[str, tuple[str | bytes | object, list[str]]] = {
    "broken": ("task: [new\n", ["YAML"]),
    "empty": ("", ["YAML"]),
    "a list": ("- task: new\n", ["list"]),
    "a number": ("5\n", ["int"]),
    "tabs": ("task: new\nretrieval:\n\tk: 3\n", ["YAML"]),
    "binary": (b"\x00\x01\xff\xfe\x80", ["YAML"]),
    "UTF-16": ("task: new\n".encode("utf-16-be"), ["new.yaml"]),
    "unknown function": (_REST + "class: !function mrag_eval.task.RagTasks\n", ["RagTasks"]),
    "unknown module": (_REST + "class: !function mrag_evil.RagTask\n", ["mrag_evil"]),
    "a function without a module": (_REST + "class: !function RagTask\n", ["RagTask"]),
    "unknown tag": (_REST + "class: !functoin mrag_eval.task.RagTask\n", ["!functoin"]),
    "no name": (_CLASS + "metrics: [match]\n", ["task"]),
    "task: null": (_CLASS + _REST.replace("task: new", "task: null"), ["'task'", "None"]),
    "task: blank": (_CLASS + _REST.replace("task: new", "task:"), ["'task'", "None"]),
    "task: a number": (_CLASS + _REST.replace("task: new", "task: 5"), ["'task'", "5"]),
    "missing class": (_REST, ["'class'", "RagTask"]),
    "class: null": (_REST + "class:\n", ["'class'", "RagTask"]),
    "misspelt block": (_CLASS + _REST + "retrievall: {k: 3}\n", ["retrievall", "did you mean 'retrieval'"]),
    "unknown key": (_CLASS + _REST + "nonsense: 1\n", ["nonsense"]),
    "include of nothing": (_CLASS + _REST + "include: gone.yaml\n", ["gone.yaml"]),
    "include of itself": (_CLASS + _REST + "include: new.yaml\n", ["new.yaml"]),
    "an unreadable file": (UNREADABLE, ["new.yaml"]),
    "no data": (_CLASS + _REST.partition("data:")[0], ["task new", "data"]),
    "data is a text": (_CLASS + _REST.partition("data:")[0] + "data: xquad\n", ["task new", "data", "str"]),
    "data is empty": (_CLASS + _REST.partition("data:")[0] + "data: {}\n", ["task new", "benchmark"]),
    "unknown benchmark": (_CLASS + _REST.partition("data:")[0] + "data: {benchmark: xqad}\n", ["xqad", "xquad"]),
    "no metrics": (_CLASS + _REST.replace("metrics: [match]\n", ""), ["task new", "metrics"]),
}
# Keys added to a task that is otherwise right, and words of the message.
KEYS: dict[str, list[str]] = {
    "metrics: []": ["metrics"],
    "metrics: [match, match]": ["metrics", "'match'", "twice"],
    "metrics: [machts]": ["machts", "did you mean 'match'"],
    "metrics: {match: true}": ["metrics", "dict"],
    "metrics: [5]": ["metrics"],
    "metrics: ['hit@0']": ["hit@0"],
    "metrics: ['hit@x']": ["hit@x"],
    "retrieval: 5": ["retrieval", "int"],
    "retrieval: [k]": ["retrieval", "list"],
    "prompt: short_answer": ["prompt", "str"],
    "judge: [writer]": ["judge", "list"],
    "agent: coral": ["agent", "str"],
    "metadata: 5": ["metadata"],
    "retrieval: {mode: all, k: true}": ["'k'", "true"],
    "retrieval: {mode: all, k: 2, depth: 1}": ["depth", "k = 2"],
    "retrieval: {run: x.trec}": ["'run'", "precomputed"],
    "retrieval: {mode: all, kind: precomputed}": ["precomputed", "'run'"],
    "retrieval: {mode: all, uri: x.db}": ["'uri'", "milvus"],
    "retrieval: {mode: all, kind: milvus}": ["milvus", "'corpus'"],
    "retrieval: {run_may_differ: [k]}": ["run_may_differ", "run_folder"],
    "retrieval: {given: {subset: gold}}": ["given"],
    "retrieval: {mode: given, given: {n: 3}}": ["'n'", "distractors"],
    "retrieval: {mode: given, given: {subset: distractors}}": ["'n'", "distractors"],
    "retrieval: {mode: all, rerank: {kind: api, url: nope}}": ["rerank", "url"],
    "retrieval: {mode: all, rerank: {kind: nope}}": ["rerank.kind", "nope"],
    "retrieval: {mode: all, rerank: {kind: listwise}}": ["rerank", "'model'"],
    "retrieval: {mode: all, translator: {backend: nope}}": ["translator", "nope"],
    "retrieval: {mode: all, query_translation: en}": ["translat"],
    "retrieval: {mode: all, corpus: nowhere}": ["corpus", "nowhere"],
    "retrieval: {mode: all, corpus: ./tasks}": ["corpus", "./tasks"],
    "retrieval: {mode: all, kind: dense, embedder: ''}": ["embedder", "name"],
    "retrieval: {mode: all, kind: dense, embedder: {}}": ["embedder", "name"],
    "retrieval: {mode: all, kind: dense, device: cuda}": ["cuda", "no such GPU"],
    "retrieval: {mode: all, kind: dense, device: 'cuda:9'}": ["cuda:9", "no such GPU"],
    "retrieval: {mode: coral}": ["planner"],
    "retrieval: {mode: coral}\nagent: {planner: nope}": ["nope", "models"],
    "agent: {preset: nope}": ["nope", "coral"],
    "prompt: {template: shrt_answer}": ["shrt_answer", "short_answer"],
    "prompt: {template: ./gone.jinja}": ["gone.jinja"],
    "judge: {panel: []}": ["panel"],
    "judge: {panel: [writer, writer]}": ["writer", "twice"],
    "judge: {panel: [nope]}\nmetrics: [judged_accuracy]": ["nope"],
    "output_type: loglikelihood": ["output_type", "loglikelihood"],
    "repeats: 3": ["repeats"],
    "doc_to_text: x": ["doc_to_text"],
    "metric_list: [{metric: acc}]": ["metric_list"],
    "filter_list: [{name: a, filter: [{function: take_first}]}, {name: b, filter: [{function: take_first}]}]": [
        "filter_list"
    ],
    "data: {benchmark: jsonl}": ["data.path"],
    "data: {benchmark: jsonl, path: gone.jsonl}": ["gone.jsonl"],
    "data: {benchmark: jsonl, path: tasks}": ["tasks"],
    "data: {benchmark: jsonl, path: questions.jsonl, corpus: gone.jsonl}": ["gone.jsonl"],
    "data: {benchmark: jsonl, path: questions.jsonl, language: klingonese}": ["klingonese"],
    "data: {benchmark: jsonl, path: questions.jsonl, language: ja}": ["ja"],
    "data: {benchmark: jsonl, path: questions.jsonl, imbalance: {en: 1}}": ["imbalance"],
    "data: {benchmark: xquad, languages: [klingonese]}": ["klingonese"],
    "data: {benchmark: xquad, path: gone}": ["gone"],
}


def _yaml(keys: str) -> str:
    """Return a task with these keys instead of its own of the same name."""
    given = {line.partition(":")[0] for line in keys.splitlines()}
    own = [line for line in _REST.splitlines() if line.partition(":")[0] not in given]
    return _CLASS + "\n".join([*own, keys, ""])


_RUN = "run --model oracle_answer --include_path mine --tasks new"
_PATH = "run --model oracle_answer --tasks mine/new.yaml"
CASES = [
    *(
        Case(_RUN, named, {"mine/new.yaml": content, "mine/questions.jsonl": ""}, title=f"{_RUN}: {what}")
        for what, (content, named) in FILES.items()
    ),
    *(
        Case(
            _PATH,
            [*named, "new"],
            {"mine/new.yaml": content},
            title=f"a path: {what}",
        )
        for what, (content, named) in FILES.items()
    ),
    *(
        Case(
            "tasks --check --folder mine",
            ["new.yaml"],
            {"mine/new.yaml": content},
            code=1,
            shown=True,
            title=f"check: {what}",
        )
        for what, (content, _) in FILES.items()
    ),
    *(Case(_RUN, [*named, "new"], {"mine/new.yaml": _yaml(keys)}, title=keys) for keys, named in KEYS.items()),
    *(
        Case(_PATH, [name[:60], fault], {"mine/new.yaml": _yaml(f"task: '{name}'")}, title=f"task: {name}")
        for name, fault in {"my/task": "slash", "../../evil": "slash", "x" * 300: "too long"}.items()
    ),
]
