"""The log of a small system in five languages, in every shape that ``mrag-eval score`` reads."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Turn:
    """A question with its answer, contexts (id and text) and reference."""

    id: str
    question: str
    answer: str
    contexts: tuple[tuple[str, str], ...]
    reference: str


_VARN = "The lighthouse of Varn was built in 1841 by the harbour council of the town."
_OLM = "Die Bäckerei in Olm verkauft seit vielen Jahren Roggenbrot an alle Bewohner der Stadt."
TURNS = (
    Turn(
        "q1",
        "When was the lighthouse of Varn built by the council?",
        "The sources say “the lighthouse of Varn was built in 1841” by the council.",
        (("p1", _VARN), ("p2", _OLM)),
        "1841",
    ),
    Turn(
        "q2",
        "Was verkauft die Bäckerei in Olm seit vielen Jahren?",
        "Die Bäckerei in Olm verkauft seit vielen Jahren Roggenbrot an alle Bewohner.",
        (("p2", _OLM),),
        "Roggenbrot",
    ),
    Turn(
        "q3",
        "¿Cuántos faros hay en la costa de Varn en total?",
        "I do not know how many lighthouses there are, I am sorry about that.",
        (("p1", _VARN),),
        "tres",
    ),
    Turn(
        "q4",
        "这座桥是什么时候建成开通的?",
        "资料说「这座桥于1890年三月开通」,当时很长。",
        (("p3", "这座桥于1890年三月开通,当时是全国最长的桥梁之一。"),),
        "1890年",
    ),
    Turn(
        "q5",
        "Где находится старый рынок города Олм?",
        "Он пишет: «The lighthouse of Varn was built in 1841». Рынок находится на площади у моста.",
        (("p4", "Рынок города Олм находится на площади у моста, рядом с ратушей."),),
        "на площади",
    ),
)


def own(turn: Turn) -> list[dict[str, Any]]:
    passages = [{"id": name, "text": text} for name, text in turn.contexts]
    row = {"id": turn.id, "query": turn.question, "reply": turn.answer, "answers": [turn.reference]}
    return [{**row, "passages": passages}]


def ragas(turn: Turn) -> list[dict[str, Any]]:
    ids, texts = zip(*turn.contexts, strict=True)
    row = {"id": turn.id, "user_input": turn.question, "response": turn.answer, "reference": turn.reference}
    return [{**row, "retrieved_contexts": list(texts), "retrieved_context_ids": list(ids)}]


def old_ragas(turn: Turn) -> list[dict[str, Any]]:
    row = {"id": turn.id, "question": turn.question, "answer": turn.answer, "ground_truth": turn.reference}
    return [{**row, "contexts": [{"id": name, "text": text} for name, text in turn.contexts]}]


def deepeval(turn: Turn) -> list[dict[str, Any]]:
    row = {"id": turn.id, "input": turn.question, "actual_output": turn.answer, "expected_output": turn.reference}
    return [{**row, "retrieval_context": [{"id": name, "text": text} for name, text in turn.contexts]}]


def langchain(turn: Turn) -> list[dict[str, Any]]:
    documents = [{"page_content": text, "metadata": {"id": name}} for name, text in turn.contexts]
    row = {"id": turn.id, "query": turn.question, "result": turn.answer, "reference": turn.reference}
    return [{**row, "source_documents": documents}]


def langchain_chain(turn: Turn) -> list[dict[str, Any]]:
    documents = [{"id": name, "page_content": text, "metadata": {}} for name, text in turn.contexts]
    row = {"id": turn.id, "input": turn.question, "answer": turn.answer, "reference": turn.reference}
    return [{**row, "context": documents}]


def langchain_dumped(turn: Turn) -> list[dict[str, Any]]:
    """Return documents as LangChain's own ``dumps`` writes them: their ids are not those of their class."""
    kind = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"]}
    documents = [{**kind, "kwargs": {"id": name, "page_content": text}} for name, text in turn.contexts]
    return [{**row, "source_documents": documents} for row in langchain(turn)]


def llamaindex(turn: Turn) -> list[dict[str, Any]]:
    nodes = [
        {"node": {"id_": name, "text": text, "metadata": {}}, "score": 1 / rank}
        for rank, (name, text) in enumerate(turn.contexts, 1)
    ]
    return [
        {
            "id": turn.id,
            "query": turn.question,
            "response": turn.answer,
            "source_nodes": nodes,
            "reference": turn.reference,
        }
    ]


def _haystack_documents(turn: Turn) -> list[dict[str, Any]]:
    return [{"id": name, "content": text, "meta": {}} for name, text in turn.contexts]


def haystack(turn: Turn) -> list[dict[str, Any]]:
    answer = {"data": turn.answer, "query": turn.question, "documents": _haystack_documents(turn), "meta": {}}
    return [{"id": turn.id, "answers": [answer], "ground_truth": turn.reference}]


