"""Samples for the report's browser: a draw from each task; every passage and trace text is stored once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mrag_eval.core import FATES, Hit, Trace, TracedHit, is_language, language_scripts, rounded
from mrag_eval.platform import to_json
from mrag_eval.report.files._leaves import Leaf
from mrag_eval.report.files._sample import Sample
from mrag_eval.scoring import scale_of

# Texts are cut: the reader needs to recognise the passage and the reply.
_PASSAGE_CHARS = 700
_REPLY_CHARS = 4_000
_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Thaa", "Nkoo", "Syrc", "Adlm", "Rohg"})


class Browser:
    """Gather samples of every task, and return as many as fit."""

    def __init__(self, limit: int, text: bool, seed: int) -> None:
        self.limit, self.text, self.seed = limit, text, seed
        self.available = 0
        # the samples drawn of every task: place in the draw, place in the file, content
        self._tasks: list[list[tuple[int, int, dict[str, Any]]]] = []
        self._passages: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}

    def add(self, leaf: Leaf, rows: Sequence[Sample]) -> None:
        """Draw the samples of a task."""
        self.available += len(rows)
        order = np.random.default_rng(self.seed).permutation(len(rows))[: self.limit].tolist()
        self._tasks.append([(place, i, self._sample(leaf, rows[i])) for place, i in enumerate(order)])

    def within(self, budget: int | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Return samples, and the passages that they refer to by number; every task gives the same number, if possible.

        With ``budget``, the number is limited by the size in bytes as JSON. Samples are in the order of their files.
        """
        most = max((len(task) for task in self._tasks), default=0)
        if budget is not None:
            least = 0
            while least < most:
                middle = (least + most + 1) // 2
                if self._bytes(middle) <= budget:
                    least = middle
                else:
                    most = middle - 1
        kept = [sorted(task[:most], key=lambda entry: entry[1]) for task in self._tasks]
        samples = [dict(sample) for task in kept for _, _, sample in task]
        used: dict[int, int] = {}
        for sample in samples:
            for hit in _hits(sample):
                used.setdefault(hit[0], len(used))
        for sample in samples:
            _renumber(sample, used)
        return samples, [self._passages[number] for number in used]

    def _bytes(self, most: int) -> int:
        """Return the size of ``most`` samples of every task, with their passages."""
        used: set[int] = set()
        total = 0
        for task in self._tasks:
            for _, _, sample in task[:most]:
                total += _size(sample)
                used.update(hit[0] for hit in _hits(sample))
        return total + sum(_size(self._passages[number]) for number in used)

    def _sample(self, leaf: Leaf, sample: Sample) -> dict[str, Any]:
        doc, record = sample.doc, sample.record
        shown = ((name, record.values[name]) for name in leaf.result.in_order(record.values))
        found = {
            "task": leaf.label,
            "id": record.row,
            "lang": record.query_lang,
            "source": sample.source_language,
            "doc_lang": record.cell.get("doc_lang"),
            "question": doc.query,
            "choices": list(doc.choices or ()),
            "references": list(doc.answers),
            "reply": _cut(sample.reply, _REPLY_CHARS),
            "answer": None if record.answer is None else record.answer.text,
            "passages": [self._passage(hit) for hit in sample.passages],
            "values": {name: rounded(value, scale=scale_of(name).factor) for name, value in shown},
            "right": record.right,
            "fate": None if record.fate == FATES[0] else record.fate,
            "failures": [": ".join(filter(None, (one.why, one.detail))) for one in record.failures],
            "prompt": self._prompt(sample),
            "unscored": dict(record.unscored),
            "retrieved": record.retrieved,
            "votes": dict(sample.votes) or None,
            "trace": self._trace(sample.trace),
            **_support(sample, hashed=leaf.result.config.setting("row_texts") == "hashed"),
        }
        # empty fields are left out to save space
        return {key: value for key, value in found.items() if value not in (None, {}, [])}

    def _prompt(self, sample: Sample) -> str | None:
        """Return the prompt with passages by number; None without their texts, of which it may hold a part."""
        prompt = sample.prompt if self.text else None
        for number, hit in enumerate(sample.passages if prompt else (), 1):
            prompt = (prompt or "").replace(hit.text or "\0", f"[passage {number}]")
        return None if prompt is None else _cut(prompt, _REPLY_CHARS)

    def _passage(self, hit: Hit) -> list[Any]:
        """Return a passage of the prompt: its number, its score, and whether it answers the question."""
        score = hit.score if hit.rerank_score is None else hit.rerank_score
        known = self._number(hit.id, hit.lang, hit.title, hit.text, hit.original_lang)
        return [known, round(score, 4), bool(hit.is_gold)]

    def _number(self, id: str, lang: str, title: str, text: str, original: str | None = None) -> int:
        """Return the number of a passage, which is stored once however often it is shown."""
        entry = {"lang": lang, "title": title, "id": id}
        if original:
            entry["from"] = original
        if self.text:
            entry["text"] = _cut(text, _PASSAGE_CHARS)
        key = json.dumps(entry, sort_keys=True)
        if key not in self._known:
            self._known[key] = len(self._passages)
            self._passages.append(entry)
        return self._known[key]

    def _found(self, hit: TracedHit) -> list[Any]:
        """Return a passage that the agents' loop found: its number, its score, and its outcome."""
        known = self._number(hit.id, hit.lang, hit.title, hit.text)
        return [known, round(hit.score, 4), hit.new, hit.valid, to_json(hit.critic)]

    def _trace(self, trace: Trace | None) -> dict[str, Any] | None:
        """Return the rounds of the agents' loop: queries, passages found, and the words of critic and planner."""
        if trace is None:
            return None
        rounds = []
        for each in trace.rounds:
            entry = {
                "languages": list(each.languages),
                "query": each.query,
                "hits": [self._found(hit) for hit in each.hits],
                "enough": each.enough_documents,
                "reason": each.reason,
                "faults": dict(each.faults),
            }
            rounds.append({key: value for key, value in entry.items() if value not in (None, {}, [])})
        return {"stopped": trace.stopped, "usage": to_json(trace.usage), "rounds": rounds}


