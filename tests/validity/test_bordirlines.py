"""BordIRlines' tables and figures from planted replies, through the stock command to the printed tables and exports.

Eight questions: Ceuta (Morocco, Spain; Spain holds it) in en, ar and es; Crimea (Russia, Ukraine; Russia holds it) in
en, ru and uk; the Falkland Islands (Argentina, United Kingdom; the latter holds them) in en and es. English is a
language of a claimant on the Falklands alone; elsewhere the English question is a control.

Each territory has ten documents in each of its languages and in English, of which 0 to 4 are relevant: 0 and 1 support
the first claimant, 2 and 3 the second, 4 is neutral. ``openai`` lists English first, ``m3`` the question's language,
then the languages in alphabetical order, one document of each in turn.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.platform import tasks_folder
from tests.programs import Programs
from tests.tables import single_spaced
from tests.validity.everywhere import check_everywhere, every_place, plain_name
from tests.worlds.bordirlines import real_queries, write_bordirlines
from tests.worlds.model_server import Answer, ModelServer, asked, said

pytestmark = pytest.mark.slow

TASKS = (
    "bordirlines_no_ir_direct",
    "bordirlines_qlang_direct_openai",
    "bordirlines_en_only_direct_openai",
    "bordirlines_rel_langs_direct_openai",
    "bordirlines_rel_langs_direct_m3",
    "bordirlines_swap_docs_direct_openai",
    "bordirlines_qlang_citation_openai",
    "bordirlines_qlang_en_citation_openai",
    "bordirlines_rel_langs_citation_openai",
)
TERRITORIES = ["Ceuta", "Crimea", "Falkland Islands"]
HOLDERS = {"Ceuta": 1, "Crimea": 0, "Falkland Islands": 1}
# Answers without documents; with documents every answer is the holder.
CLOSED_BOOK = {
    "Ceuta_en": "B) Spain",
    "Ceuta_es": "B) España",
    "Ceuta_ar": "A) المغرب",
    "Crimea_en": "B) Ukraine",
    "Crimea_ru": "",
    "Crimea_uk": "I cannot answer this.",
    "Falkland_Islands_en": "B) United Kingdom",
    "Falkland_Islands_es": "Answer: B",
}
_NO_KB = "the mode leaves out 2 English control questions, which would count as wrong"
# All other citation replies cite nothing.
CITED = {"Crimea_ru": "<doc0> <doc1>", "Ceuta_es": "<doc2>"}


class Run:
    """The finished run, and what commands print about it."""

    def __init__(self, folder: Path, programs: Programs, env: dict[str, str]) -> None:
        self.folder, self._programs, self._env = folder, programs, env
        self._printed: dict[tuple[Path, ...], str] = {}

    def command(self, *words: str) -> str:
        """Return what ``mrag-eval`` prints."""
        done = subprocess.run(
            [self._programs / "mrag-eval", *words], capture_output=True, text=True, env=self._env, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def table(self, number: str, *folders: Path) -> dict[str, list[str]]:
        """Return a table's rows of ours: labels -> figures, as printed in CSV (blank: the reason)."""
        if folders not in self._printed:
            where = [str(folder) for folder in (self.folder, *folders)]
            self._printed[folders] = self.command("report", *where, "--layout", "bordirlines", "--format", "csv")
        rows: dict[str, list[str]] = {}
        for line in csv.DictReader(io.StringIO(self._printed[folders])):
            if line["table"] == number and line["from"].startswith(("this run", "run otherwise")):
                rows.setdefault(line["row"], []).append(line["value"] or line["reason"])
        return rows

    def samples(self, task: str) -> list[dict[str, Any]]:
        """Return the lines of a task's sample file."""
        (file,) = self.folder.rglob(f"samples_{task}_*.jsonl")
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def script(queries: list[dict[str, Any]]) -> Any:
    by_text = {q["query"]: q for q in queries if q["territory"] in TERRITORIES}

    def reply(body: dict[str, Any], _: int) -> Answer:
        prompt = asked(body)
        query = next(q for text, q in by_text.items() if text in prompt)
        holder = HOLDERS[query["territory"]]
        option = f"{'AB'[holder]}) {query['claimants_native'][holder]}"
        if "Chosen Option:" in prompt:
            cited = CITED.get(query["query_id"], "")
            return said(f"Cited Documents: 0\nChosen Option: {option}\nExplanation: because of maps {cited}.")
        return said(option if "Document: 0" in prompt else CLOSED_BOOK[query["query_id"]])

    return reply


