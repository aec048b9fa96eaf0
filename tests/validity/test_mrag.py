"""Tables 1, 4 to 7 and 9 of RAG in multilingual settings from planted replies, through the stock command.

Ten questions in English, French, Korean and Russian about ten bridges, of which six and four, and three, are those of
XOR-TyDi QA and TyDi QA. Every reply is planted: right; or long, in the question's language or in English; or of one
character. Only long replies count towards the rate of the language, and no 3-gram of an answer is in a wrong one.

Every passage names its language, and one of each language has the words of every question, so that each search finds
something and a prompt shows what was searched. English pages name their town in Korean and Russian as well, if it is
among the first four and seven.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.metrics import char_ngram_recall
from mrag_eval.retrievers import build_index, read_corpus
from tests.programs import Programs
from tests.retrievers.wiki_files import article, write_copy, write_kilt
from tests.validity.everywhere import check_everywhere
from tests.worlds.mkqa import BRIDGES, LANGS, WHEN, WHO, answer, page_id, pages, question, write_all, write_jsonl
from tests.worlds.model_server import Answer, ModelServer, asked, said

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class N:
    """Numbers of ten replies: right ones, then long ones in the question's language and in English."""

    right: int
    own: int = 0
    english: int = 0

    @property
    def recall(self) -> float:
        return 10.0 * self.right

    @property
    def language(self) -> float | None:
        """Return the rate of the correct language over the long replies, as printed."""
        return round(100 * self.own / (self.own + self.english), 1) if self.own + self.english else None


# System prompt -> what is searched (the middle of the task's name) -> the replies in each language.
PLANTED: Mapping[str, Mapping[str, Mapping[str, N]]] = {
    "short_in_ul_ul": {
        "norag": {"en": N(1), "fr": N(2, 6, 2), "ko": N(3, 3, 1), "ru": N(1, 0, 5)},
        "en_only": {"en": N(2), "fr": N(7, 2, 1), "ko": N(4, 5, 1), "ru": N(2, 3, 5)},
        "qlang": {"fr": N(5, 4, 0), "ko": N(1, 7, 2), "ru": N(3, 2, 2)},
        "qlang_plus_en": {"fr": N(9), "ko": N(2), "ru": N(0)},
        "": {"en": N(3), "fr": N(0), "ko": N(8), "ru": N(10)},
        "oracle": {"en": N(9)},
    },
    "short_in_ul_ne_ul": {
        "norag": {"fr": N(2, 5, 3), "ko": N(1, 8, 1), "ru": N(3, 1, 2)},
        "en_only": {"fr": N(7, 3, 0), "ko": N(6, 1, 1), "ru": N(5, 4, 1)},
        "qlang": {"fr": N(8, 0, 2), "ko": N(5, 3, 2), "ru": N(4, 5, 1)},
        "oracle": {"fr": N(10), "ko": N(9), "ru": N(8)},
    },
    "short_en": {
        "norag": {"fr": N(1, 1, 8), "ko": N(0, 2, 8), "ru": N(2, 2, 4)},
        "en_only": {"fr": N(6, 1, 3), "ko": N(3, 0, 7), "ru": N(1, 4, 5)},
        "qlang": {"fr": N(4, 5, 1), "ko": N(2, 6, 2), "ru": N(5, 2, 1)},
    },
    "short_in_ul_en": {
        "norag": {"fr": N(3, 4, 3), "ko": N(2, 7, 1), "ru": N(0, 9, 1)},
        "en_only": {"fr": N(8, 1, 1), "ko": N(5, 2, 3), "ru": N(4, 3, 1)},
        "qlang": {"fr": N(6, 4, 0), "ko": N(3, 5, 2), "ru": N(7, 1, 2)},
    },
    "short_ul": {
        "norag": {"fr": N(4, 5, 1), "ko": N(1, 6, 3), "ru": N(1, 4, 3)},
        "en_only": {"fr": N(9, 1, 0), "ko": N(2, 3, 4), "ru": N(6, 2, 2)},
        "qlang": {"fr": N(7, 1, 1), "ko": N(4, 3, 3), "ru": N(2, 6, 1)},
    },
    "short_same_language_en": {
        "norag": {"fr": N(0, 6, 3), "ko": N(4, 3, 3), "ru": N(5, 0, 3)},
        "en_only": {"fr": N(3, 6, 1), "ko": N(1, 5, 4), "ru": N(7, 2, 1)},
        "qlang": {"fr": N(2, 7, 1), "ko": N(6, 3, 1), "ru": N(8, 1, 1)},
    },
}
# Searches with the translated question, with the prompt of Table 7: dense in the paper, and sparse.
TRANSLATED: Mapping[str, Mapping[str, N]] = {
    "trag": {"fr": N(4), "ko": N(7), "ru": N(3)},
    "sparse_trag": {"en": N(8), "fr": N(5), "ko": N(2), "ru": N(6)},
}
# Questions of ten that are translated well; the others keep only the name of another town.
WELL_TRANSLATED = {"fr": 9, "ko": 8, "ru": 6}
# Towns that English pages name in other scripts.
NAMED = {"ko": 4, "ru": 7}
SENTENCES = {
    "fr": "Je ne sais pas du tout quelle est la bonne réponse.",
    "ko": "안타깝게도 저는 이 질문에 대한 정확한 답을 알지 못합니다.",
    "ru": "К сожалению, я не знаю точного ответа на этот вопрос.",
    "en": "Unfortunately we do not know the exact answer to this question.",
}
WRONG = "0"
YES_AND_NO = {"그 다리는 돌다리인가요?": "예", "Это деревянный мост?": "нет"}
SPOKEN = ("en", "fr", "ko", "ru")
KNOWN = {question(n, code): (n, code) for code in SPOKEN for n in range(10)}
# Languages that are searched, as the tasks name them; the last one is all.
SETTINGS = ("norag", "en_only", "qlang", "qlang_plus_en", "")
COLUMNS = dict(zip(("No retrieval", "English", "UL", "English + UL", "All"), SETTINGS, strict=True))
RETRIEVAL = {"Retrieval in English": "en_only", "Retrieval in UL": "qlang", "No retrieval": "norag"}
XOR = ("ko", "ru")
PROMPTS = {
    ("5", "Reply short (EN)"): "short_en",
    ("5", "Reply short in UL (EN)"): "short_in_ul_en",
    ("5", "Reply short (UL)"): "short_ul",
    ("5", "Reply short in UL (UL)"): "short_in_ul_ul",
    ("9", "Reply short in same lang (EN)"): "short_same_language_en",
    ("9", "Reply short in UL (EN)"): "short_in_ul_en",
    ("9", "Reply short in UL (UL)"): "short_in_ul_ul",
    ("9", "Reply short in UL + NE in UL (UL)"): "short_in_ul_ne_ul",
}


