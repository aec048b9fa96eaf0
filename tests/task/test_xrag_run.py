"""XRAG's committed tasks on hand-written rows: full-length articles in a short context, controls, breakdowns."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import lm_eval
import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.text import estimated_tokens
from tests.worlds.small import ScriptedLM
from tests.worlds.xrag import QUESTIONS, rows, translations, write, write_translations
from tests.worlds.xrag_articles import long_rows

TASKS = Path(__file__).resolve().parents[2] / "tasks"
TOKEN = re.compile(r"[a-zA-Z]{1,5}|[^\sa-zA-Z]")
SHOWN = re.compile(r"<text_(\d)>\n(.*?)\n</text_\1>", re.DOTALL)


def tokens(text: str) -> int:
    """Return about as many tokens as a subword tokenizer does."""
    return len(TOKEN.findall(text))


class Windowed(ScriptedLM):
    """A model with a context of ``max_length`` tokens, a chat template, and an answer for every question."""

    tokenizer_name = ""
    _tokenizer_chat_template = ""

    def __init__(self, max_length: int, answer: str = "<answer>Lindholm</answer>") -> None:
        super().__init__(lambda prompt: answer)
        self.max_length = max_length

    def tok_encode(self, text: str) -> list[str]:
        return TOKEN.findall(text)

    def chat_template(self, chat_template: Any = False) -> str:
        return ""

    def apply_chat_template(self, turns: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return "".join(f"[{turn['role']}]\n{turn['content']}\n" for turn in turns) + "[assistant]\n"


def run(folder: Path, task: str, lm: Any, *, chat: bool = True, length: int | None = None, **data: Any) -> Any:
    metadata: dict[str, Any] = {"data": {"path": str(folder), **data}} | ({"max_length": length} if length else {})
    manager = TaskManager(include_path=str(TASKS / "xrag"), include_defaults=False, metadata=metadata)
    return lm_eval.simple_evaluate(
        model=lm, tasks=[task], task_manager=manager, bootstrap_iters=100, apply_chat_template=chat
    )


@pytest.fixture(scope="module")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("long"), long_rows())


def test_rows_are_of_full_length() -> None:
    made = long_rows()
    assert len(made) == 24
    for item in made:
        assert len(item["articles"]) == 8
        assert sum(tokens(article) for article in item["articles"]) > 10_000
        assert sorted(tokens(article) for article in item["articles"])[1] > 1200


@pytest.mark.parametrize(
    ("task", "chat"),
    [("xrag_mono_de", True), ("xrag_multi_zh", True), ("xrag_multi_ar", True), ("xrag_multi_es", False)],
)
def test_articles_are_shortened_evenly_and_nothing_else(
    task: str, chat: bool, long_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    limit = 6_000
    lm = Windowed(limit)
    # without a chat template the model object is out of reach: its arguments give the length, and tokens are estimated
    length = tokens if chat else estimated_tokens
    results = run(long_folder, task, lm, chat=chat, length=None if chat else limit)
    samples = sorted(results["samples"][task], key=lambda sample: sample["doc_id"])
    assert len(samples) == 3
    for sample, prompt in zip(samples, lm.prompts, strict=True):
        text = str(prompt)
        whole = [passage["text"] for passage in sample["doc"]["passages"]]
        shown = [part for _, part in SHOWN.findall(text)]
        assert len(shown) == len(whole) == 8
        # the short article is whole; every other one is cut at the end, to the same length as the rest
        assert sum(part == original for part, original in zip(shown, whole, strict=True)) == 1
        assert all(original.startswith(part) for part, original in zip(shown, whole, strict=True))
        cut = [length(part) for part, original in zip(shown, whole, strict=True) if part != original]
        assert max(cut) - min(cut) < 0.05 * max(cut)
        # question, instructions, dates and the form of the answer are unchanged
        assert sample["doc"]["query"] in text
        assert "one or two sentences at the most" in text
        assert text.count("2024-07-") == 8
        assert text.index("<question>") < text.index("<articles>") < text.index("<answer>your answer</answer>")
        # the context is used, and 512 tokens are left for the answer
        assert limit - 512 - 200 < length(text) <= limit - 512
    assert any("3 prompts shortened to fit" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("task", ["xrag_mono_de", "xrag_multi_zh"])
def test_a_long_context_leaves_the_articles_alone(
    task: str, long_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    lm = Windowed(40_000)
    results = run(long_folder, task, lm)
    for sample, prompt in zip(results["samples"][task], lm.prompts, strict=True):
        assert all(passage["text"] in str(prompt) for passage in sample["doc"]["passages"])
    assert not any("shortened" in record.getMessage() for record in caplog.records)


def test_a_context_without_room_for_the_question_is_an_error(long_folder: Path) -> None:
    with pytest.raises(Exception, match="the question and the instructions alone exceed"):
        run(long_folder, "xrag_mono_de", Windowed(560))


# ------------------------------------------------------------ conditions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rows")
    write(made, rows())
    write_translations(made / "translations.jsonl", translations())
    return made


@pytest.mark.parametrize(
    ("task", "articles", "question"),
    [
        ("xrag_mono_es", 8, "es"),
        ("xrag_mono_en", 8, "en"),
        ("xrag_mono_oracle_es", 2, "es"),
        ("xrag_mono_norag_es", 0, "es"),
        ("xrag_multi_es", 8, "es"),
        ("xrag_multi_eq_es", 8, "en"),
        ("xrag_multi_eqes_es", 8, "en"),
        ("xrag_multi_eqesed_es", 8, "en"),
    ],
)
def test_each_condition_follows_the_paper(task: str, articles: int, question: str, folder: Path) -> None:
    lm = Windowed(40_000)
    results = run(folder, task, lm, translations=str(folder / "translations.jsonl"))
    samples = results["samples"][task]
    assert len(samples) == 12
    asked = QUESTIONS[question].split("{")[0]
    for sample, prompt in zip(samples, lm.prompts, strict=True):
        text = str(prompt)
        assert asked in text
        assert sample["doc"]["query_lang"] == question
        assert len(SHOWN.findall(text)) == articles
        assert ("from your own knowledge" in text) == (articles == 0)
        assert ("Translated." in text) == (task in ("xrag_multi_eqes_es", "xrag_multi_eqesed_es"))
        assert text.count("Translated.") == {"xrag_multi_eqes_es": 1, "xrag_multi_eqesed_es": 4}.get(task, 0)
        assert ("Los vecinos" in text) == (task in ("xrag_multi_es", "xrag_multi_eq_es", "xrag_multi_eqes_es"))
    by = results["configs"][task]["scores"]["metrics"]["f1"]["by"]
    assert {"q_type", "a_type", "crossdoc_type"} <= set(by)
    # every hand-written row has the same article_order: one place, no breakdown
    assert "gold_first" not in by
    places = [sample["rows"].get("gold_positions") for sample in samples]
    assert places == [{8: [4, 6], 2: [1, 2], 0: None}[articles]] * 12