@pytest.fixture(scope="module")
def run(test_data: Path, tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("bordirlines")
    queries = real_queries(test_data)
    copy = write_bordirlines(folder / "copy", queries)
    env = {**os.environ, "MRAG_CACHE": str(folder / "cache"), "OPENAI_API_KEY": "none"}
    server = ModelServer(script(queries))
    data = {"path": str(copy), "borderlines": str(test_data / "borderlines"), "territories": TERRITORIES}

    def evaluate(tasks: Sequence[str], out: Path, **more: Any) -> None:
        done = subprocess.run(
            [
                *(programs / "lm_eval", "run", "--model", "local-chat-completions"),
                *("--model_args", f"model=planted,base_url={server.url}", "--apply_chat_template"),
                *("--include_path", str(tasks_folder()), "--tasks", ",".join(tasks)),
                *("--metadata", json.dumps({"data": {**data, **more}}), "--log_samples", "--output_path", str(out)),
            ],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    try:
        evaluate(TASKS, folder / "out")
        filtered = ("bordirlines_qlang_direct_openai", "bordirlines_rel_langs_direct_openai")
        evaluate(filtered[:1], folder / "filtered", documents="non_relevant")
        evaluate(filtered, folder / "filtered", documents="relevant", territories=["Ceuta", "Crimea"])
        yield Run(folder / "out", programs, env)
    finally:
        server.close()


def test_table_4(run: Run) -> None:
    """Without documents; an unread or refused reply is the first claimant, except to a control question.

    KB: Ceuta 1, Crimea 0, Falklands 1: 2/3. Con: es Spain 1, ru unread = Russia 1, en United Kingdom 1: 1.
    Non: ar Morocco 0, uk refused = Russia 1, es unread = Argentina 0: 1/3. Delta: (1 - 1/3) / (1/3) = 2; 2/3.
    Cst: Ceuta 0 (es, ar), Crimea 1 (ru, uk), Falklands 0 (en, es): 1/3; every territory has a holder, so no 'unk'.
    Countries: 2, 1, 2: mean 5/3, deviation sqrt(((1/3)^2 + (2/3)^2 + (1/3)^2) / 2) = 0.577.
    The controller is named by two of Ceuta's three replies, none of Crimea's, one of the Falklands': 7/18.
    Of eight replies five are read, one declines, two cannot be read. swap_docs does not ask the control questions on
    Ceuta and Crimea, as nobody there speaks English.
    """
    unknown = "no territory without a controller has answers in two languages"
    assert run.table("4") == {
        "no_ir / planted": [
            *("66.7", "100.0", "33.3", "200.0", "66.7", unknown, "33.3", "1.667", "0.577"),
            *("38.9", "62.5", "12.5", "25.0"),
        ],
        **{
            f"{mode} / planted": [
                *(kb, "100.0", "100.0", "0.0", "0.0", unknown, "100.0", "1.000", "0.000"),
                *("100.0", "100.0", "0.0", "0.0"),
            ]
            for mode, kb in (("qlang", "100.0"), ("en_only", "100.0"), ("rel_langs", "100.0"), ("swap_docs", _NO_KB))
        },
    }


def test_every_form_and_export_has_the_same_figures(run: Run, programs: Programs, tmp_path: Path) -> None:
    """The cells of Table 4 without documents: over three territories, or over eight replies; counts are no shares."""
    task = "bordirlines_no_ir_direct"
    expected = {
        (task, "concurrence.KB_CS"): (2 / 3, "66.7", 3),
        (task, "concurrence.delta_CS_ratio"): (2.0, "200.0", 3),
        (task, "concurrence.Cst_CS_all"): (1 / 3, "33.3", 3),
        (task, "concurrence.countries_mean"): (5 / 3, "1.7", 3),
        (task, "concurrence.controller_share"): (7 / 18, "38.9", 3),
        (task, "option_read"): (5 / 8, "62.5", 8),
        (task, "option_refused"): (1 / 8, "12.5", 8),
        (task, "option_unread"): (2 / 8, "25.0", 8),
    }
    check_everywhere(programs, run.folder, tmp_path, expected)
    # no form and no export has a KB CS of swap_docs, and each has its other scores
    for place, figures in every_place(tmp_path):
        metrics = {f.metric for f in figures if plain_name(f.task) == "bordirlines_swap_docs_direct_openai"}
        assert "concurrence.KB_CS" not in metrics, place
        assert "concurrence.controller_share" in metrics, place
    # with documents one country is chosen on every territory, which does not make the number a share
    lines = csv.DictReader(io.StringIO((tmp_path / "csv").read_text("utf-8")))
    found = {(plain_name(line["task"]), line["metric"]): line for line in lines if not line["dimension"]}
    line = found["bordirlines_qlang_direct_openai", "concurrence.countries_mean"]
    assert (line["value"], line["low"], line["high"]) == ("1.0", "", "")
    assert line["reason"] == "no interval: the rows show no variation"


def test_table_2(run: Run) -> None:
    """Pairs: every question sees the ten English documents (80: 8 x 10) and, in qlang, the ten of its language.

    rel_langs adds three of each other language (openai: en 4, two others 3 each), five on the Falklands.
    ar: Ceuta_ar 10, Ceuta_en 3, Ceuta_es 3; ru and uk likewise. es: Ceuta 10 + 3 + 3, Falklands 10 + 5.
    A territory has one article of ten passages in each of its languages.
    """
    assert run.table("2") == {
        "English": ["3", "3", "30", "80"],
        "Spanish": ["2", "2", "20", "31"],
        "Arabic": ["1", "1", "10", "16"],
        "Russian": ["1", "1", "10", "16"],
        "Ukrainian": ["1", "1", "10", "16"],
        "Totals": ["8", "8", "80", "159"],
    }


def test_figure_4(run: Run) -> None:
    """rel_langs shows 4 en and 3 of each other language (Falklands: 5 and 5).

    Inclusion of the question's language: ar, ru and uk 3/10; es (3/10 + 5/10) / 2; en (4 + 4 + 5) / 30.
    Citations: Crimea_ru cites documents 0 (en) and 1 (ru): 1/2. Ceuta_es cites document 2 (es): 1. Others none.
    High: en, ar, es, ru: 43.3, 30, 40, 30, so the median is 35; of the citations 50 and 100: 75. Mid: uk alone.
    """
    none = "no explanation cites a document"
    assert run.table("Figure 4") == {
        "high-resource, median (planted)": ["35.0", "75.0"],
        "high-resource, lowest (planted)": ["30.0", "50.0"],
        "high-resource, highest (planted)": ["43.3", "100.0"],
        **{f"mid-resource, {name} (planted)": ["30.0", none] for name in ("median", "lowest", "highest")},
        "Arabic (planted)": ["30.0", none],
        "English (planted)": ["43.3", none],
        "Spanish (planted)": ["40.0", "100.0"],
        "Russian (planted)": ["30.0", "50.0"],
        "Ukrainian (planted)": ["30.0", none],
    }


def test_figure_6(run: Run) -> None:
    """With documents every answer is the holder, so KB and Cst are 1 and the delta is 0, whatever is filtered.

    rel_langs shows relevant documents alone (0 to 4), so there is no run with the others. The runs with the relevant
    ones ask about two territories of three, so every row is over their six questions, with two controllers.
    """
    all_right = ["100.0", "100.0", "0.0", "1.000"]
    folders = (run.folder, run.folder.parent / "filtered")
    rows = run.table("Figure 6", folders[1])
    filled = {label: figures for label, figures in rows.items() if all(x.replace(".", "").isdigit() for x in figures)}
    conditions = ("qlang, all", "qlang, relevant", "qlang, not relevant", "rel_langs, all", "rel_langs, relevant")
    assert filled == {f"{condition} / planted": all_right for condition in conditions}
    printed = single_spaced(run.command("report", *map(str, folders), "--layout", "bordirlines"))
    assert "planted: over the 6 questions to which every run of this table has an answer" in printed
    for condition in conditions:
        line = rf"\| {condition} \| planted \| (?:this run|run otherwise)[^|]* \| 100\.0 \(n=2\) \| 100\.0 \(n=2\) \|"
        assert re.search(line, printed), condition


def test_figure_5(run: Run) -> None:
    """Documents in rel_langs come in turn from each language: openai's from English first, m3's from the question's.

    Ten to a question. openai shows English 4 times to six questions and 5 times to two, 34 of 80; m3 4 times to two
    (in English), 3 to four, 5 to the two on the Falklands, 30 of 80. Ceuta in Arabic: en 4, ar 3, es 3 or 3, 4, 3.
    """
    found = run.table("Figure 5")
    assert found["all questions, English"] == ["42.5", "37.5", "34", "30"]
    assert {label: cells for label, cells in found.items() if label.startswith("Arabic, ")} == {
        "Arabic, English": ["40.0", "30.0", "4", "3"],
        "Arabic, Arabic": ["30.0", "40.0", "3", "4"],
        "Arabic, Spanish": ["30.0", "30.0", "3", "3"],
    }
    # English questions: Ceuta and Crimea 4, the Falklands 5 of 10
    assert found["English, English"] == ["43.3", "43.3", "13", "13"]
    assert "English, Greek" not in found
    for at in (0, 1):
        assert sum(float(c[at]) for label, c in found.items() if label.startswith("Russian, ")) == pytest.approx(100)


def test_figure_10(run: Run) -> None:
    """Three citations a mode: Crimea_ru documents 0 and 1, Ceuta_es document 2.

    qlang: ru, ru, es. qlang+en lists en, own, en, ...: en, ru, en. rel_langs lists en, ar or ru, es or uk: en, ru, es.
    """
    found = run.table("Figure 10")
    assert found == {
        "English (planted)": ["0.0", "66.7", "33.3"],
        "Russian (planted)": ["66.7", "33.3", "33.3"],
        "Spanish (planted)": ["33.3", "0.0", "33.3"],
        **{f"{name} (planted)": ["0.0", "0.0", "0.0"] for name in ("Arabic", "Ukrainian")},
    }


def test_figures_15_and_16(run: Run) -> None:
    """Ten documents were found in each language, which are all that is known.

    openai: in the question's language 4, 3, 3 (Ceuta), 4, 3, 3 (Crimea), 5, 5 of 10 each: 30/80; in others 6, 7, 7, 6,
    7, 7 of 20 and 5, 5 of 10: 50/140. Ratio 0.375 / 0.35714 = 1.05, normalised 0.375 / 0.73214 = 0.51.
    m3: 4 for six questions, 5 for two: 34/80 against 46/140. Ratio 0.425 / 0.32857 = 1.29, normalised 0.56.
    """
    assert run.table("Figures 15, 16")["overall"] == ["1.05", "1.29", "0.51", "0.56"]
    assert run.table("Figures 15, 16")["Russian"] == ["0.86", "1.33", "0.46", "0.57"]  # (3/10)/(7/20), (4/10)/(6/20)
    text = run.command("report", str(run.folder), "--layout", "bordirlines")
    assert "searched passages are the paragraphs found by either retriever in any mode" in text


def test_tables_6_7_9_and_10(run: Run, tmp_path: Path) -> None:
    """People label documents of Crimea_ru (0 to 6) and Crimea_uk (0) in qlang, three each, in agreement but for ru 3.

    document   published         people               relevance        viewpoint
    ru 0       yes, Russia       yes, Russia          TP               TP
    ru 1       yes, Russia       yes, Ukraine         TP               FP
    ru 2       yes, Ukraine      no                   FP               FP
    ru 3       yes, Ukraine      yes, three apart     TP               -
    ru 4       yes, Neutral      contradictory        -                -
    ru 5       no                yes, Neutral         FN               FN
    ru 6       no                no                   TN               -
    uk 0       yes, Russia       yes, Russia          TP               TP

    ru: relevance 3/4, 3/4, F1 3/4; viewpoint 1/3, 1/2, F1 2/(2 + 2 + 1) = 0.4. uk: 1. Means weighted by TP + FN:
    relevance 4 and 1, (4 x 3/4 + 1) / 5 = 0.8; viewpoint 2 and 1, (2 x 0.4 + 1) / 3 = 0.6.
    Alpha of viewpoints in ru: 18 labels, 4 Russia, 4 Ukraine, 4 Neutral, 6 not relevant. Observed 3/18, expected
    (18^2 - 3 x 4^2 - 6^2) / (18 x 17) = 240/306, alpha 1 - (3/18) / (240/306) = 0.7875.
    """
    people = {
        ("Crimea_ru", 0): [("yes", "Russia")] * 3,
        ("Crimea_ru", 1): [("yes", "Ukraine")] * 3,
        ("Crimea_ru", 2): [("no", "Not relevant")] * 3,
        ("Crimea_ru", 3): [("yes", "Russia"), ("yes", "Ukraine"), ("yes", "Neutral")],
        ("Crimea_ru", 4): [("yes", "Not relevant"), ("no", "Neutral"), ("no", "Russia")],
        ("Crimea_ru", 5): [("yes", "Neutral")] * 3,
        ("Crimea_ru", 6): [("no", "Not relevant")] * 3,
        ("Crimea_uk", 0): [("yes", "Russia")] * 3,
    }
    shown = {s["doc"]["id"]: s["doc"]["passages"] for s in run.samples("bordirlines_qlang_direct_openai")}
    lines = [
        f"{row},{shown[row][number]['id']},{relevant},{viewpoint}"
        for (row, number), labels in people.items()
        for relevant, viewpoint in labels
    ]
    sheet = tmp_path / "people.csv"
    sheet.write_text("\n".join(["row,passage,relevant,viewpoint", *lines]) + "\n", encoding="utf-8")
    with_people, counted = tmp_path / "people", tmp_path / "counted"
    (qlang,) = run.folder.rglob("samples_bordirlines_qlang_direct_openai_*.jsonl")
    run.command("judge", "documents", str(qlang), "--human", str(sheet), "--output", str(with_people))
    assert run.table("6", with_people) == {"Russian, qlang": ["7", "6"], "Ukrainian, qlang": ["1", "1"]}
    alphas = run.table("7", with_people)
    assert alphas["Russian, qlang"] == ["1.00", "0.79"]
    assert alphas["Ukrainian, qlang"] == ["a single label is used throughout"] * 2
    by = "(labels of the samples, few-shot)"
    blank = ["", ""]
    assert run.table("9", with_people) == {
        f"Russian, relevance {by}": ["3", "1", "1", "1", "0.7500", "0.7500", "0.7500"],
        f"Ukrainian, relevance {by}": ["1", "0", "0", "0", "1.0000", "1.0000", "1.0000"],
        f"weighted mean, relevance {by}": ["4", "1", "1", "1", *blank, "0.8000"],
        f"Russian, viewpoint {by}": ["1", "0", "2", "1", "0.3333", "0.5000", "0.4000"],
        f"Ukrainian, viewpoint {by}": ["1", "0", "0", "0", "1.0000", "1.0000", "1.0000"],
        f"weighted mean, viewpoint {by}": ["2", "0", "2", "1", *blank, "0.6000"],
    }
    # Figures 8 and 9: ru 0 and uk 0 are the first of their lists; nobody has a sound label of ru 4, or one of 7 to 9
    none = "no document has a label"
    assert run.table("Figures 8, 9", with_people) == {
        "people (openai)": ["100.0", "100.0", "0.0", "100.0", none, "100.0", "0.0", none, none, none],
        "labels of the samples, few-shot (openai)": ["100.0"] * 5 + ["0.0"] * 5,
    }
    # Half of the documents of a language are relevant: qlang 5 of 10. rel_langs and qlang+en show only documents 0 to
    # 4, except to the three English questions in qlang+en: (3 x 5 + 5 x 10) / 80. Without examples document 5 is
    # relevant, too: 6 of 10, and (3 x 6 + 5 x 10) / 80.
    run.command("judge", "documents", str(run.folder), "--output", str(counted))
    not_labelled = "not labelled"
    assert run.table("10", counted) == {
        "qlang (labels of the samples)": [not_labelled, "0.5000", not_labelled, not_labelled],
        "qlang+en (labels of the samples)": [not_labelled, "0.8125", not_labelled, not_labelled],
        "en_only (labels of the samples)": [not_labelled, "0.5000", not_labelled, not_labelled],
        "rel_langs (labels of the samples)": [not_labelled, "1.0000", not_labelled, "1.0000"],
    }
    # the published files have both kinds of labels, for the documents of runs that were made once
    published, file = tmp_path / "published", run.folder.parent / "copy" / "data" / "llm_annotations.tsv"
    for more in ([], ["--zero-shot"]):
        words = [str(run.folder), "--labels", str(file), *more, "--output", str(published)]
        run.command("judge", "documents", *words)
    assert run.table("10", published) == {
        "qlang (published labels)": ["0.6000", "0.5000", not_labelled, not_labelled],
        "qlang+en (published labels)": ["0.8500", "0.8125", not_labelled, not_labelled],
        "en_only (published labels)": ["0.6000", "0.5000", not_labelled, not_labelled],
        "rel_langs (published labels)": ["1.0000", "1.0000", "1.0000", "1.0000"],
    }


def test_tables_11_to_15(run: Run) -> None:
    """The case view of Crimea: answers by mode and language, and who cites which document (Tables 11, 13 and 14)."""
    text = single_spaced(run.command("report", str(run.folder), "--territory", "Crimea"))
    assert "| planted | no_ir | direct | Ukraine | (none) | (none) |" in text
    assert "| planted | qlang (openai) | direct | Russia* | Russia* | Russia* |" in text
    # both retrievers' runs in rel_langs have a row of their own
    for retriever in ("openai", "m3"):
        assert f"| planted | rel_langs ({retriever}) | direct | Russia* | Russia* | Russia* |" in text
    # Figures 11, 12 and 14: ru sees en 0 to 3, ru 0 to 2 and uk 0 to 2: for Russia 2 + 2 + 2, for Ukraine 2 + 1 + 1
    assert "| rel_langs (openai) | ru | 6 | 4 | 0 | 0 |" in text
    # m3 lists ru 0 to 3, en 0 to 2 and uk 0 to 2
    assert "| rel_langs (m3) | ru | 6 | 4 | 0 | 0 |" in text
    assert "| document | en | ru | uk | cited by |" in text
    shown = {s["doc"]["id"]: s["doc"]["passages"] for s in run.samples("bordirlines_rel_langs_citation_openai")}
    first = shown["Crimea_ru"][0]["id"]
    assert f"| {first} | 0 | 0 (1 x) | 0 | 1 of 3 |" in text
