"""Small files and answers that hold gigabytes, and scores that are no numbers: bounded memory, errors of one line."""

from __future__ import annotations

import bz2
import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from mrag_eval.platform import Endpoint, Transport
from mrag_eval.report.page._write import _json
from mrag_eval.scoring import RowRecord, TaskScores

# Bytes of an answer in these tests, and of the bound.
HUGE, BOUND = 200 << 20, 1 << 20


def zeros(compress: zlib._Compress, size: int) -> bytes:
    """Return a compressed stream of ``size`` zeros."""
    block = b"0" * (1 << 20)
    return b"".join(compress.compress(block) for _ in range(size >> 20)) + compress.flush()


def packed(encoding: str, size: int) -> bytes:
    """Return zeros in a content encoding."""
    width = {"gzip": 31, "deflate": 15, "bare": -15}.get(encoding)
    return b"0" * size if width is None else zeros(zlib.compressobj(9, zlib.DEFLATED, width), size)


@pytest.fixture
def serve() -> Iterator[Callable[[bytes, str, int], str]]:
    """Start a server that gives every request this body in this encoding; return its address."""
    servers = []

    def start(body: bytes, encoding: str, status: int = 200, kind: str = "application/json") -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Type", kind)
                if encoding:
                    self.send_header("Content-Encoding", "deflate" if encoding == "bare" else encoding)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                pass  # the client hangs up

        server = Server(("127.0.0.1", 0), Handler)
        servers.append(server)
        Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_address[1]}/"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def transport(url: str, longest: int) -> Transport[str, str]:
    return Transport(
        Endpoint("e", url, {}),
        lambda text: {"text": text},
        lambda text, body: body,
        max_in_flight=1,
        timeout=60,
        retries=0,
        longest=longest,
    )


@pytest.mark.parametrize("encoding", ["", "identity", "gzip", "deflate", "bare"])
def test_an_answer_is_read_up_to_its_bound(serve: Callable[[bytes, str, int], str], encoding: str) -> None:
    ((_, fits),) = transport(serve(packed(encoding, BOUND), encoding, 200), BOUND).arriving(["q"])
    assert fits.answer == "0" * BOUND
    ((_, beyond),) = transport(serve(packed(encoding, BOUND + (1 << 20)), encoding, 200), BOUND).arriving(["q"])
    assert (beyond.answer, beyond.error) == (None, "too_long: the answer is longer than 1 MiB")


def test_an_answer_in_another_form_is_malformed(serve: Callable[[bytes, str, int], str]) -> None:
    ((_, unknown),) = transport(serve(b"x", "br", 200), BOUND).arriving(["q"])
    assert unknown.error == "malformed: the answer is encoded as 'br', which was not asked for"
    ((_, damaged),) = transport(serve(b"no gzip", "gzip", 200), BOUND).arriving(["q"])
    assert damaged.error == "malformed: the answer cannot be decompressed"


# The charset that a server declares, its encoding, and a text that this encoding writes in other bytes than UTF-8.
DECLARED = {
    "": ("utf-8", "日本 é"),
    "; charset=utf-8": ("utf-8", "日本 é"),
    "; charset=made-up": ("utf-8", "日本 é"),
    "; charset=hex": ("utf-8", "日本 é"),
    '; charset="ISO-8859-1"': ("latin-1", "für é"),
    "; charset=windows-1252": ("cp1252", "für “é”"),
    "; charset=GBK": ("gbk", "联通"),
    "; charset=shift_jis": ("shift_jis", "日本"),
    "; charset=utf-16": ("utf-16", "日本 é"),
    "; charset=koi8-r": ("koi8-r", "Варн"),
}


@pytest.mark.parametrize("declared", DECLARED)
def test_an_answer_is_decoded_as_declared_and_bytes_that_are_none_of_it_are_malformed(
    serve: Callable[..., str], declared: str
) -> None:
    encoding, text = DECLARED[declared]
    kind = f"application/json{declared}"
    ((_, read),) = transport(serve(text.encode(encoding), "", 200, kind), BOUND).arriving(["q"])
    assert (read.answer, read.error) == (text, None)
    if encoding not in ("latin-1", "koi8-r"):  # in which every byte is a letter
        ((_, damaged),) = transport(serve(text.encode(encoding) + b"\x81", "", 200, kind), BOUND).arriving(["q"])
        assert damaged.answer is None
        assert (damaged.error or "").startswith("malformed: the answer has bytes that are no ")
    ((_, refused),) = transport(serve(text.encode(encoding) + b"\x81", "", 400, kind), BOUND).arriving(["q"])
    assert (refused.error or "").startswith("rejected: HTTP 400, " + text)


