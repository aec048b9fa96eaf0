"""A scripted server of embeddings on 127.0.0.1 that records what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, dict[str, str], Any]


class Endpoint:
    """A local server that answers each request as ``script`` says, by default with embeddings."""

    def __init__(self) -> None:
        self.script: list[Reply | Callable[[dict[str, Any]], Any]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.requests.append((self.path, dict(self.headers), payload))
                step = endpoint.script.pop(0) if endpoint.script else endpoint.embeddings
                status, headers, body = step if isinstance(step, tuple) else (200, {}, step(payload))
                content = json.dumps(body).encode()
                self.send_response(status)
                for key, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                return

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # clients that hang up are expected

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    @staticmethod
    def embeddings(payload: dict[str, Any]) -> Any:
        size = payload.get("dimensions", 4)
        items = [
            {"index": n, "embedding": [float(len(text)), *[1.0] * (size - 1)]}
            for n, text in enumerate(payload["input"])
        ]
        # not in order: the index field decides
        return {"data": items[::-1], "model": payload["model"]}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Run an endpoint until the block ends."""
    running = Endpoint()
    thread = threading.Thread(target=running.server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield running
    finally:
        running.server.shutdown()
        running.server.server_close()
        thread.join()
