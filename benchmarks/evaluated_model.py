"""Compare the evaluated model's transport with a bare client that sends the same bodies and keeps nothing.

    python benchmarks/evaluated_model.py [--requests 960] [--quick]

A server in its own process answers every request after a fixed latency. The requests of a task go through
:func:`mrag_eval.models.answering`: the harness's class makes the bodies, the transport sends them, each reply is read,
counted and kept on disk. A bare aiohttp client sends the same bodies, in alternation. The run is then repeated from the
cache.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Iterator

from latency_server import LatencyServer

os.environ["HF_HUB_OFFLINE"] = "1"

# Times the bare client's time that is allowed.
BOUND = 1.03


def reply(_: str) -> str:
    """Return the reply to every request."""
    return "The lighthouse of Varn was built in 1841."


async def bare(url: str, bodies: list[bytes], in_flight: int) -> None:
    """Send every body, with as little code as possible."""
    import aiohttp

    waiting = iter(bodies)

    async def slot(session: aiohttp.ClientSession, waiting: Iterator[bytes]) -> None:
        for body in waiting:
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                json.loads(await answer.read())

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:
        await asyncio.gather(*(slot(session, waiting) for _ in range(in_flight)))


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="64 requests, once: does it still run?")
    parser.add_argument("--requests", type=int, default=960)
    parser.add_argument("--in-flight", type=int, default=32)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    count, repeats = (64, 1) if args.quick else (args.requests, args.repeats)
    logging.disable(logging.WARNING)
    server = LatencyServer(args.latency, reply)

    from mrag_eval.harness import Instance, model_class
    from mrag_eval.models import answering
    from mrag_eval.models._bodies import api_identity, bodies_of

    lm = model_class("local-chat-completions")(model="m", base_url=server.url, num_concurrent=args.in_flight)
    text = "When was the lighthouse of Varn built? " * 100

    def requests_of(repeat: int) -> list[Instance]:
        turns = ([{"role": "user", "content": f"{text} {repeat}/{i}"}] for i in range(count))
        wanted = {"until": [], "max_gen_toks": 64}
        return [
            Instance("generate_until", {"id": i}, (lm.apply_chat_template(each), dict(wanted)), i, ("task", i, 1))
            for i, each in enumerate(turns)
        ]

    taken: dict[str, list[float]] = {"ours": [], "bare": [], "again": []}
    asked_again = 0
    with tempfile.TemporaryDirectory() as name:
        os.environ["MRAG_CACHE"] = name
        with answering(lm, {"task"}):
            lm.generate_until(requests_of(-1)[: args.in_flight])
        for repeat in range(repeats):
            requests = requests_of(repeat)
            bodies = [body.content() for body in bodies_of(lm, api_identity(lm), lm.generate_until, requests)[0]]

            def ours(kind: str, requests: list[Instance] = requests) -> None:
                with answering(lm, {"task"}) as state:
                    start = time.perf_counter()
                    lm.generate_until(requests)
                    taken[kind].append(time.perf_counter() - start)
                assert not state.ledger.failures

            def theirs(bodies: list[bytes] = bodies) -> None:
                start = time.perf_counter()
                asyncio.run(bare(server.url, bodies, args.in_flight))
                taken["bare"].append(time.perf_counter() - start)

            # what runs second finds a warmer machine
            for turn in (lambda: ours("ours"), theirs)[:: 1 if repeat % 2 else -1]:
                turn()
            before = server.calls()
            ours("again")
            asked_again += server.calls() - before
    server.close()

    own, least, again = (statistics.median(taken[kind]) for kind in taken)
    ratios = [mine / other for mine, other in zip(taken["ours"], taken["bare"], strict=True)]
    print(
        f"ours   {count} requests, {args.in_flight} in flight, {args.latency:g} s latency: {own:.2f} s, "
        f"ratio to a bare client {statistics.median(ratios):.3f} (worst {max(ratios):.3f}), allowed {BOUND}"
    )
    print(f"bare   a client that only sends: {least:.2f} s")
    print(f"again  from the cache: {again:.2f} s, {asked_again} calls")
    write_rows(
        args.json,
        [
            row(
                f"{count} requests of the evaluated model, {args.in_flight} in flight",
                "a client that only sends",
                ratios,
                at_most=BOUND,
                judged=not args.quick,
                holds=asked_again == 0,
                figures={"ours_s": own, "bare_s": least, "from_cache_s": again},
            )
        ],
    )


if __name__ == "__main__":
    main()
