"""Results, samples, rules, baselines and sheets that another program wrote, or that were changed by hand."""

from __future__ import annotations

import json
from typing import Any

from tests.attacks.bad_inputs.case import DEEP, UNREADABLE, Case

_DATE = "2026-01-01T00-00-00.000000"
_RESULTS = f"full/some-model/results_{_DATE}.json"
_SAMPLES = f"full/some-model/samples_qa_one_{_DATE}.jsonl"
# What no file of ours may be.
SHAPES: dict[str, str | bytes | object] = {
    "empty": "",
    "binary": b"\x00\xff\xfe",
    "cut off": '{"configs": {"qa": ',
    "a list": "[]",
    "a number": "5",
    "null": "null",
    "another object": '{"hello": 1}',
    "unreadable": UNREADABLE,
    "nested deeply": DEEP,
}
# Commands that read results, and those that read samples.
RESULTS = (
    "report full",
    "report full -o new.html",
    "report full --layout xrag",
    "export full --format csv",
    "export full --format eee",
    "export full --format latex",
    "verify full",
    f"rerun {_RESULTS}",
    "build report full full",
)
SAMPLES = (
    "compare full full --pair qa_one=qa_two",
    "compare full --answers",
    "compare full --languages",
    "gate --save new.json full",
    "gate --init new.yaml full",
    "report full --territory Ceuta",
    "judge inspect full -o new.csv",
    "judge answers full/some-model/samples_qa_one_{date}.jsonl --panel writer",
    "judge passages full/some-model/samples_qa_one_{date}.jsonl --panel writer",
    "judge rewrites full",
    "judge people full --write new.csv",
    "judge documents full/some-model/samples_qa_one_{date}.jsonl --model writer",
    "trace qa_one-0 full",
    "verify full",
)
# Keys of the results, with a value that they cannot have.
CONFIGS: dict[str, Any] = {
    "configs: a list": {"configs": []},
    "configs: null": {"configs": None},
    "scores: a wrong rows": {"configs": {"qa_one": {"scores": {"rows": "many", "metrics": {}}}}},
    "scores: metrics a list": {"configs": {"qa_one": {"scores": {"rows": 1, "metrics": []}}}},
    "scores: a value is a text": {
        "configs": {"qa_one": {"scores": {"rows": 1, "metrics": {"acc": {"value": "high"}}}}}
    },
    "scores: another schema": {"configs": {"qa_one": {"scores": {"schema_version": 99, "rows": 1}}}},
}
_ROW = {"row": "r", "cell": {"query_lang": "en"}, "values": {"match": 1.0}}
_PASSAGE = {"id": "p", "lang": "en", "text": "t", "score": 0.5, "rank": 1}
# Lines of samples.
LINES: dict[str, Any] = {
    "no rows": {"doc": {"id": "r"}},
    "rows: a list": {"rows": []},
    "rows: null": {"rows": None},
    "no row": {"rows": {"cell": {}, "values": {}}},
    "row: a number": {"rows": {**_ROW, "row": 5}},
    "values: a list": {"rows": {**_ROW, "values": []}},
    "a value is a text": {"rows": {**_ROW, "values": {"match": "high"}}},
    "cell: a text": {"rows": {**_ROW, "cell": "en"}},
    "another schema": {"rows": {**_ROW, "schema_version": 99}},
}
# Documents of samples, which only some commands read.
DOCS: dict[str, Any] = {
    "doc: a list": {"rows": _ROW, "doc": []},
    "doc: a text": {"rows": _ROW, "doc": "x"},
    "doc: a number": {"rows": _ROW, "doc": 5},
    "passages: a text": {"rows": _ROW, "doc": {"id": "r", "passages": "x"}},
    "passages: a number": {"rows": _ROW, "doc": {"id": "r", "passages": 5}},
    "passages: of texts": {"rows": _ROW, "doc": {"id": "r", "passages": ["x"]}},
    "passages: no id": {"rows": _ROW, "doc": {"id": "r", "passages": [{"lang": "en", "text": "t"}]}},
    "score: a text": {"rows": _ROW, "doc": {"id": "r", "passages": [{**_PASSAGE, "score": "high"}]}},
    "trace: a list": {"rows": _ROW, "doc": {"id": "r", "trace": [1]}},
    "trace: a text": {"rows": _ROW, "doc": {"id": "r", "trace": "x"}},
    "query: a number": {"rows": _ROW, "doc": {"id": "r", "query": 5}},
    "answers: a number": {"rows": _ROW, "doc": {"id": "r", "answers": 5}},
    "votes: a list": {"rows": _ROW, "doc": {"id": "r"}, "votes": [1]},
}
_TRACES = ("trace", "judge rewrites")
_OTHER_LINES = ("empty", "a list", "a number", "null", "another object")
CASES = [
    *(
        Case(c, [_RESULTS], {_RESULTS: content}, title=f"{c}: results {what}")
        for c in RESULTS[:8]
        for what, content in SHAPES.items()
    ),
    *(
        Case(c, [_RESULTS], {_RESULTS: json.dumps(keys)}, title=f"{c}: {what}")
        for c in RESULTS[:7]
        for what, keys in CONFIGS.items()
    ),
    *(
        Case(
            c.format(date=_DATE),
            # a file of other lines simply holds no trace
            ["full" if c.startswith(_TRACES) and what in _OTHER_LINES else "samples_qa_one"],
            {_SAMPLES: content},
            title=f"{c[:24]}: samples {what}",
        )
        for c in SAMPLES
        for what, content in SHAPES.items()
        if what != "empty" or not c.startswith("verify")
    ),
    *(
        Case(
            c.format(date=_DATE), ["samples_qa_one", "line 1"], {_SAMPLES: json.dumps(line)}, title=f"{c[:24]}: {what}"
        )
        for c in SAMPLES[:7]
        for what, line in LINES.items()
    ),
    *(
        Case(c, ["samples_qa_one", "line 1"], {_SAMPLES: json.dumps(line)}, title=f"{c}: {what}")
        for c in ("report full -o new.html", "judge inspect full -o new.csv")
        for what, line in DOCS.items()
    ),
    *(
        Case(
            "gate --baseline wrong.json --candidate a --rules rules.yaml",
            ["wrong.json"],
            {"wrong.json": content},
            title=f"a baseline: {what}",
        )
        for what, content in SHAPES.items()
    ),
    *(
        Case(
            "gate --baseline base.json --candidate a --rules wrong.yaml",
            ["wrong.yaml", *named],
            {"wrong.yaml": content},
            title=f"rules: {what}",
        )
        for what, (content, named) in {
            "empty": ("", []),
            "binary": (b"\xff\x00", []),
            "a list": ("- a\n", []),
            "a number": ("5\n", []),
            "broken": ("rules: [\n", []),
            "tabs": ("rules:\n\t- a\n", []),
            "unreadable": (UNREADABLE, []),
            "no rule": ("rules: []\n", ["rules"]),
            "an unknown key": ("rulez: []\n", ["rulez", "did you mean 'rules'"]),
            "a rule without a metric": ("rules:\n  - {max_drop: 0.1}\n", ["metric"]),
            "a misspelt rule": ("rules:\n  - {metric: acc, max_dropp: 0.1}\n", ["max_dropp"]),
            "a drop that is a text": ("rules:\n  - {metric: acc, max_drop: much}\n", ["max_drop", "much"]),
            "a drop below 0": ("rules:\n  - {metric: acc, max_drop: -1}\n", ["max_drop", "-1"]),
            "a drop that is true": ("rules:\n  - {metric: acc, max_drop: true}\n", ["max_drop", "true"]),
        }.items()
    ),
    *(
        Case("judge inspect --read wrong.csv", ["wrong.csv"], {"wrong.csv": content}, title=f"a sheet: {what}")
        for what, content in {
            "empty": "",
            "binary": b"\xff\x00\xfe",
            "other columns": "a,b\n1,2\n",
            "unreadable": UNREADABLE,
        }.items()
    ),
    *(
        Case(f"{command} {place}", [place.partition("/")[0]])
        for command in (
            "report",
            "verify",
            "compare --answers",
            "gate --save new.json",
            "rerun",
            "judge answers",
            "trace 0",
            "export --format csv",
        )
        for place in ("gone", "tasks", "own")
    ),
    *(
        Case(command, [place])
        for place in ("gone", "own")
        for command in (
            f"build report {place}",
            f"build qa {place} -o new --model writer",
            f"build xrag {place} -o new --model writer",
            f"build territories {place} -o new",
            f"corpus kilt --from {place}",
            f"corpus wikipedia --langs en --from {place}",
            f"judge agree {place} --human new.csv",
            f"judge correct {place} --labels new.csv",
        )
    ),
    *(
        Case(
            f"build {kind} wrong.jsonl -o new --model writer",
            # XRAG's pipeline counts what its steps drop, and names the settings that decide it
            ["articles" if kind == "xrag" and what in ("empty", "another object") else "wrong.jsonl"],
            {"wrong.jsonl": content},
            title=f"build {kind}: {what}",
        )
        for kind in ("qa", "xrag")
        for what, content in SHAPES.items()
    ),
    *(
        Case(
            f"build {kind} corpus.jsonl -o new --model writer --settings wrong.yaml",
            ["wrong.yaml"],
            {"wrong.yaml": content},
            title=f"build {kind}, settings: {what}",
        )
        for kind in ("qa", "xrag")
        for what, content in {
            "broken": "a: [\n",
            "a list": "- a\n",
            "a number": "5\n",
            "unknown key": "nonsense: 1\n",
            "unreadable": UNREADABLE,
            "binary": b"\xff\x00",
        }.items()
    ),
]
