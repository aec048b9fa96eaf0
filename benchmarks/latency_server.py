"""A model server with a fixed latency in its own process, for benchmarks of its clients."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class LatencyServer:
    """Answers every chat completion after ``latency`` seconds with ``reply(last message)``.

    ``reply`` must be a module-level function, since the server is a spawned process. The server ends with the process
    that started it.
    """

    def __init__(self, latency: float, reply: Callable[[str], str]) -> None:
        context = multiprocessing.get_context("spawn")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(latency, reply, theirs), daemon=True)
        self._process.start()
        self.url = f"http://127.0.0.1:{self._ours.recv()}/v1/chat/completions"

    def calls(self) -> int:
        """Return the number of requests received."""
        self._ours.send("calls")
        return int(self._ours.recv())

    def close(self) -> None:
        """End the server."""
        self._ours.send(None)
        self._process.join(5)


def _serve(latency: float, reply: Callable[[str], str], report: Connection) -> None:
    from aiohttp import web

    calls = 0

    async def answer(request: Any) -> Any:
        nonlocal calls
        calls += 1
        body = await request.json()
        await asyncio.sleep(latency)
        message = {"role": "assistant", "content": reply(body["messages"][-1]["content"])}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return web.json_response({"choices": [choice], "usage": {"prompt_tokens": 900, "completion_tokens": 20}})

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=512)
        await site.start()
        report.send(runner.addresses[0][1])
        while await asyncio.to_thread(report.recv) is not None:
            report.send(calls)

    asyncio.run(main())
