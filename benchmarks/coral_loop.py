"""Compare the time of the agents' loop with that of its calls alone, and time it question by question.

    python benchmarks/coral_loop.py [--questions 200] [--quick]

A server in its own process answers every request after a fixed latency. All questions take two rounds with two corpora
of five documents: 24 calls each. The ideal is calls × latency / requests in flight. The same run is then repeated from
the cache. Next, some of the questions run one after the other, with their critics in parallel. Finally the loop runs
with a model that answers at once, to measure its own work. The search is a table lookup and costs nothing.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latency_server import LatencyServer

os.environ["HF_HUB_OFFLINE"] = "1"

CORPORA, DOCUMENTS, ROUNDS = ("en", "ko"), 5, 2
SCORES = {"relevance": 4, "usefulness": 3, "clarity_specificity": 4, "compatibility": 5}


def reply(user: str) -> str:
    """Return the reply of the planner, critic or decision that the prompt addresses."""
    if "<previous_query>" in user:
        return json.dumps({"language_names": list(CORPORA), "rewritten_query": f"again: {hash(user)}"})
    if "<documents>" in user:
        return json.dumps({"enough_documents": False, "reason": "The year is missing."})
    if "<document>" in user:
        return json.dumps({"scores": SCORES, "critique": "It names the building, but not the year it was built."})
    return json.dumps({"language_names": list(CORPORA)})


def search(requests: Sequence[tuple[str, tuple[str, ...], str]]) -> list[list[Any]]:
    """Return documents that are unique to each query and corpus."""
    from mrag_eval.core import Hit

    text = "The lighthouse stands on a cliff above the harbour and can be seen from far away. " * 8
    return [
        [
            Hit(f"{hash(query)}-{code}-{n}", code, f"{query} {code} {n}. {text}", 1 - n / 10, n)
            for code in languages
            for n in range(1, DOCUMENTS + 1)
        ]
        for query, languages, _ in requests
    ]


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="16 questions, 2 one by one: does it still run?")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--one-by-one", type=int, default=20, help="questions for the loop that takes them in turn")
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    args = parser.parse_args()
    count, alone = (16, 2) if args.quick else (args.questions, args.one_by_one)
    logging.disable(logging.WARNING)

    server = LatencyServer(args.latency, reply)

    from mrag_eval.config import Agent, ModelSpec
    from mrag_eval.core import RagDoc
    from mrag_eval.models import AuxModel, Reply
    from mrag_eval.platform import Store
    from mrag_eval.retrieval.agents._coral import Coral, Start
    from mrag_eval.retrieval.agents._seats import Agents

    spec = ModelSpec(
        model="local-chat-completions", model_args={"model": "m", "base_url": server.url}, max_in_flight=args.in_flight
    )
    agent = Agent(max_rounds=ROUNDS)

    class AtOnce(AuxModel):
        """A model that answers without delay, to measure the loop's own work."""

        @property
        def behind_api(self) -> bool:
            return False

        def answer(self, seat: Any, conversations: Sequence[Any], *_: Any) -> list[Reply]:
            return [Reply(reply(c[-1]["content"]), tokens_in=900, tokens_out=40) for c in conversations]

    def loop(model: Any) -> Coral:
        return Coral(agent, Agents.of(agent, model, model), search, pool=CORPORA)

    def starts(name: str, n: int) -> list[Start]:
        options = ("in 1841", "in 1872", "in 1905", "never")
        rows = [RagDoc(f"{name}{i}", f"{name} {i}: when was it built?", "en", choices=options) for i in range(n)]
        return [Start(doc, doc.query) for doc in rows]

    with tempfile.TemporaryDirectory() as folder:
        warm = loop(AuxModel(spec, cache=Store(Path(folder) / "warm.sqlite")))
        warm.run(starts("warm", 2))

        cache = Store(Path(folder) / "models.sqlite")
        before, start = server.calls(), time.perf_counter()
        outcomes = loop(AuxModel(spec, cache=cache)).run(starts("q", count))
        together, made = time.perf_counter() - start, server.calls() - before
        ideal = made * args.latency / args.in_flight

        before, start = server.calls(), time.perf_counter()
        again = loop(AuxModel(spec, cache=cache)).run(starts("q", count))
        cached, made_again = time.perf_counter() - start, server.calls() - before
        assert [o.trace().shown for o in again] == [o.trace().shown for o in outcomes]

        one = loop(AuxModel(spec, cache=Store(Path(folder) / "one.sqlite")))
        start = time.perf_counter()
        for each in starts("alone", alone):
            one.run([each])
        by_one = (time.perf_counter() - start) / alone

        # warm up: the first run compiles the templates
        quick = loop(AtOnce(spec))
        quick.run(starts("own", 4))
        start = time.process_time()
        quick.run(starts("own", count))
        own = (time.process_time() - start) / count
    server.close()

    print(f"{count} questions · {made} calls of {args.latency * 1000:.0f} ms · {args.in_flight} in flight")
    print(f"all together   {together:7.2f} s   {together / ideal:5.2f} × the ideal of {ideal:.2f} s")
    print(f"from the cache {cached:7.2f} s   {made_again} calls")
    print(f"one by one     {by_one * count:7.2f} s   {by_one * count / together:5.2f} × as long ({alone} measured)")
    print(f"the loop alone {own * 1000:7.2f} ms of CPU a question")
    write_rows(
        args.json,
        [
            row(
                f"agents' loop, {count} questions, {args.in_flight} calls in flight",
                "calls x latency / in flight",
                together / ideal,
                holds=made_again == 0,
                figures={
                    "together_s": together,
                    "ideal_s": ideal,
                    "one_by_one_s": by_one * count,
                    "cpu_ms": own * 1000,
                },
            )
        ],
    )


if __name__ == "__main__":
    main()
