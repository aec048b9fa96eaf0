"""A scripted model server on 127.0.0.1 that imitates the faults of real ones."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The server's response to a request. ``body``: a JSON value, or text sent unchanged."""

    status: int = 200
    body: Any = ""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    reset: bool = False


def said(text: Any, *, finish: str = "stop", usage: bool = True, **message: Any) -> Answer:
    """Return a valid chat completion."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text, **message}}
    counts = {"usage": {"prompt_tokens": 11, "completion_tokens": 7}} if usage else {}
    return Answer(body={"choices": [choice], **counts})


def asked(body: dict[str, Any]) -> str:
    """Return the last message of a chat request."""
    return str(body["messages"][-1]["content"])


def echo(body: dict[str, Any], attempt: int) -> Answer:
    """Return the last message again, so that a reply identifies its conversation."""
    return said(f"re: {asked(body)}")


# Maps the request's body and how often this exact body was sent (1: the first time) to a response.
Script = Callable[[dict[str, Any], int], Answer]


class ModelServer:
    """``requests`` holds (time, headers, body) of every request, ``sent`` its path and bytes; ``most_at_once`` is the
    highest concurrency seen.
    """

    def __init__(self, script: Script = echo) -> None:
        self.script = script
        self.requests: list[tuple[float, dict[str, str], dict[str, Any]]] = []
        self.sent: list[tuple[str, bytes]] = []
        self.most_at_once = 0
        self._seen: dict[str, int] = {}
        self._now = 0
        self._lock = threading.Lock()
        self._closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                outer._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that hang up are expected

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1/chat/completions"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers["Content-Length"]))
        text = raw.decode("utf-8")
        body = json.loads(text)
        with self._lock:
            self.requests.append((time.monotonic(), dict(handler.headers), body))
            self.sent.append((handler.path, raw))
            self._seen[text] = attempt = self._seen.get(text, 0) + 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            answer = self.script(body, attempt)
            self._closing.wait(answer.delay)
            data = answer.body.encode() if isinstance(answer.body, str) else json.dumps(answer.body).encode()
        finally:
            with self._lock:
                self._now -= 1
        handler.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(data) + (1000 if answer.reset else 0)))
        handler.end_headers()
        handler.wfile.write(data)
        if answer.reset:
            handler.wfile.flush()
            # closing with a lingering time of 0 sends a reset
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.close_connection = True
            handler.connection.close()

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=10)
