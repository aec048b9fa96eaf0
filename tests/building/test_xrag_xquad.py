"""The whole pipeline on real text: XQuAD's paragraphs in ten languages as a dated corpus, up to a run of
``xrag_multi``.
"""

from __future__ import annotations

import datetime as dt
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.building import build_xrag
from mrag_eval.building.xrag._xrag import Built
from mrag_eval.building.xrag._xrag_settings import XragSettings
from tests.building.newsroom import Newsroom, between, write_corpus
from tests.building.scripted import ScriptedModel

TASKS = Path(__file__).resolve().parents[2] / "tasks"
LANGS = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
# Subjects whose paragraphs are news of one week; all others are older.
NEWS = 4
SUBJECTS, PARAGRAPHS = 10, 2
SENTENCES = {
    "German": "Was sagen die beiden Berichte über diese Zahlen und Namen: {names}?",
    "Spanish": "¿Qué dicen las dos noticias sobre estas cifras y estos nombres: {names}?",
    "Chinese": "这两篇报道对以下数字和名称分别是怎么说的,它们之间有什么关系:{names}?",
    "Arabic": "ماذا يقول التقريران عن هذه الأرقام والأسماء، وما العلاقة بينها: {names}؟",
}


def articles(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield paragraphs as articles: those of the first subjects within one week, the others half a year earlier."""
    for lang in LANGS:
        with gzip.open(folder / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as handle:
            subjects = json.load(handle)["data"]
        for number, subject in enumerate(subjects[:SUBJECTS]):
            for nth, paragraph in enumerate(subject["paragraphs"][:PARAGRAPHS]):
                day = dt.date(2025, 9, 1) if number < NEWS else dt.date(2025, 2, 1) + dt.timedelta(days=number)
                yield {
                    "title": f"Wikipedia on {subject['title'].replace('_', ' ')}, part {nth + 1}",
                    "maintext": paragraph["context"],
                    "date_publish": f"{day + dt.timedelta(days=nth)} 09:00:00",
                    "language": lang,
                    "url": f"https://{lang}.example/{number}/{nth}",
                }


def words(text: str, count: int) -> list[str]:
    """Return the longest different words of a text, in any script, in order of length."""
    found = dict.fromkeys(re.findall(r"[\u4e00-\u9fff]{2,6}|[^\W_]{2,20}", text))
    return sorted(found, key=lambda word: (-len(word), word))[:count]


class Reporter(Newsroom):
    """Plays every part on any text, by copying its longest words."""

    def entities(self, system: str, prompt: str) -> str:
        subject = between(prompt, "title").removeprefix("Wikipedia on ").rsplit(", part", 1)[0]
        return f"<entity>{subject}</entity><entity>Wikipedia</entity>"

    def topic(self, system: str, prompt: str) -> str:
        return "Both are from an encyclopaedia. <related>yes</related>"

    def summary(self, system: str, prompt: str) -> str:
        return f"<summary>{' '.join(reversed(words(between(prompt, 'article'), 12)))}</summary>"

    def simple_qa(self, system: str, prompt: str) -> str:
        found = words(between(prompt, "source_text"), 6)
        pairs = [f"<question>What about {a}?</question>\n<answer>{b}</answer>" for a, b in pairwise(found)]
        return "\n".join(pairs)

    def questions(self, system: str, prompt: str) -> str:
        first, second = (re.findall(r"answer: (.+)", between(prompt, f"{part}_pairs")) for part in ("first", "second"))
        kind = re.search(r"Write (\S+) questions", system)
        asked = f"In {kind[1] if kind else ''} terms, how does {first[0]} go with {second[0]} or {second[-1]}?"
        return f"<question>{asked}</question><pairs>A1, B{len(second)}</pairs>"

    def answer(self, system: str, prompt: str) -> str:
        found = re.findall(r"answer: (.+)", prompt)
        return f"<answer>{found[0]} and {found[-1]}</answer>"

    def holds(self, system: str, prompt: str) -> str:
        text, gold = between(prompt, "article"), between(prompt, "gold")
        both = [word in text for word in gold.split(" and ")]
        return f"<holds>{'sufficient' if all(both) else 'some' if any(both) else 'none'}</holds>"

    def translation(self, system: str, prompt: str) -> str:
        language = next(name for name in SENTENCES if f"into {name}" in system)
        names = ", ".join(words(between(prompt, "question"), 3))
        kind = len(between(prompt, "question"))
        question = SENTENCES[language].format(names=f"{kind}, {names[:24]}")
        return f"<question>{question}</question><answer>{between(prompt, 'answer')}</answer>"


@pytest.fixture(scope="module")
def built(test_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Built]:
    folder = tmp_path_factory.mktemp("xquad")
    source = write_corpus(folder / "news.jsonl", list(articles(test_data / "xquad")))
    settings = XragSettings.model_validate(
        {
            "title": "XQuAD as news",
            "settings": ["multi"],
            "articles": {"min_words": 40},
            "models": {"default": "reporter", "closed_book": "reporter"},
            "retriever": {"lead": 200},
            "events": {"k": 8, "per_event": 2},
        }
    )
    model = ScriptedModel(Reporter(), "reporter", whole=True)
    named: Any = lambda name: model  # noqa: E731
    return folder, build_xrag(source, folder / "out", settings, model_named=named, say=print)


@pytest.mark.slow
@pytest.mark.model
def test_ten_languages_of_real_text_become_a_set(built: tuple[Path, Built]) -> None:
    _, done = built
    assert done.output is not None
    rows = [json.loads(line) for line in done.output.read_text(encoding="utf-8").splitlines()]
    assert len(rows) >= 30
    counts = Counter(row["language"] for row in rows)
    assert set(counts) == {"de", "es", "zh", "ar"}
    reports = {report.name: report for report in done.reports}
    # five of the ten languages are requested
    assert reports["articles"].dropped["other language"] == 5 * SUBJECTS * PARAGRAPHS
    assert reports["pairs"].dropped["no related article"] > 0
    for row in rows:
        assert all(day >= "2025-09-01" for day in row["dates"][:2])
        assert all(day <= "2025-08-18" for day in row["dates"][2:])
        assert Counter(row["article_languages"]) == {"en": 4, row["language"]: 4}
    assert "# XQuAD as news" in done.datasheet.read_text()


@pytest.mark.slow
@pytest.mark.model
def test_xrag_multi_runs_on_it(built: tuple[Path, Built]) -> None:
    import lm_eval
    from lm_eval.tasks import TaskManager

    folder, done = built
    metadata = {"data": {"path": str(folder / "out")}}
    manager = TaskManager(include_path=str(TASKS / "xrag"), include_defaults=False, metadata=metadata)
    results = lm_eval.simple_evaluate(model="dummy", tasks=["xrag_multi"], task_manager=manager, bootstrap_iters=0)
    leaves = [f"xrag_multi_{lang}" for lang in ("de", "es", "zh", "ar")]
    shown = [sample for leaf in leaves for sample in results["samples"][leaf]]
    assert len(shown) == done.rows
    for sample in shown:
        passages = sample["doc"]["passages"]
        assert len(passages) == 8
        # the supporting articles do not come first
        assert not all(passage["is_gold"] for passage in passages[:2])
    assert {"char3gram_recall,none", "f1,none"} <= set(results["results"]["xrag_multi_de"])