def shelf() -> list[dict[str, Any]]:
    """Return the passages: pages of two paragraphs, and one of each language with the words of all questions."""
    asks = " ".join(texts[code].format(town="") for code in SPOKEN for texts in (WHO, WHEN))
    found = [*pages(), *({"id": "900", "lang": code, "title": "Words", "text": asks} for code in LANGS)]
    towns = {
        page_id(n): [towns[LANGS.index(code)] for code in NAMED if n < NAMED[code]]
        for n, (towns, *_) in enumerate(BRIDGES)
    }
    for page in found:
        page["title"] += f", shelf {page['lang']}"
        if page["lang"] == "en" and page["id"] in towns:
            page["text"] = " ".join([*towns[page["id"]], page["text"]])
    return found


def searched(prompt: str, code: str) -> str:
    """Return what was searched for a question in the language ``code``: the middle of the task's name."""
    shelves = set(re.findall(r"shelf (\w\w)", prompt))
    if not shelves:
        return "oracle" if "Document 1" in prompt else "norag"
    if len(shelves) > 2:
        return ""
    return {(code,): "qlang", ("en",): "en_only"}.get(tuple(shelves), "qlang_plus_en")


class Planted:
    """The script of the server: the replies of the run that is under way."""

    def __init__(self) -> None:
        self.replies: Mapping[str, Mapping[str, N]] = {}

    def __call__(self, body: dict[str, Any], _: int) -> Answer:
        prompt = asked(body)
        asks = prompt.rpartition("Question: ")[2].strip()
        if asks in YES_AND_NO:
            return said(YES_AND_NO[asks] if "shelf" in prompt else WRONG)
        number, code = KNOWN[asks]
        (only, *several) = self.replies
        counts = self.replies[searched(prompt, code) if several else only][code]
        long = [SENTENCES[code]] * counts.own + [SENTENCES["en"]] * counts.english
        replies = [*(answer(n, code) for n in range(counts.right)), *long, *[WRONG] * 10]
        return said(replies[number])


