"""Ten-language XQuAD paragraphs as a corpus, and a model that writes their questions in the requested language."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from mrag_eval.core import language_name

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
_SPACES = re.compile(r"\s+")


def verdict(**changes: str) -> str:
    checks = dict.fromkeys(("answerable", "faithful", "self_contained", "natural", "fits"), "yes") | changes
    return f"<verdict>{json.dumps({'justification': 'It is so.', **checks})}</verdict>"


def pair(question: str, answer: str) -> str:
    return f"<question>{question}</question>\n<answer>{answer}</answer>"


class Paragraphs:
    """``texts[lang][i]`` is paragraph i; ``questions[lang][i]`` are its questions with their first answers."""

    def __init__(self, folder: Path, n: int, languages: tuple[str, ...] = LANGUAGES) -> None:
        self.languages = languages
        self.texts: dict[str, list[str]] = {}
        self.questions: dict[str, list[list[tuple[str, str]]]] = {}
        for lang in languages:
            with gzip.open(folder / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as handle:
                articles = json.load(handle)["data"]
            paragraphs = [p for article in articles for p in article["paragraphs"]][:n]
            self.texts[lang] = [p["context"] for p in paragraphs]
            self.questions[lang] = [[(q["question"], q["answers"][0]["text"]) for q in p["qas"]] for p in paragraphs]
        self._bare = [(_SPACES.sub("", text), i) for lang in languages for i, text in enumerate(self.texts[lang])]

    def write(self, path: Path) -> Path:
        rows = [
            {"id": f"p{i:03d}", "lang": lang, "title": "", "text": text}
            for lang in self.languages
            for i, text in enumerate(self.texts[lang])
        ]
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    def paragraph(self, prompt: str) -> int:
        (text,) = re.findall(r"<document>\n(.*?)\n</document>", prompt, re.DOTALL)
        start = _SPACES.sub("", text)[:40]
        return next(i for whole, i in self._bare if start in whole)

    def writes(self, prompt: str) -> str:
        """Return one of the paragraph's questions, in the language that the profile names."""
        (wanted,) = re.findall(r"Question and answer are in (.+)\.", prompt)
        lang = next(code for code in self.languages if language_name(code) == wanted)
        listed = self.questions[lang][self.paragraph(prompt)]
        return pair(*listed[int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % len(listed)])

    def answers(self, prompt: str) -> str:
        """Writer and checker in one; the questions of every seventh paragraph need context to be understood."""
        if "<document>" not in prompt:
            return "I have nothing else to say."
        if "<question>" not in prompt:
            return self.writes(prompt)
        return verdict(self_contained="no") if self.paragraph(prompt) % 7 == 3 else verdict()


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
