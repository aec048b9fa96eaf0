"""A model server with a fixed latency in its own process, for benchmarks of its clients."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import re
from collections.abc import Callable
from multiprocessing.connection import Connection

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class LatencyServer:
    """Answers every chat completion ``latency`` seconds after its arrival with ``reply(last message)``.

    It speaks as much HTTP as the clients that are measured: what it costs itself is time of the machine that they lack.
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


class _Answers(asyncio.Protocol):
    """One connection, whose requests give the length of their body."""

    calls = 0

    def __init__(self, latency: float, reply: Callable[[str], str]) -> None:
        self._latency, self._reply = latency, reply
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, rest = self._read.partition(b"\r\n\r\n")
            length = _LENGTH.search(head)
            assert length is not None, head
            size = int(length[1])
            if len(rest) < size:
                return
            self._read = rest[size:]
            _Answers.calls += 1
            asyncio.get_running_loop().call_later(self._latency, self._transport.write, self._answer(rest[:size]))

    def _answer(self, body: bytes) -> bytes:
        message = {"role": "assistant", "content": self._reply(json.loads(body)["messages"][-1]["content"])}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        said = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 900, "completion_tokens": 20}}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(said)}\r\n\r\n"
        return head.encode() + said


def _serve(latency: float, reply: Callable[[str], str], report: Connection) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Answers(latency, reply), "127.0.0.1", 0, backlog=512)
        report.send(server.sockets[0].getsockname()[1])
        while await asyncio.to_thread(report.recv) is not None:
            report.send(_Answers.calls)

    asyncio.run(main())
