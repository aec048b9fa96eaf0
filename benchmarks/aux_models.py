"""Compare the time of a panel of models over HTTP with the time that the server's latency alone would take.

    python benchmarks/aux_models.py [--conversations 300] [--quick]

A server in its own process answers every request after a fixed latency. Three models query it at once, each with the
same number of requests in flight; the ideal is ceil(conversations / in flight) latencies. The same run is then repeated
from the cache. For comparison, a bare aiohttp client that parses, counts and keeps nothing sends the same requests, in
alternation: its time beyond the ideal is due to the machine. Last, a panel checks as many claims of answers, with an
empty cache and replies that take a second, as those with a justification do: besides sending, it cuts answers, tells
languages, renders prompts, reads votes, counts them and keeps replies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import re
import statistics
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from latency_server import LatencyServer

os.environ["HF_HUB_OFFLINE"] = "1"

MODELS = 3
# Seconds of a judge's reply.
JUDGING = 1.0


def reply(prompt: str) -> str:
    """The reply of every judge, under the code of a request that shows one."""
    said: dict[str, object] = {"justification": "It says the same.", "answer": "correct"}
    for code in re.findall(r'"label_([0-9a-f]+)"', prompt):
        said |= {f"label_{code}": "supported", f"passage_{code}": 1}
    return json.dumps(said)


async def bare(url: str, bodies: list[str], in_flight: int) -> None:
    """Send every body to the server once per model, with as little code as possible."""
    import aiohttp

    async def slot(session: aiohttp.ClientSession, waiting: Iterator[str]) -> None:
        for body in waiting:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                json.loads(await answer.read())

    async def model() -> None:
        waiting = iter(bodies)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:
            await asyncio.gather(*(slot(session, waiting) for _ in range(in_flight)))

    await asyncio.gather(*(model() for _ in range(MODELS)))


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="64 conversations, once: does it still run?")
    parser.add_argument("--conversations", type=int, default=300)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    count, repeats = (64, 1) if args.quick else (args.conversations, args.repeats)
    logging.disable(logging.WARNING)

    server, judging = LatencyServer(args.latency, reply), LatencyServer(JUDGING, reply)

    from mrag_eval.config import GroundedByPanel, Judge, ModelSpec
    from mrag_eval.core import Hit, RagDoc, Scored
    from mrag_eval.judging import Panel, claims_judged
    from mrag_eval.models import AuxModel
    from mrag_eval.platform import Store, at_once

    block = Judge(grounded=GroundedByPanel())
    spec = ModelSpec(
        model="local-chat-completions", model_args={"model": "m", "base_url": server.url}, max_in_flight=args.in_flight
    )
    text = "Is the answer the same as the reference? " * 60
    taken: dict[str, list[float]] = {"cold": [], "again": [], "bare": [], "claims": []}

    def answers(count: int, repeat: int) -> list[Scored]:
        """Return answers of four claims each, beside five passages of 100 words."""
        claims = [f"The {n}th bridge of Varn was opened in {1800 + repeat} by the council." for n in range(count)]
        passages = tuple(Hit(f"p{n}", "en", f"{text[:600]} {n}", 1.0, n) for n in range(1, 6))
        groups = [claims[at : at + 4] for at in range(0, count, 4)]
        return [
            Scored(RagDoc(f"{n}", "When were they opened?", "en"), " ".join(group), passages=passages)
            for n, group in enumerate(groups)
        ]

    asked_again = 0
    with tempfile.TemporaryDirectory() as name:
        for repeat in range(repeats):
            conversations = [[{"role": "user", "content": f"{text} {repeat}/{i}"}] for i in range(count)]
            store = Store(Path(name) / f"{repeat}.sqlite")
            for kind in ("cold", "again"):
                models = [AuxModel(spec, cache=store) for _ in range(MODELS)]
                for model in models:
                    model.check()
                seats = {f"judge {i}": model.seat(f"judge {i}") for i, model in enumerate(models)}
                panel = {name: partial(seat.generate, conversations) for name, seat in seats.items()}
                if repeat == 0 and kind == "cold":
                    models[0].seat().generate([[{"role": "user", "content": "warm up"}]] * args.in_flight)
                before, start = server.calls(), time.perf_counter()
                replies = at_once(panel)
                taken[kind].append(time.perf_counter() - start)
                assert all(reply.error is None for seat in replies.values() for reply in seat)
                if kind == "again":
                    asked_again += server.calls() - before
            store.close()
            bodies = [json.dumps({"model": "m", "messages": turns}) for turns in conversations]
            start = time.perf_counter()
            asyncio.run(bare(server.url, bodies, args.in_flight))
            taken["bare"].append(time.perf_counter() - start)
            store = Store(Path(name) / f"claims-{repeat}.sqlite")
            asked = spec.model_copy(update={"model_args": {"model": "m", "base_url": judging.url}})
            judges = Panel({f"judge {i}": AuxModel(asked, cache=store) for i in range(MODELS)})
            judges.check()
            claims_judged(answers(4, repeat + 100), judges, block)
            start = time.perf_counter()
            checked, _ = claims_judged(answers(count, repeat), judges, block)
            taken["claims"].append(time.perf_counter() - start)
            found = [claim.verdict for one in checked if one.grounding is not None for claim in one.grounding.claims]
            assert found == ["supported"] * count
            store.close()
    server.close()
    judging.close()

    ideal = math.ceil(count / args.in_flight) * args.latency
    cold, again, least, claims = (statistics.median(taken[kind]) for kind in taken)
    print(
        f"cold   {MODELS} models x {count} conversations, {args.in_flight} in flight each, {args.latency:g} s latency: "
        f"{cold:.2f} s, ideal {ideal:.2f} s, ratio {cold / ideal:.3f} (worst {max(taken['cold']) / ideal:.3f})"
    )
    print(f"bare   the same from a client that only sends: {least:.2f} s, ratio to it {cold / least:.3f}")
    print(f"again  from the cache: {again:.2f} s, {asked_again} calls")
    least_claims = math.ceil(count / args.in_flight) * JUDGING
    ratio = claims / least_claims
    print(f"claims {MODELS} judges x {count} claims, {JUDGING:g} s latency: {claims:.2f} s, ratio {ratio:.3f}")
    write_rows(
        args.json,
        [
            row(
                f"{MODELS} judges x {count} conversations, {args.in_flight} in flight",
                "the latency alone",
                [one / ideal for one in taken["cold"]],
                holds=asked_again == 0,
                figures={"cold_s": cold, "ideal_s": ideal, "bare_s": least, "from_cache_s": again},
            ),
            row(
                f"{MODELS} judges x {count} claims, {args.in_flight} in flight",
                f"the latency alone, {JUDGING:g} s",
                [one / least_claims for one in taken["claims"]],
                at_most=1.08,
                judged=not args.quick,
                figures={"claims_s": claims, "ideal_s": least_claims},
            ),
        ],
    )


if __name__ == "__main__":
    main()
