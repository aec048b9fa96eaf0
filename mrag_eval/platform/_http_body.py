"""Body of an HTTP response, decompressed while it is read, up to a bound, and decoded as its server says."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from mrag_eval.platform._http_faults import BROKEN_AGAIN, HttpFault

if TYPE_CHECKING:
    from aiohttp import ClientResponse

# Bytes of the longest answer, decompressed. A megabyte of gzip may hold a gigabyte.
LONGEST_ANSWER = 16 << 20
# The encodings that are asked for; the reader knows no others.
ENCODINGS = "gzip, deflate"
# Bytes of an error's text; the rest is not read.
_LONGEST_ERROR = 64 << 10
_BLOCK = 64 << 10


async def body_text(answer: ClientResponse, longest: int) -> str:
    """Return the text of an answer that its session has not decompressed.

    Raises HttpFault for more than ``longest`` bytes, for content that cannot be decompressed, and for bytes that are
    none of the encoding that is declared: UTF-8 without one that is known, as RFC 8259 asks of JSON. Of an error's text
    only the beginning is returned.
    """
    refused = not 200 <= answer.status < 300
    bound = _LONGEST_ERROR if refused else longest
    content = bytearray()
    unpack = _Unpacking(answer.headers.get("Content-Encoding", "").strip().lower())
    async for block in answer.content.iter_chunked(_BLOCK):
        content += unpack(block, bound + 1 - len(content))
        if len(content) > bound:
            answer.close()  # the rest must not be read
            if not refused:
                raise HttpFault("too_long", f"the answer is longer than {longest >> 20} MiB", again=0)
            break
    encoding = _encoding_of(answer.charset)
    try:
        return content[:bound].decode(encoding, "replace" if refused else "strict")
    except UnicodeError:
        raise HttpFault("malformed", f"the answer has bytes that are no {encoding}", again=BROKEN_AGAIN) from None


def _encoding_of(charset: str | None) -> str:
    """Return the encoding of text that a server declares; UTF-8 if it declares none, or one that is not known."""
    try:
        "".encode(charset or "utf-8")
    except (LookupError, UnicodeError):
        return "utf-8"
    return charset or "utf-8"


class _Unpacking:
    """Decompression block by block, of at most the bytes asked for."""

    def __init__(self, encoding: str) -> None:
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise HttpFault(
                "malformed", f"the answer is encoded as {encoding[:40]!r}, which was not asked for", again=0
            )
        self._packed = encoding not in ("", "identity")
        self._stream: zlib._Decompress | None = None

    def __call__(self, block: bytes, most: int) -> bytes:
        if not self._packed:
            return block
        if self._stream is None:
            # "deflate" is zlib's format by the standard, and the bare stream from some servers
            bare = block[0] & 0x0F != 8 and block[:1] != b"\x1f"
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS if bare else 32 + zlib.MAX_WBITS)
        try:
            return self._stream.decompress(block, most)
        except zlib.error:
            raise HttpFault("malformed", "the answer cannot be decompressed") from None
