"""A stand-in for the Hugging Face hub on 127.0.0.1: dataset repositories made from folders, with commits and tags.

It speaks what huggingface_hub and datasets ask for: repositories, trees, files (also parts of them), new repositories,
branches, tags and commits, with files inside the commit or by LFS. ``serving()`` runs it within a test;
``python -m tests.worlds.hub_server FOLDER`` serves each ``FOLDER/ORG/NAME`` as the dataset ORG/NAME.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.worlds.hub_repos import NO_ENTRY, TOKEN, Fault, Repo, Repos, Stored

_REPO = r"(?P<repo>[\w.-]+/[\w.-]+)"
_API = rf"/api/datasets/{_REPO}"


class Hub(Repos):
    """A hub at ``url``; whoever sends :data:`TOKEN` may write everywhere, and read what is private.

    ``requests`` are (method, path) in order. ``refuse(method, path)`` may return the status of a fault instead of an
    answer. Files from ``lfs_from`` bytes on are uploaded by LFS, which huggingface_hub does where
    ``HF_HUB_DISABLE_XET=1``; by default all are sent within the commit.
    """

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.requests: list[tuple[str, str]] = []
        self.refuse: Callable[[str, str], int | None] = lambda method, path: None
        self._server = _server_of(self)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Hub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, repo: str, folder: Path, *, tag: str | None = None, private: bool = False) -> str:
        """Commit the files of a folder, which are read from there, as the whole content of ``main``."""
        there = self.repos.setdefault(repo, Repo(private))
        files = {path.relative_to(folder).as_posix(): Stored.of(path) for path in folder.rglob("*") if path.is_file()}
        sha = there.commit(files)
        if tag is not None:
            there.refs[tag] = sha
        return sha

    def files(self, repo: str, revision: str = "main") -> dict[str, bytes]:
        """Return the content of every file of a revision."""
        return {name: file.path.read_bytes() for name, file in self.revision(repo, revision, TOKEN)[1].items()}

    def environment(self, home: Path, *, token: str | None = TOKEN) -> dict[str, str]:
        """Return the environment of a process that uses this hub, with its cache in ``home``."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING_FACE_"))}
        env |= {"HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
        return env | ({} if token is None else {"HF_TOKEN": token})

    def inside(self, monkeypatch: Any, home: Path, *, token: str | None = TOKEN) -> None:
        """Let this process use this hub until ``monkeypatch`` is undone; its own settings were read at import."""
        from huggingface_hub import constants

        monkeypatch.setattr(constants, "ENDPOINT", self.url)
        template = f"{self.url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(home / "token"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        if token is not None:
            monkeypatch.setenv("HF_TOKEN", token)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        self._answer()

    do_HEAD = do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.hub.requests.append((self.command, path))
        try:
            status = self.hub.refuse(self.command, path)
            if status is not None:
                raise Fault(status, "refused")
            self._dispatch(path, parse_qs(query), body)
        except Fault as fault:
            self._send(fault.status, json.dumps(fault.body).encode(), fault.headers)

    def _dispatch(self, path: str, query: Mapping[str, list[str]], body: bytes) -> None:
        hub, token = self.hub, (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        found = None

        def asked(pattern: str, method: str = "POST") -> bool:
            nonlocal found
            found = re.fullmatch(pattern, path) if self.command == method else None
            return found is not None

        def part(name: str) -> str:
            assert found is not None
            return unquote(found[name] or "")

        if token not in (None, TOKEN):
            raise Fault(401, "Invalid credentials in Authorization header")
        if self.command in ("GET", "HEAD"):
            if asked(rf"/datasets/{_REPO}/resolve/(?P<rev>[^/]+)/(?P<file>.+)", self.command):
                return self._file(*hub.revision(part("repo"), part("rev"), token), part("file"))
            if asked(rf"{_API}(/revision/(?P<rev>[^/]+))?", "GET"):
                return self._json(hub.info(part("repo"), part("rev") or "main", token))
            if asked(rf"{_API}/tree/(?P<rev>[^/]+)(/(?P<folder>.+))?", "GET"):
                recursive = query.get("recursive", [""])[0].lower() in ("true", "1")
                return self._json(hub.tree(part("repo"), part("rev"), part("folder"), recursive, token))
            raise Fault(404, "Not Found")
        if asked(rf"{_API}/paths-info/(?P<rev>[^/]+)"):
            return self._json(hub.paths_info(part("repo"), part("rev"), _paths(body), token))
        if asked(r"/lfs/(?P<oid>\w+)", "PUT"):
            hub.store(body)  # such addresses are signed: they are asked without a token
            return self._json({})
        if token is None:
            raise Fault(401, "Invalid username or password.")
        if asked("/api/validate-yaml"):
            return self._json({"errors": [], "warnings": []})
        if asked("/api/repos/create"):
            return self._json(hub.create(json.loads(body)))
        if asked(rf"{_API}/(?P<kind>tag|branch)/(?P<ref>[^/]+)"):
            return self._json(hub.point(part("repo"), part("kind"), part("ref"), json.loads(body), token))
        if asked(rf"{_API}/preupload/(?P<rev>[^/]+)"):
            return self._json(hub.preupload(part("repo"), part("rev"), json.loads(body), token))
        if asked(rf"/datasets/{_REPO}\.git/info/lfs/objects/batch"):
            return self._json(hub.lfs_batch(json.loads(body)))
        if asked(rf"{_API}/commit/(?P<rev>[^/]+)"):
            lines = [json.loads(line) for line in body.splitlines()]
            return self._json(hub.take_commit(part("repo"), part("rev"), lines, token))
        raise Fault(404, "Not Found")

    def _file(self, sha: str, files: Mapping[str, Stored], name: str) -> None:
        if name not in files:
            raise Fault(404, "Entry not found", NO_ENTRY, sha)
        file, asked = files[name], re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        start = int(asked[1]) if asked else 0
        end = min(int(asked[2]) + 1, file.size) if asked and asked[2] else file.size
        self.send_response(206 if asked else 200)
        by_lfs = file.size >= self.hub.lfs_from
        headers = {"ETag": f'"{file.sha256 if by_lfs else file.oid}"', "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        headers |= {"Content-Length": str(end - start)}
        headers |= {"Content-Range": f"bytes {start}-{end - 1}/{file.size}"} if asked else {}
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        with file.path.open("rb") as content:
            content.seek(start)
            left = end - start
            while left and (block := content.read(min(left, 1 << 20))):
                self.wfile.write(block)
                left -= len(block)

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {})

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Type": "application/json", "Content-Length": str(len(content))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _paths(body: bytes) -> list[str]:
    """Return the paths of a request for their sizes, which is a form or JSON."""
    text = body.decode()
    paths = json.loads(text)["paths"] if text.startswith("{") else parse_qs(text).get("paths", [])
    return [paths] if isinstance(paths, str) else list(paths)


def _server_of(hub: Hub, port: int = 0) -> ThreadingHTTPServer:
    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # clients that hang up are expected

    return Server(("127.0.0.1", port), type("Handler", (_Handler,), {"hub": hub}))


@contextmanager
def serving() -> Iterator[Hub]:
    """Run an empty hub until the block ends."""
    with TemporaryDirectory(prefix="mrag-hub-") as home, Hub(Path(home)) as hub:
        yield hub


def main(folder: Path) -> None:
    """Serve the datasets below a folder until the process is ended."""
    with serving() as hub:
        for path in sorted(folder.glob("*/*")):
            if path.is_dir():
                name = path.relative_to(folder).as_posix()
                print(f"{name}@{hub.add(name, path)}")
        print(f"export HF_ENDPOINT={hub.url} HF_TOKEN={TOKEN}", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
