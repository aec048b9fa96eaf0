"""Articles on made-up towns, and a model that plays every part of a build according to its prompts."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

TOWNS = ("Lindholm", "Varga", "Tarnow", "Miravel", "Kestrel", "Ostrava")
FIRST_DAY = dt.date(2024, 6, 1)
# Sentences in every language, so that a detector can identify it; {town} and {n} make an article unique.
BODY = {
    "en": "The council of {town} said on Monday that {n} trees will be planted along the old canal this autumn. "
    "Residents had asked for more shade since the summer, and the work is expected to take three months in all.",
    "de": "Der Stadtrat von {town} teilte am Montag mit, dass am alten Kanal {n} neue Bäume gepflanzt werden. "
    "Die Anwohner hatten seit dem Sommer um mehr Schatten gebeten, und die Arbeiten sollen drei Monate dauern.",
    "es": "El ayuntamiento de {town} anunció el lunes que se plantarán {n} árboles nuevos junto al antiguo canal. "
    "Los vecinos pedían más sombra desde el verano y se espera que las obras duren tres meses en total.",
    "zh": "{town}市议会星期一表示,将在旧运河沿岸种植{n}棵新树。自夏天以来,居民一直要求增加树荫,预计工程将持续三个月。",
    "ar": "أعلن مجلس مدينة {town} يوم الاثنين أنه سيتم زرع {n} شجرة جديدة على طول القناة القديمة. "
    "وكان السكان قد طالبوا بالمزيد من الظل منذ الصيف، ومن المتوقع أن تستغرق الأعمال ثلاثة أشهر.",
}
QUESTION = {
    "English": "{q}",
    "German": "Wie viele neue Bäume werden nach diesen beiden Berichten insgesamt gepflanzt ({q})?",
    "Spanish": "¿Cuántos árboles nuevos se plantarán en total según estas dos noticias ({q})?",
    "Chinese": "根据这两篇报道,一共将种植多少棵新的树木呢?({q})",
    "Arabic": "كم عدد الأشجار الجديدة التي ستزرع في المجموع حسب هذين التقريرين؟ ({q})",
}


def article(n: int, lang: str, town: str, day: int, **more: Any) -> dict[str, Any]:
    """Return article ``n`` in the layout of news-please, published ``day`` days after the first."""
    published = dt.datetime.combine(FIRST_DAY + dt.timedelta(days=day), dt.time(12, 30))
    return {
        "title": f"{town} and Halden plant {n} trees",
        "maintext": BODY[lang].format(town=town, n=n),
        "date_publish": str(published),
        "language": lang,
        "url": f"https://news.example/{lang}/{n}",
        "authors": [],
        "source_domain": "news.example",
        **more,
    }


def corpus(langs: tuple[str, ...] = ("en", "de", "es", "zh", "ar")) -> list[dict[str, Any]]:
    """Return ten articles per town and language: eight old ones, and two of one week a quarter of a year later."""
    out = []
    for lang in langs:
        for nth, town in enumerate(TOWNS):
            for turn in range(10):
                day = turn if turn < 8 else 90 + turn
                out.append(article(1000 * (1 + langs.index(lang)) + 100 * nth + turn, lang, town, day))
    return out


def write_corpus(path: Path, articles: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in articles), encoding="utf-8")
    return path


class TownEmbedder:
    """Vectors by the towns of a text and the last digit of its first number: close in any language."""

    name, revision, dim = "towns", "1", len(TOWNS) + 11

    def embed_queries(self, texts: Any) -> Any:
        rows = np.zeros((len(texts), self.dim), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[: len(TOWNS)] = [3.0 * (town in text) for town in TOWNS]
            digits = re.findall(r"\d+", text)
            row[len(TOWNS) + (int(digits[0][-1]) if digits else 10)] = 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_passages(self, texts: Any) -> Any:
        return self.embed_queries(texts)


def between(prompt: str, tag: str) -> str:
    found = re.search(rf"<{tag}>\n?(.*?)\n?</{tag}>", prompt, re.DOTALL)
    return found[1] if found else ""


def _towns(text: str) -> list[str]:
    return [town for town in TOWNS if town in text]


# Phrases that occur only in the instructions of one part.
_PARTS = {
    "entities": "named entities in headlines",
    "topic": "topically related",
    "summary": "summarise a news article",
    "simple_qa": "question-answer pairs in English on the facts",
    "questions": "questions that need both sets",
    "answer": "answer a question in English from two texts",
    "closed_book": "Answer the question below from what you know",
    "holds": "how much of what is needed",
    "translation": "translate a question and its answer",
    "judge": "You grade answers",
}


def part_of(conversation: Any) -> str:
    """Return the part that a conversation asks a model to play."""
    # an article may contain anything, but instructions come first
    (part,) = [name for name, words in _PARTS.items() if words in conversation[0]["content"][:200]]
    return part


class Newsroom:
    """Replies of a model in every part; ``knows`` lists questions (by a word in them) that it answers without
    documents.
    """

    def __init__(self, knows: str = "") -> None:
        self.knows = knows

    def __call__(self, conversation: Any) -> str:
        system = conversation[0]["content"]
        # the first match, since a correction quotes the faulty reply
        prompt = next(message["content"] for message in conversation if message["role"] == "user")
        return str(getattr(self, part_of(conversation))(system, prompt))

    def entities(self, system: str, prompt: str) -> str:
        return "".join(f"<entity>{name}</entity>" for name in (*_towns(prompt), "Halden"))

    def topic(self, system: str, prompt: str) -> str:
        both = set(_towns(between(prompt, "first_text"))) & set(_towns(between(prompt, "second_text")))
        return f"<related>{'yes' if both else 'no'}</related>"

    def summary(self, system: str, prompt: str) -> str:
        text = between(prompt, "article")
        count = re.findall(r"\d+", text)[0]
        return f"<summary>In {_towns(text)[0]}: {count} saplings, announced after requests for shade.</summary>"

    def simple_qa(self, system: str, prompt: str) -> str:
        town, count = _towns(prompt)[0], re.findall(r"\d+", prompt)[0]
        return f"<question>How many trees does {town} plant?</question>\n<answer>{count} trees</answer>"

    def questions(self, system: str, prompt: str) -> str:
        kind = re.search(r"Write (\S+) questions", system)
        counts = re.findall(r"answer: (\d+)", prompt)
        town = _towns(prompt)[0]
        asked = {
            "aggregation": f"How many trees are planted in {town} in all, {counts[0]} and {counts[1]} counted?",
            "comparison": f"Which of the two plans of {town} has more trees, that of {counts[0]} or of {counts[1]}?",
            "multi-hop": f"Who asked {town} for shade before {counts[0]} trees followed upon {counts[1]}?",
            "set": f"What are the figures of both plans in {town}, near {counts[0]} and near {counts[1]}?",
        }[kind[1] if kind else ""]
        return f"<question>{asked}</question>\n<pairs>A1, B1</pairs>"

    def answer(self, system: str, prompt: str) -> str:
        return f"<answer>{sum(map(int, re.findall(r'answer: ([0-9]+)', prompt)))} trees</answer>"

    def closed_book(self, system: str, prompt: str) -> str:
        return (
            "<answer>42</answer>"
            if self.knows and self.knows in between(prompt, "question")
            else "<answer>None</answer>"
        )

    def holds(self, system: str, prompt: str) -> str:
        numbers, asked = (set(re.findall(r"\d+", between(prompt, tag))) for tag in ("article", "question"))
        return f"<holds>{'some' if numbers & asked else 'none'}</holds>"

    def translation(self, system: str, prompt: str) -> str:
        language = next(name for name in QUESTION if f"into {name}" in system)
        english = between(prompt, "question")
        figures = re.findall(r"\d+", english)
        question = QUESTION[language].format(q=" / ".join((*_towns(english), *figures, str(len(english)))))
        return f"<question>{question}</question>\n<answer>{between(prompt, 'answer')}</answer>"

    def judge(self, system: str, prompt: str) -> str:
        return '{"justification": "it is", "answer": "correct"}'