@dataclass(frozen=True)
class Runs:
    """The lines of the printed tables, and the folder of the run with the prompt of Table 1."""

    lines: list[dict[str, str]]
    out: Path

    def ours(self, table: str, condition: str) -> dict[str, float]:
        """Return our figures of a condition: column -> the figure as printed."""
        return {
            line["column"]: float(line["value"])
            for line in self.lines
            if line["table"] == table and line["row"].startswith(f"{condition} / ")
            # the retriever is not the paper's, which the row says; runs with another prompt are shown beneath
            if line["from"].startswith(("this run", "run otherwise")) and "prompt.system" not in line["differs"]
            if line["value"]
        }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Iterator[Runs]:
    folder = write_all(tmp_path_factory.mktemp("mrag"))
    write_jsonl(folder / "pages.jsonl", shelf())
    build_index(read_corpus(folder / "pages.jsonl"), folder / "index", kind="bm25", chunker="paragraphs")
    # a bad translation names the next town alone
    translations = [
        {"source": question(n, code), "source_lang": code, "target_lang": "en"}
        | {"target": question(n, "en") if n < well else BRIDGES[(n + 1) % 10][0][0]}
        for code, well in WELL_TRANSLATED.items()
        for n in range(10)
    ]
    table = write_jsonl(folder / "translations.jsonl", translations)
    planted = Planted()
    server = ModelServer(planted)
    env = {**os.environ, "MRAG_CACHE": str(folder / "cache"), "OPENAI_API_KEY": "none"}

    def command(*words: str) -> str:
        done = subprocess.run([programs / "mrag-eval", *words], capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def evaluate(
        replies: Mapping[str, Mapping[str, N]], system: str, tasks: list[str], data: Mapping[str, str], **retrieval: Any
    ) -> None:
        planted.replies = replies
        # the planted model replies otherwise to the same prompt, where a reply would be kept
        for kept in (folder / "cache").glob("models.sqlite*"):
            kept.unlink()
        blocks = {
            "data": {"path": str(folder), **data},
            "retrieval": {"corpus": str(folder / "index"), "rerank": None, **retrieval},
            "prompt": {"system": system, "max_tokens": 100_000},
        }
        command(
            *("run", "--model", "local-chat-completions", "--model_args", f"model=planted,base_url={server.url}"),
            *("--apply_chat_template", "--tasks", ",".join(tasks), "--metadata", json.dumps(blocks)),
            *("--log_samples", "--output_path", str(folder / "out" / system)),
        )

    def mkqa(replies: Mapping[str, Mapping[str, N]], system: str, **retrieval: Any) -> None:
        tasks = ["_".join(filter(None, ("mkqa", setting, code))) for setting in replies for code in replies[setting]]
        evaluate(replies, system, tasks, {"kilt": str(folder), "paragraphs": str(folder)}, **retrieval)

    try:
        for system, replies in PLANTED.items():
            mkqa(replies, system)
        translator = {"backend": "table", "path": str(table), "strict": True}
        for setting, counts in TRANSLATED.items():
            mkqa({setting: counts}, "short_in_ul_ne_ul", kind="bm25", translator=translator)
        tydi = [f"{name}_{code}" for code in XOR for name in ("xor_tydi", *(f"xor_tydi_{s}" for s in SETTINGS[:-1]))]
        tydi += ["tydi_en", "tydi_norag_en", "tydi_en_only_en"]
        evaluate(PLANTED["short_in_ul_ul"], "short_in_ul_ul", tydi, {})
        printed = command("report", str(folder / "out"), "--layout", "mrag", "--format", "csv")
        yield Runs(list(csv.DictReader(io.StringIO(printed))), folder / "out" / "short_in_ul_ul")
    finally:
        server.close()


def test_no_wrong_reply_has_a_3_gram_of_an_answer() -> None:
    for wrong in (*SENTENCES.values(), WRONG):
        assert not any(char_ngram_recall(wrong, [answer(n, code)]) for code in SPOKEN for n in range(10))


@pytest.mark.parametrize(("name", "code"), [("English", "en"), ("French", "fr"), ("Korean", "ko"), ("Russian", "ru")])
def test_table_1(runs: Runs, name: str, code: str) -> None:
    """n right replies of ten have all 3-grams of their answers, the others none: n x 10."""
    planted = PLANTED["short_in_ul_ul"]
    cells = {column: 10.0 * planted[s][code].right for column, s in COLUMNS.items() if code in planted[s]}
    assert runs.ours("1 (MKQA)", name) == cells


def test_table_1_xor_tydi(runs: Runs) -> None:
    """Korean has the first five bridges and a yes, Russian three and a no; yes and no are right with passages.

    Korean: 3 of 6; (4 + 1) of 6; (1 + 1) of 6; (2 + 1) of 6; (5 + 1) of 6, as eight are right of ten.
    Russian: 1 of 4; (2 + 1) of 4; (3 + 1) of 4; (0 + 1) of 4; (3 + 1) of 4.
    """
    for name, cells in {"Korean": (50, 83.3, 33.3, 50, 100), "Russian": (25, 75, 100, 25, 100)}.items():
        assert runs.ours("1 (XOR-TyDi QA)", name) == dict(zip(COLUMNS, cells, strict=True))


def test_table_1_tydi(runs: Runs) -> None:
    """English has the first three bridges: 1, 2 and 3 of 3."""
    assert runs.ours("1 (TyDi QA)", "English") == {"No retrieval": 33.3, "English": 66.7, "All": 100}


def test_table_3() -> None:
    """Of sof ofy fya kov ova val ale lev evs vsk ska kay aya, the reply holds all but ofy fya kay aya: 9 of 13."""
    assert char_ngram_recall("sofia kovalevskaia", ["sofya kovalevskaya"]) == pytest.approx(9 / 13)


def test_table_4(runs: Runs) -> None:
    """TyDi QA asks "who designed the Tarvel bridge", "what year did the Kesmar bridge open" and "who designed the
    Vilkory bridge", of 30, 36 and 31 characters; "Odile Brandt", "1907" and "Mara Solis" have 12, 4 and 10.
    """
    lines = [line for line in runs.lines if line["table"] == "4 (TyDi QA)"]
    found = [line for line in lines if line["from"].startswith(("this run", "run otherwise"))]
    assert {line["column"]: line["value"] for line in found} == {
        "examples": "3",
        "len ques.": "31.0",
        "len answ.": "10.0",
    }


def test_table_4_passages(runs: Runs, programs: Programs, tmp_path: Path) -> None:
    """KILT, in passages of 100 words behind their title: "A. A bb ccc" has 11 characters and "Bé. Bé d" 8; "C" and 100
    words of one letter make "C. C w ... w", 3 + 1 + 99 x 2 = 202, and "C. w", 4. The median of 4, 8, 11, 202 is 9.5.

    Chinese, in passages of 100 characters: "晨. 早安" has 5; 150 characters make 3 + 100 and 3 + 50. The median is 53.
    The copy of another dump is no "this run" of the paper's.
    """
    page = {"wikipedia_id": "1", "wikipedia_title": "A", "text": ["A\n", "bb ccc\n"]}
    more = [("2", "Bé", "d"), ("3", "C", "w " * 100)]
    lines = [page, *({"wikipedia_id": n, "wikipedia_title": title, "text": [title, text]} for n, title, text in more)]
    write_kilt(tmp_path, lines)
    articles = [article(1, "晨", "早安"), article(2, "晨", "日" * 150)]
    for date in ("20231101", "20251020"):
        write_copy(tmp_path / "hub", f"{date}.zh", articles)
    env = {**os.environ, "MRAG_CACHE": str(tmp_path / "cache")}

    def command(*words: str | Path) -> str:
        line = [programs / "mrag-eval", *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    made, out = tmp_path / "cache" / "corpora", tmp_path / "out"
    shutil.copytree(runs.out, out)
    command("corpus", "kilt", "--from", tmp_path, "--name", "both", "--kind", "bm25")
    for name, add, dump in (("both", ["--add"], "20231101"), ("late", [], "20251020")):
        words = ["corpus", "wikipedia", "--from", tmp_path / "hub", "--dump", dump, "--langs", "zh", "--name", name]
        command(*words, "--kind", "bm25", *add)
        shown = command("index", "info", made / name, "--lengths", "-o", out)
        assert ("en 9.5, zh 53 (median" if name == "both" else "lengths     zh 53 (median") in shown
    found = command("report", out, "--layout", "mrag", "--format", "csv")
    rows = [row for row in csv.DictReader(io.StringIO(found)) if row["table"] == "4 (Wikipedia)"]
    keys = ("row", "from", "differs", "value", "n")
    assert [tuple(row[key] for key in keys) for row in rows if row["from"].startswith("index")] == [
        ("English", "index 'both'", "", "10", "4"),
        ("Chinese", "index 'both'", "", "53", "3"),
        ("Chinese", "index 'late'", "corpus=Wikipedia 20251020, not Wikipedia 20231101", "53", "3"),
    ]
    (kept,) = [row["value"] for row in rows if row["row"] == "English" and row["from"].startswith("paper")]
    assert kept == "624"


def by_language(planted: Mapping[str, N]) -> dict[str, float]:
    """Return the cells of a row in Tables 5, 6 and 9: own / (own + English) long replies, and right replies x 10."""
    rates = {f"CLR {code}": planted[code].language for code in ("ko", "fr", "ru")}
    recalls = {f"recall {code}": planted[code].recall for code in ("ko", "fr", "ru")}
    return {column: value for column, value in {**rates, **recalls}.items() if value is not None}


@pytest.mark.parametrize("retrieval", RETRIEVAL)
@pytest.mark.parametrize(("table", "prompt"), PROMPTS)
def test_tables_5_and_9(runs: Runs, table: str, prompt: str, retrieval: str) -> None:
    """By prompt and passages, e.g. no passages and "Reply short in UL (UL)", French: 6 of 6 + 2 long replies, 75.0."""
    planted = PLANTED[PROMPTS[table, prompt]][RETRIEVAL[retrieval]]
    assert runs.ours(table, f"{retrieval}, {prompt}") == by_language(planted)


@pytest.mark.parametrize("retrieval", RETRIEVAL)
def test_table_6(runs: Runs, retrieval: str) -> None:
    """The prompt of Table 7; in English, which has no other passages than its own, that of Table 1: 1 and 2 of 10."""
    english = {"No retrieval": {"recall en": 10}, "Retrieval in English": {"recall en": 20}}.get(retrieval, {})
    planted = PLANTED["short_in_ul_ne_ul"][RETRIEVAL[retrieval]]
    assert runs.ours("6", retrieval) == {**by_language(planted), **english}


def test_table_7(runs: Runs) -> None:
    """Recall of pages: the Latin name of a bridge, in English and French questions, finds its English page; so do the
    names in other scripts that the pages have, and the questions that are translated well. The oracle's paragraphs are
    on the pages: 100. English has Table 1's prompt and replies where nothing is translated.
    """
    assert runs.ours("7", "No retrieval") == {"recall ko": 10, "recall fr": 20, "recall ru": 30, "recall en": 10}
    found = {"R@5 ko": 40, "R@5 fr": 100, "R@5 ru": 70, "R@5 en": 100}
    replies = {"recall ko": 60, "recall fr": 70, "recall ru": 50, "recall en": 20}
    assert runs.ours("7", "Dense (BGE-m3)") == {**found, **replies}
    found = {"R@5 ko": 80, "R@5 fr": 90, "R@5 ru": 60}
    assert runs.ours("7", "Dense (BGE-m3) + QT") == {**found, "recall ko": 70, "recall fr": 40, "recall ru": 30}
    replies = {"recall ko": 20, "recall fr": 50, "recall ru": 60, "recall en": 80}
    assert runs.ours("7", "Sparse (SPLADE) + QT") == {**found, "R@5 en": 100, **replies}
    found = {"R@5 ko": 100, "R@5 fr": 100, "R@5 ru": 100, "R@5 en": 100}
    replies = {"recall ko": 90, "recall fr": 100, "recall ru": 80, "recall en": 90}
    assert runs.ours("7", "Oracle") == {**found, **replies}


def test_every_form_and_export_has_the_same_figures(runs: Runs, programs: Programs, tmp_path: Path) -> None:
    """Cells of Table 1, its rates of the language (French 6 of 8, English 0 of 0), and the recall of pages."""
    expected = {
        ("mkqa_norag_fr", "char3gram_recall"): (0.2, "20.0", 10),
        ("mkqa_norag_fr", "correct_language"): (0.75, "75.0", 8),
        ("mkqa_en_only_ko", "recall@5"): (0.4, "40.0", 10),
        ("xor_tydi_en_only_ko", "char3gram_recall"): (5 / 6, "83.3", 6),
        ("tydi_en_only_en", "char3gram_recall"): (2 / 3, "66.7", 3),
    }
    check_everywhere(programs, runs.out, tmp_path, expected)