def test_of_an_error_only_the_beginning_is_read(serve: Callable[[bytes, str, int], str]) -> None:
    ((_, refused),) = transport(serve(packed("gzip", HUGE), "gzip", 400), BOUND).arriving(["q"])
    assert refused.status == 400
    assert refused.error == f"rejected: HTTP 400, {'0' * 300}"


# Reads places, each in its own way, with 600 MB of memory beyond the imported modules; prints every error.
LIMITED = """
import resource, sys
from pathlib import Path
import aiohttp
from mrag_eval.platform import Endpoint, MragError, Transport
from mrag_eval.datasets._files import iter_csv, iter_jsonl, read_json
from mrag_eval.retrieval import read_run
from mrag_eval.retrievers import read_corpus
from mrag_eval.retrievers.corpora._kilt import read_kilt
from mrag_eval.retrievers.corpora._wiki_pages import read_pages

def answer(url):
    transport = Transport(Endpoint("e", str(url), {}), lambda text: {"text": text}, lambda text, body: body,
                          max_in_flight=1, timeout=60, retries=0)
    raise MragError(next(transport.arriving(["q"]))[1].error)

READERS = {
    "questions": iter_jsonl,
    "documents": read_corpus,
    "json": read_json,
    "csv": lambda path: iter_csv(path, ("a",)),
    "kilt": read_kilt,
    "run": read_run,
    "wiki": lambda path: read_pages(path, "enwiki"),
    "http": answer,
}
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (600 << 20),) * 2)
for argument in sys.argv[1:]:
    kind, _, place = argument.partition("=")
    try:
        list(READERS[kind](place if kind == "http" else Path(place)))
    except MragError as error:
        print(kind, error.message)
"""
WHOLE = 700  # MB


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="bounds the address space")
def test_small_files_and_answers_that_hold_gigabytes(tmp_path: Path, serve: Callable[[bytes, str, int], str]) -> None:
    line = tmp_path / "line.jsonl.gz"
    line.write_bytes(zeros(zlib.compressobj(6, zlib.DEFLATED, 31), WHOLE << 20))
    dump = tmp_path / "enwiki-1-pages-articles.xml.bz2"
    with bz2.open(dump, "wb", compresslevel=1) as file:
        file.write(b"<mediawiki><page><title>T</title><revision><text>")
        file.writelines(b"0" * (1 << 20) for _ in range(100))
    assert max(line.stat().st_size, dump.stat().st_size) < 1 << 20
    url = serve(packed("gzip", WHOLE << 20), "gzip", 200)
    by_line = ("questions", "documents", "csv", "kilt", "run")
    places = [*(f"{kind}={line}" for kind in (*by_line, "json")), f"wiki={dump}", f"http={url}"]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *places], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        *(f"{kind} {line}, line 1: longer than 64 MiB" for kind in by_line),
        f"json {line}: holds more than 256 MiB",
        f"wiki {dump}: a page after 'none' is longer than 64 MiB",
        "http too_long: the answer is longer than 16 MiB",
    ]


# ------------------------------------------------------------------------------------------------- no finite number


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e308", "1" + "0" * 400])
def test_a_score_that_is_no_number_is_missing_with_a_reason(value: str) -> None:
    record = RowRecord.from_dict(json.loads(f'{{"row": "1", "cell": {{}}, "values": {{"a": {value}, "b": 1.0}}}}'))
    large = value.startswith("1")
    reason = f"the score is {'too large to be one' if large else f'{float(value)}, which is not a finite number'}"
    assert (dict(record.values), dict(record.unscored)) == ({"b": 1.0}, {"a": reason})
    rows = '"rows": 1'
    scores = json.loads(f'{{"metrics": {{"a": {{"value": {value}, "low": {value}, "high": 1.0, "n": 1}}}}, {rows}}}')
    found = TaskScores.from_dict(scores).metrics["a"]
    assert (found.value, found.low, found.high, found.reason) == (None, None, 1.0, reason)


def test_no_page_holds_what_a_browser_cannot_read() -> None:
    """A browser that meets NaN in the page's data shows none of it."""
    assert (
        _json({"samples": [{"score": float("nan")}], "n": (1, float("inf"))})
        == '{"samples":[{"score":null}],"n":[1,null]}'
    )