def haystack_pipeline(turn: Turn) -> list[dict[str, Any]]:
    parts = {"llm": {"replies": [turn.answer]}, "retriever": {"documents": _haystack_documents(turn)}}
    return [{"id": turn.id, "query": turn.question, **parts, "ground_truth": turn.reference}]


def openai(turn: Turn) -> list[dict[str, Any]]:
    citations = [{"id": name, "content": text} for name, text in turn.contexts]
    message = {"role": "assistant", "content": turn.answer, "context": {"citations": citations}}
    row = {"id": turn.id, "question": turn.question, "reference": turn.reference}
    return [{**row, "choices": [{"index": 0, "message": message}]}]


def spans(turn: Turn) -> list[dict[str, Any]]:
    """Return a retriever's span before that of the chain which asked it, with flat attributes."""
    found: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": turn.question}
    for place, (name, text) in enumerate(turn.contexts):
        found |= {
            f"retrieval.documents.{place}.document.id": name,
            f"retrieval.documents.{place}.document.content": text,
        }
    asked = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"query": turn.question}),
        "output.value": turn.answer,
    }
    return [
        {"context": {"trace_id": turn.id, "span_id": "b"}, "parent_id": "a", "attributes": found},
        {
            "context": {"trace_id": turn.id, "span_id": "a"},
            "parent_id": None,
            "attributes": asked,
            "reference": turn.reference,
        },
    ]


def phoenix_frame(turn: Turn) -> list[dict[str, Any]]:
    """Return spans with the columns of a frame, as Phoenix exports them."""
    documents = [{"document.id": name, "document.content": text} for name, text in turn.contexts]
    return [
        {
            "context.trace_id": turn.id,
            "parent_id": None,
            "span_kind": "CHAIN",
            "attributes.input.value": turn.question,
            "attributes.output.value": turn.answer,
            "reference": turn.reference,
        },
        {
            "context.trace_id": turn.id,
            "parent_id": "a",
            "span_kind": "RETRIEVER",
            "attributes.input.value": turn.question,
            "attributes.retrieval.documents": documents,
        },
    ]


def langfuse(turn: Turn) -> list[dict[str, Any]]:
    """Return observations of Langfuse, which keeps the attributes of spans in their metadata."""
    retriever, chain = (one["attributes"] for one in spans(turn))
    return [
        {"id": "b", "traceId": turn.id, "parentObservationId": "a", "metadata": {"attributes": retriever}},
        {
            "id": "a",
            "traceId": turn.id,
            "parentObservationId": None,
            "input": chain["input.value"],
            "output": turn.answer,
            "metadata": {"attributes": chain},
            "expected_output": turn.reference,
        },
    ]


def bergen(turn: Turn) -> list[dict[str, Any]]:
    row = {"q_id": turn.id, "question": turn.question, "response": turn.answer, "label": [turn.reference]}
    return [{**row, "instruction": "Answer."}]


def described(turn: Turn) -> list[dict[str, Any]]:
    """Return a row in a shape of its own: :data:`COLUMNS` describes it."""
    found = [{"inhalt": text, "name": name} for name, text in turn.contexts]
    row = {"nr": turn.id, "anfrage": {"text": turn.question}, "antwort": turn.answer, "soll": turn.reference}
    return [{**row, "belege": found}]


COLUMNS = {
    "id": "nr",
    "question": "anfrage.text",
    "answer": "antwort",
    "reference": "soll",
    "contexts": "belege",
    "contexts.text": "inhalt",
    "contexts.id": "name",
}
# Shapes whose rows cannot hold a turn: BERGEN's have no contexts, the others' contexts no ids.
APART = ("BERGEN", "MEMERAG", "PsiloQA")
SHAPES: Mapping[str, Callable[[Turn], list[dict[str, Any]]]] = {
    "mrag-eval": own,
    "ragas": ragas,
    "ragas before 0.2": old_ragas,
    "deepeval": deepeval,
    "LangChain": langchain,
    "LangChain, a chain": langchain_chain,
    "LangChain, dumped": langchain_dumped,
    "LlamaIndex": llamaindex,
    "Haystack": haystack,
    "Haystack, a pipeline": haystack_pipeline,
    "OpenAI": openai,
    "OpenInference": spans,
    "OpenInference, a frame": phoenix_frame,
    "OpenInference, Langfuse": langfuse,
}


def rows_of(shape: Callable[[Turn], list[dict[str, Any]]], turns: Sequence[Turn] = TURNS) -> list[dict[str, Any]]:
    return [row for turn in turns for row in shape(turn)]


def write_log(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write rows in the format of the file's ending."""
    listed, ending = list(rows), path.suffix
    if ending == ".jsonl":
        path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in listed), "utf-8")
    elif ending == ".json":
        path.write_text(json.dumps(listed, ensure_ascii=False), "utf-8")
    elif ending == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(listed[0]))
            writer.writeheader()
            # lists as pandas writes them
            writer.writerows(
                {key: value if isinstance(value, str) else repr(value) for key, value in row.items()} for row in listed
            )
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(listed), path)
    return path
