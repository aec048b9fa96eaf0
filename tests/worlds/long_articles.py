"""Articles of 1,300 words, and a server that translates them into English, cutting its replies as real ones do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from tests.worlds.model_server import Answer, said

# One sentence per language; {n} makes each unique.
_SENTENCES = {
    "de": "Der Stadtrat von Lindholm teilte am Montag mit, dass am alten Kanal {n} neue Bäume gepflanzt werden. ",
    "es": "El ayuntamiento de Lindholm anunció el lunes que se plantarán {n} árboles nuevos junto al antiguo canal. ",
    "zh": "林德霍尔姆市议会星期一表示，将在旧运河沿岸种植{n}棵新树，工程预计持续三个月。",
    "ar": "أعلن مجلس مدينة ليندهولم يوم الاثنين أنه سيتم زرع {n} شجرة جديدة على طول القناة القديمة. ",
    # a text without sentence ends
    "endless": "der Stadtrat von Lindholm teilte am Montag mit dass am alten Kanal {n} neue Bäume gepflanzt werden ",
}
_ENGLISH = "The town council of Lindholm said on Monday that {n} new trees will be planted along the old canal."
# Words in a sentence of the original; for Chinese as many as its translations have.
_WORDS, _ARTICLE = 15, 1300
_PARAGRAPH = 7

WRITTEN = tuple(_SENTENCES)


def language(written: str) -> str:
    """Return the language of an article."""
    return "de" if written == "endless" else written


def articles(written: str, number: int) -> Iterator[str]:
    """Yield articles of 1,300 words in paragraphs; no two sentences are the same."""
    numbers = count(1000)
    for _ in range(number):
        lines = [f"{_SENTENCES[written].format(n=next(numbers))}" for _ in range(_ARTICLE // _WORDS)]
        if written == "endless":
            yield "".join(lines).strip()
        else:
            groups = [lines[i : i + _PARAGRAPH] for i in range(0, len(lines), _PARAGRAPH)]
            yield "\n\n".join("".join(group).strip() for group in groups)


def outline(text: str) -> list[list[str]]:
    """Return the numbers of each line: equal for a text and its complete translation."""
    return [re.findall(r"\d+", line) for line in text.split("\n")]


def source_of(body: dict[str, Any]) -> str:
    """Return the text that a request asks to be translated."""
    found = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
    return str(found).removeprefix("<source_text>\n").removesuffix("\n</source_text>")


def english(text: str) -> str:
    """Return the translation of a text, line by line."""
    return "\n".join(" ".join(_ENGLISH.format(n=n) for n in found) for found in outline(text))


def cut_at(letters_per_token: float, reply: str, body: dict[str, Any]) -> Answer:
    """Return a reply that ends at the request's ``max_tokens``."""
    room = int(body["max_tokens"] * letters_per_token)
    found = said(reply) if len(reply) <= room else said(reply[:room], finish="length")
    return replace(found, delay=0.01)


def translating(letters_per_token: float) -> Callable[[dict[str, Any], int], Answer]:
    """Return the script of a server that translates, with a vocabulary of so many letters per token."""
    return lambda body, attempt: cut_at(
        letters_per_token, f"<translation>\n{english(source_of(body))}\n</translation>", body
    )