def _support(sample: Sample, *, hashed: bool) -> dict[str, Any]:
    """Return what was found of the answer's claims, and the spans that nothing supports, in UTF-16 units.

    An answer that is ``hashed`` has no spans.
    """
    claims = () if sample.record.grounding is None else sample.record.grounding.claims
    text = sample.answer

    def units(place: int) -> int:
        return len(text[:place].encode("utf-16-le", "surrogatepass")) // 2

    return {
        "claims": [[claim.verdict or "undecided", claim.passage, claim.lang] for claim in claims],
        "unsupported": [
            [units(span.start), units(span.end)] for claim in claims for span in claim.unsupported if not hashed
        ],
    }


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[:chars]}…"


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")) + 1


def _hits(sample: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Return the passages of a sample, in its prompt and in its trace."""
    yield from sample.get("passages", ())
    for each in sample.get("trace", {}).get("rounds", ()):
        yield from each.get("hits", ())


def _renumber(sample: dict[str, Any], numbers: Mapping[int, int]) -> None:
    def moved(hits: Sequence[list[Any]]) -> list[list[Any]]:
        return [[numbers[hit[0]], *hit[1:]] for hit in hits]

    if "passages" in sample:
        sample["passages"] = moved(sample["passages"])
    if "trace" in sample:
        rounds = [{**each, "hits": moved(each.get("hits", ()))} for each in sample["trace"]["rounds"]]
        sample["trace"] = {**sample["trace"], "rounds": rounds}


def directions(codes: Sequence[str]) -> dict[str, str]:
    """Return language -> ``rtl`` for each of ``codes`` that is written from right to left."""
    return {code: "rtl" for code in codes if is_language(code) and _RIGHT_TO_LEFT & {*language_scripts(code)[:1]}}
