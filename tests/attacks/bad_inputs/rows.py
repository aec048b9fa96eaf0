"""Questions and documents of the user's own that cannot be read, or say something else than was meant."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.attacks.bad_inputs.case import DEEP, UNREADABLE, Case

_QUESTION: dict[str, Any] = {"id": "1", "query": "Where?", "lang": "en", "answers": ["here"]}
_DOCUMENT: dict[str, Any] = {"id": "1", "lang": "en", "text": "It is here."}
# What a file of either kind may not be, and words of the message besides its name.
SHAPES: dict[str, tuple[str | bytes | object | None, list[str]]] = {
    "empty": ("", []),
    "blank lines": ("\n\n  \n", []),
    "a folder": (None, []),
    "unreadable": (UNREADABLE, []),
    "binary": (b"\x00\x01\xff\xfe", ["line 1"]),
    "UTF-16": ('{"id": "1"}\n'.encode("utf-16"), ["line 1"]),
    "Latin-1": ('{"id": "é"}\n'.encode("latin-1"), ["line 1"]),
    "cut off": ('{"id": "1", "lang"', ["line 1"]),
    "not JSON": ("id,lang\n1,en\n", ["line 1"]),
    "a list": ("[1, 2]\n", ["line 1", "list"]),
    "a number": ("5\n", ["line 1", "int"]),
    "null": ("null\n", ["line 1"]),
    "JSON over several lines": (json.dumps(_QUESTION, indent=1), ["line 1"]),
    "nested deeply": (DEEP + "\n", ["line 1"]),
    "a number of 6,000 digits": ('{"id": %s}\n' % ("9" * 6000), ["line 1"]),
}
# Keys of a question -> words of the message; None leaves a key out.
QUESTIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"id": None}, ["'id'"]),
    ({"query": None}, ["'query'"]),
    ({"lang": None}, ["'lang'"]),
    ({"id": ""}, ["'id'"]),
    ({"id": "  "}, ["'id'"]),
    ({"id": "a\nb"}, ["line 1", "id"]),
    ({"id": "a\0b"}, ["line 1", "id"]),
    ({"id": True}, ["'id'", "True"]),
    ({"id": 1.5}, ["'id'", "1.5"]),
    ({"id": ["1"]}, ["'id'"]),
    ({"query": 5}, ["'query'", "int"]),
    ({"query": ""}, ["'query'", "empty"]),
    ({"query": ["a"]}, ["'query'", "list"]),
    ({"query": "\ud800"}, ["'query'", "surrogate"]),
    ({"lang": "klingonese"}, ["'lang'", "klingonese"]),
    ({"lang": 5}, ["'lang'", "int"]),
    ({"lang": ""}, ["'lang'", "empty"]),
    ({"answers": 5}, ["'answers'"]),
    ({"answers": [1]}, ["'answers'"]),
    ({"answers": [""]}, ["'answers'"]),
    ({"answers": {"a": 1}}, ["'answers'"]),
    ({"answers": None, "anwsers": ["here"]}, ["anwsers", "answers"]),
    ({"answers": None, "answer": ["here"]}, ["'answer'", "'answers'"]),
    ({"query": None, "question": "Where?"}, ["'question'", "'query'"]),
    ({"lang": None, "language": "en"}, ["'language'", "'lang'"]),
    ({"relevant_id": ["1"]}, ["relevant_id", "relevant_ids"]),
    ({"given_pasages": []}, ["given_pasages", "given_passages"]),
    ({"gruop_id": "g"}, ["gruop_id", "group_id"]),
    ({"choices": ["a"], "gold_choice": 0}, ["'choices'"]),
    ({"choices": "a", "gold_choice": 0}, ["'choices'"]),
    ({"choices": ["a", 2], "gold_choice": 0}, ["'choices'"]),
    ({"choices": ["a", "b"]}, ["gold_choice"]),
    ({"choices": ["a", "b"], "gold_choice": 5}, ["gold_choice", "5"]),
    ({"choices": ["a", "b"], "gold_choice": -1}, ["gold_choice", "-1"]),
    ({"choices": ["a", "b"], "gold_choice": True}, ["gold_choice", "True"]),
    ({"choices": ["a", "b"], "gold_choice": "c"}, ["gold_choice", "'c'"]),
    ({"gold_doc_lang": "klingonese"}, ["'gold_doc_lang'", "klingonese"]),
    ({"culture_lang": 5}, ["'culture_lang'"]),
    ({"relevant_langs": 5}, ["'relevant_langs'"]),
    ({"relevant_langs": ["klingonese"]}, ["'relevant_langs'", "klingonese"]),
    ({"relevant_ids": 5}, ["'relevant_ids'"]),
    ({"relevant_ids": [5]}, ["'relevant_ids'"]),
    ({"relevant_ids": ["nowhere"]}, ["nowhere"]),
    ({"given_passages": 5}, ["'given_passages'", "int"]),
    ({"given_passages": {"text": "x"}}, ["'given_passages'", "dict"]),
    ({"given_passages": ["x"]}, ["given_passages[0]", "str"]),
    ({"given_passages": [{"text": "x"}]}, ["given_passages[0]", "'lang'"]),
    ({"given_passages": [{"lang": "en"}]}, ["given_passages[0]", "'text'"]),
    ({"given_passages": [{"lang": "en", "text": 5}]}, ["given_passages[0]", "'text'"]),
    ({"given_passages": [{"lang": "klingonese", "text": "x"}]}, ["given_passages[0]", "klingonese"]),
]
DOCUMENTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"id": None}, ["id"]),
    ({"lang": None}, ["lang"]),
    ({"text": None}, ["text"]),
    ({"id": ""}, ["id"]),
    ({"id": True}, ["id"]),
    ({"id": [1]}, ["id"]),
    ({"id": "a\nb"}, ["id"]),
    ({"id": "a\0b"}, ["id"]),
    ({"text": 5}, ["text", "int"]),
    ({"text": ["x"]}, ["text", "list"]),
    ({"text": "\udc00"}, ["text", "surrogate"]),
    ({"lang": "klingonese"}, ["klingonese"]),
    ({"lang": 5}, ["lang"]),
]


def _line(base: dict[str, Any], keys: dict[str, Any]) -> str:
    row = {key: value for key, value in (base | keys).items() if value is not None}
    return json.dumps(row) + "\n"


# Keys of a row of a log, in ragas' names -> words of the message.
LOG_ROWS: list[tuple[dict[str, Any], list[str]]] = [
    ({"user_input": None}, ["no column is the question", "retrieved_contexts"]),
    ({"user_input": ""}, ["line 1", "'query'", "empty"]),
    ({"user_input": 5.5, "lang": "klingonese"}, ["line 1", "'lang'", "klingonese"]),
    ({"user_input": {"a": 1}}, ["line 1", "'user_input'", "dict"]),
    ({"user_input": "\ud800"}, ["line 1", "surrogate"]),
    ({"response": None}, ["line 1", "'reply'", "--columns answer="]),
    ({"response": {"a": 1}}, ["line 1", "'response'", "dict"]),
    ({"response": True}, ["line 1", "'response'", "bool"]),
    ({"retrieved_contexts": [5]}, ["line 1", "retrieved_contexts[0]"]),
    ({"retrieved_contexts": [[]]}, ["line 1", "retrieved_contexts[0]"]),
    ({"retrieved_contexts": 5}, ["line 1", "retrieved_contexts[0]"]),
    ({"retrieved_contexts": [{"text": "a", "score": "high"}]}, ["line 1", "retrieved_contexts[0]", "'high'"]),
    ({"retrieved_contexts": [{"text": "a", "lang": "klingonese"}]}, ["line 1", "retrieved_contexts[0]", "klingonese"]),
    ({"retrieved_contexts": [{"title": "a"}]}, ["line 1", "retrieved_contexts[0]"]),
    ({"id": "a\nb"}, ["line 1", "id"]),
    ({"id": True}, ["'id'", "True"]),
]
_LOG_ROW: dict[str, Any] = {
    "user_input": "Where is the ship?",
    "response": "It is here.",
    "retrieved_contexts": ["a b"],
}
_MINE = "retrieve --tasks mine --include_path tasks -o new"
_QUESTIONS = f"{_MINE} --metadata data.path=wrong.jsonl"
_DOCUMENTS = f"{_MINE} --metadata data.corpus=wrong.jsonl"
_BUILD = "index build wrong.jsonl new --kind bm25"
_SCORE = "score wrong.jsonl --output_path new"
_GOOD = _line(_DOCUMENT, {})
CASES = [
    *(
        Case(command, ["wrong.jsonl", *named], {"wrong.jsonl": content}, title=f"{rows}: {what}")
        for rows, command in (
            ("questions", _QUESTIONS),
            ("documents", _DOCUMENTS),
            ("index build", _BUILD),
            ("log", _SCORE),
        )
        for what, (content, named) in SHAPES.items()
        # a folder of documents is read file by file
        if not (command == _BUILD and what == "a folder")
    ),
    *(
        Case(_QUESTIONS, ["wrong.jsonl", *named], {"wrong.jsonl": _line(_QUESTION, keys)}, title=f"question {keys}")
        for keys, named in QUESTIONS
    ),
    *(
        Case(
            command,
            ["wrong.jsonl", "line 2", *named],
            {"wrong.jsonl": _line(_DOCUMENT, {"id": "0"}) + _line(_DOCUMENT, keys)},
            title=f"document {keys}, {command[:9]}",
        )
        for command in (_DOCUMENTS, _BUILD)
        for keys, named in DOCUMENTS
        if not (command == _DOCUMENTS and keys == {})
    ),
    Case(
        _QUESTIONS,
        ["wrong.jsonl", "line 2", "'1'", "line 1"],
        {"wrong.jsonl": _line(_QUESTION, {}) * 2},
        title="an id twice",
    ),
    Case(
        _DOCUMENTS,
        ["wrong.jsonl", "line 2", "'1'", "line 1"],
        {"wrong.jsonl": _GOOD * 2},
        title="a document's id twice",
    ),
    Case(_BUILD, ["wrong.jsonl", "line 2", "'1'"], {"wrong.jsonl": _GOOD * 2}, title="index build, an id twice"),
    *(
        Case(_SCORE, ["wrong.jsonl", *named], {"wrong.jsonl": _line(_LOG_ROW, keys)}, title=f"row of a log {keys}")
        for keys, named in LOG_ROWS
    ),
    Case(_SCORE, ["line 2", "'1'"], {"wrong.jsonl": _line(_LOG_ROW, {"id": "1"}) * 2}, title="a log's id twice"),
    Case(
        _SCORE,
        ["line 1", "prediction", "response", "--columns answer="],
        {"wrong.jsonl": _line(_LOG_ROW, {"prediction": "It is there."})},
        title="a log with two replies that differ",
    ),
    *(
        Case(f"score {name} -o new", [name], {name: content}, title=f"log {name}: {what}")
        for name, what, content in (
            ("wrong.csv", "no rows", "user_input,response\n"),
            ("wrong.csv", "a cell too many", "user_input,response\na,b,c\n"),
            ("wrong.csv", "Latin-1", "user_input,response\né,b\n".encode("latin-1")),
            ("wrong.json", "cut off", '[{"user_input": "a"'),
            ("wrong.json", "a number", "5"),
            ("wrong.json", "nested deeply", DEEP),
            ("wrong.parquet", "no Parquet", b"PAR1 or not"),
            ("wrong.txt", "text", "Where is it?\n"),
        )
    ),
    *(
        Case(f"score good.jsonl -o new {flags}", named, {"good.jsonl": _line(_LOG_ROW, {})})
        for flags, named in (
            ("--columns question", ["--columns", "question"]),
            ("--columns qestion=user_input", ["qestion", "question"]),
            ("--columns question=gone", ["gone"]),
            ("--metrics refsed", ["refsed", "refused"]),
            ("--metrics ,", ["no metric"]),
            ("--metrics judge_correct", ["judge_correct", "model"]),
            ("--metrics rerank_hit@5", ["rerank_hit@5"]),
            ("--metrics hit@0", ["hit@0"]),
            ("--metrics hit@1٣", ["hit@1٣"]),
            ("--benchmark demoo", ["demoo", "demo"]),
            ("--benchmark demo", ["demo", "'0'"]),
            ("--lang klingonese", ["klingonese"]),
            ("--qrels gone", ["gone"]),
            ("--run gone", ["gone"]),
            ("--corpus gone --metrics hit@5", ["gone"]),
            ("--corpus gone --metrics refused", ["gone"]),
            ("--corpus corpsu.jsonl", ["did you mean 'corpus.jsonl'?"]),
            ("--columns id=foo", ["no row has 'foo'; allowed: "]),
            ("--columns id=user_inptu", ["did you mean 'user_input'?"]),
            ("--answer nowhere", ["nowhere"]),
            ("--hash-texts --metrics citations", ["--hash-texts", "citations"]),
            ("--seed -1", ["--seed", "-1"]),
        )
    ),
    *(
        Case(
            f"strategies {inputs} -o new {flags}",
            named,
            {"asked.jsonl": _line(_QUESTION, {"relevant_ids": ["1"]}), "held.jsonl": _line(_DOCUMENT, {})},
        )
        for inputs, flags, named in (
            ("gone.jsonl held.jsonl", "", ["gone.jsonl"]),
            ("asked.jsonl gone", "", ["gone"]),
            ("asked.jsonl asked.jsonl", "", ["asked.jsonl", "line 1", "index build FILE --key text=NAME"]),
            ("held.jsonl held.jsonl", "", ["held.jsonl"]),
            ("asked.jsonl held.jsonl", "--vary mode", ["--vary", "mode"]),
            ("asked.jsonl held.jsonl", "--vary mode=al", ["'al'", "all"]),
            ("asked.jsonl held.jsonl", "--vary kind=bm25 --vary k=0", ["--vary k", "0"]),
            ("asked.jsonl held.jsonl", "--vary k=2,x", ["--vary k", "'x'"]),
            ("asked.jsonl held.jsonl", "--vary mode=all,foo", ["--vary mode", "'foo'"]),
            ("asked.jsonl held.jsonl", "--vary mode=all --vary seed=1,-5", ["--vary seed", "-5"]),
            ("asked.jsonl held.jsonl", "--vary mode=all --vary kind=bm25,foo", ["--vary kind", "'foo'"]),
            ("asked.jsonl held.jsonl", "--vary colour=red", ["colour"]),
            ("asked.jsonl held.jsonl", "--vary kind=bm25 --vary mode=all --metric shon@k", ["shon@k"]),
            ("asked.jsonl held.jsonl", "--lang klingonese", ["klingonese"]),
            ("asked.jsonl held.jsonl", "--max_calls -1", ["--max_calls", "-1"]),
        )
    ),
    Case("score gone.jsonl -o new", ["gone.jsonl"]),
    *(
        Case(f"{command} rows.{form}", [f"rows.{form}: rows, not the results of a run"], {f"rows.{form}": _GOOD * 2})
        for command in ("report", "verify", "export --format csv")
        for form in ("jsonl", "csv", "parquet")
    ),
    Case("score", ["LOG"]),
    Case("score good.jsonl", ["--output_path"], {"good.jsonl": _line(_LOG_ROW, {})}),
    Case("index build wrong.jsonl.gz new --kind bm25", ["wrong.jsonl.gz"], {"wrong.jsonl.gz": _GOOD}),
    Case(
        "index build wrong.jsonl.gz new --kind bm25",
        ["wrong.jsonl.gz"],
        {"wrong.jsonl.gz": gzip.compress(_GOOD.encode() * 99)[:40]},
        title="a gzip file cut off",
    ),
    Case("index build wrong.csv new --kind bm25", ["wrong.csv", ".jsonl"], {"wrong.csv": "id,lang\n"}),
    Case("index build wrong.parquet new --kind bm25", ["wrong.parquet"], {"wrong.parquet": b"PAR1 or not"}),
    Case("index build wrong new --kind bm25", ["wrong"], {"wrong": None}, title="an empty folder"),
    Case(
        "index build wrong new --kind bm25",
        ["a.txt", "language"],
        {"wrong/a.txt": "text"},
        title="a text without a language",
    ),
    Case(
        "index build wrong new --kind bm25",
        ["a.txt", "UTF-8"],
        {"wrong/en/a.txt": b"\xff\xfe"},
        title="a text that is not UTF-8",
    ),
    Case(
        "index build wrong new --kind bm25",
        ["klingonese"],
        {"wrong/klingonese/a.txt": "x"},
        title="a folder of no language",
    ),
    Case("index build gone.jsonl new --kind bm25", ["gone.jsonl"]),
    Case("index build hub:nobody/nothing new --kind bm25", ["nobody/nothing"]),
    Case("index build hub: new --kind bm25", ["hub:"]),
    Case(f"{_MINE} --metadata data.path=gone.jsonl", ["gone.jsonl"]),
    Case(f"{_MINE} --metadata retrieval.kind=precomputed,retrieval.run=gone.trec", ["gone.trec"]),
    *(
        Case(
            f"{_MINE} --metadata retrieval.kind=precomputed,retrieval.run=wrong.trec,retrieval.corpus=idx",
            ["cannot be read" if content is UNREADABLE else "wrong.trec"],
            {"wrong.trec": content},
            title=f"a run: {what}",
        )
        for what, content in {
            "empty": "",
            "a folder": None,
            "unreadable": UNREADABLE,
            "binary": b"\x00\xff",
            "five columns": "q-ferry-en Q0 ferry-en 1 2.0\n",
            "a rank that is no number": "q-ferry-en Q0 ferry-en first 2.0 x\n",
            "a score that is no number": "q-ferry-en Q0 ferry-en 1 high x\n",
            "a score that is not finite": "q-ferry-en Q0 ferry-en 1 nan x\n",
            "a document twice": "q-ferry-en Q0 ferry-en 1 2.0 x\nq-ferry-en Q0 ferry-en 2 1.0 x\n",
        }.items()
    ),
]
