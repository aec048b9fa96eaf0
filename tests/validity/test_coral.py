"""CORAL's tables and Figure 3 from planted replies of planner, critic, translator and generator.

BLEnD: two questions in each of the 16 countries (four each in en, es and ko, which pool two countries). CLIcK: one
question in each subject, two in ``society``. The corpus has one document in each of the 13 languages and one in German,
which is not in CORAL's pool; every search finds all documents of its languages.

The generator sees only its prompt, so that each mode must put the right documents there: Non-RAG none; monoRAG English
(CLIcK: Korean); C_own that of the culture; multiRAG five of the pool; crossRAG five in translation; tRAG English. The
planner first names the query's language alone. In the second round it names the culture's language, and Indonesian if
it may rewrite the query, else Hausa. The critic finds the first search insufficient.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrag_eval.core import CORAL_POOL, Passage
from mrag_eval.core._languages import CORAL_TIERS
from mrag_eval.datasets._blend import COUNTRIES
from mrag_eval.datasets._click import CATEGORY_SIZES
from mrag_eval.platform import tasks_folder
from mrag_eval.retrievers import build_index
from tests.datasets.test_blend import write_csv
from tests.programs import Programs
from tests.validity.everywhere import check_everywhere
from tests.worlds.model_server import Answer, ModelServer, asked, said

pytestmark = pytest.mark.slow

BLEND_MODES = ("norag", "monorag", "multirag", "crossrag", "coral", "own", "ownen", "coral_norewrite")
MODES = (*BLEND_MODES, "trag")
SUBJECTS = tuple(CATEGORY_SIZES)
CLICK = ["society_1", "society_2", *(f"{subject}_1" for subject in SUBJECTS if subject != "society")]
# How many of CLIcK's nine questions each mode gets right, in the order above. C_own is monoRAG: both search Korean.
CLICK_RIGHT = {
    "norag": 1, "monorag": 2, "trag": 3, "multirag": 4, "crossrag": 5, "ownen": 6, "coral_norewrite": 7, "coral": 8,
}  # fmt: skip
HIGH, MID = CORAL_TIERS["high"], CORAL_TIERS["mid"]


def right(mode: str, language: str, number: int) -> bool:
    """Return whether the generator is planted to answer BLEnD's question ``number`` (1 or 2) of a country."""
    return {
        "norag": number == 1 and language in HIGH,
        "monorag": number == 1,
        "multirag": number == 1 or language in ("su", "fa"),
        "crossrag": number == 1 or language == "am",
        "coral": number == 1 or language not in ("am", "el"),
        "own": number == 1 and language in MID,
        "ownen": number == 1 or language in HIGH,
        "coral_norewrite": number == 1 or language not in CORAL_TIERS["low"],
    }[mode]


def second_round(language: str, rewrites: bool) -> list[str]:
    if rewrites:
        return [language, "su" if language == "id" else "id"]
    return [language, "am" if language == "ha" else "ha"]


def mode_of(documents: list[str], translated: bool, language: str) -> str:
    """Return the mode that put these documents into a prompt; monoRAG where it is C_own as well."""
    if len(documents) == 5:
        assert set(documents) <= set(CORAL_POOL), documents
        return "crossrag" if translated else "multirag"
    for mode, shown in (
        ("norag", []),
        ("coral", second_round(language, True)),
        ("coral_norewrite", second_round(language, False)),
        ("ownen", [language, "en"]),
        ("monorag", ["en"]),
        ("own", [language]),
    ):
        if sorted(documents) == sorted(shown):
            return mode
    raise AssertionError((documents, language))


def generated(prompt: str) -> str:
    documents, translated = re.findall(r"shelf (\w+)", prompt), "TRANSLATED" in prompt
    if (click := re.search(r"food \((\w+)\)", prompt)) is not None:
        mode = mode_of(documents, translated, "ko")
        # Korean is the query's language and the culture's: C_own is monoRAG, and English alone is tRAG
        mode = {"own": "monorag", "monorag": "trag"}.get(mode, mode)
        return f"Answer: {'B' if CLICK.index(click[1]) < CLICK_RIGHT[mode] else 'A'}"
    blend = re.search(r"food (\d) is eaten first in (\w+)\?", prompt)
    assert blend is not None
    language = COUNTRIES[blend[2]][0]
    return f"Answer: {'B' if right(mode_of(documents, translated, language), language, int(blend[1])) else 'A'}"


def critic_scores(relevance: int, others: int) -> str:
    names = ("usefulness", "clarity_specificity", "compatibility")
    return json.dumps({"scores": {"relevance": relevance, **dict.fromkeys(names, others)}, "critique": "as planted"})


def by_agent(body: dict[str, Any]) -> str:
    """Return the reply of planner, critic or translator."""
    system, user = str(body["messages"][0]["content"]), asked(body)
    if "<source_text>" in user:
        source = user.split("<source_text>\n")[1].split("\n</source_text>")[0]
        return f"<translation>TRANSLATED {source}</translation>"
    found = re.search(r"eaten first in (\w+)\?", user)
    language = "ko" if found is None else COUNTRIES[found[1]][0]
    if "<previous_query>" in user:
        rewrites = "rewritten_query" in system
        plan: dict[str, Any] = {"language_names": second_round(language, rewrites)}
        return json.dumps(plan | ({"rewritten_query": "the food of that place"} if rewrites else {}))
    if "<documents>" in user:
        enough = user.count("<critic_scores>") == 2
        return json.dumps({"enough_documents": enough, "reason": "as planted"})
    if "<document>" in user:
        shelf = re.search(r"shelf (\w+)", user)
        assert shelf is not None
        if shelf[1] == language:
            return critic_scores(5, 5)
        # 3 + 0.5 * (2 + 2 + 2) = 6.0 is just valid; 2 + 0.5 * (2 + 2 + 2) = 5.0 is not
        return critic_scores(2, 2) if shelf[1] == "en" else critic_scores(3, 2)
    return json.dumps({"language_names": ["en" if found else "ko"]})


def write_questions(folder: Path) -> None:
    choices = {"A": "bread", "B": "rice", "C": "soup"}
    lines = "\n".join(f"{letter}. {text}" for letter, text in choices.items())
    rows = [
        {
            "MCQID": f"Q{number}_1",
            "ID": f"Q{number}",
            "country": country,
            "prompt": f"Which food {number} is eaten first in {country}? Reply with a letter.\n\n{lines}\n\nAnswer:",
            "choices": json.dumps(choices),
            "choice_countries": json.dumps(dict(zip(choices, (country, "Iran", "US"), strict=True))),
            "answer_idx": "B",
        }
        for country in COUNTRIES
        for number in (1, 2)
    ]
    write_csv(folder / "mc_questions_file-1.csv", rows)
    for subject in SUBJECTS:
        target = folder / "Culture" / f"Korean {subject.capitalize()}" / f"{subject.capitalize()}_KIIP.json"
        target.parent.mkdir(parents=True)
        made = [
            {
                "id": f"KIIP_{name}",
                "paragraph": "",
                "question": f"먼저 food ({name})",
                "choices": ["빵", "쌀", "국", "물"],
                "answer": "쌀",
            }
            for name in CLICK
            if name.startswith(subject)
        ]
        target.write_text(json.dumps(made), encoding="utf-8")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, programs: Programs) -> Path:
    """Run all modes with the stock command; return the folder of results."""
    folder = tmp_path_factory.mktemp("coral")
    (folder / "data").mkdir()
    write_questions(folder / "data")
    passages = [Passage(f"{code}-1", code, f"The food on shelf {code}") for code in ("de", *CORAL_POOL)]
    build_index(passages, folder / "wiki", kind="bm25")

    def reply(body: dict[str, Any], _: int) -> Answer:
        text = generated(asked(body)) if body["model"] == "planted" else by_agent(body)
        return Answer(body=said(text).body, headers={"Content-Type": "application/json"})

    server = ModelServer(reply)
    agents = {"model": "local-chat-completions", "model_args": {"model": "agents", "base_url": server.url}}
    config = {
        "models": {"agents": agents},
        "planner": "agents",
        "critic": "agents",
        "translator": {"backend": "lm", "model": "agents"},
    }
    (folder / "mrag.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    metadata = {
        "data": {"path": str(folder / "data")},
        "retrieval": {"corpus": str(folder / "wiki"), "kind": "bm25"},
        "prompt": {"max_tokens": 100_000},
    }
    tasks = [f"blend_{mode}" for mode in BLEND_MODES] + [f"click_{mode}" for mode in MODES]
    environment = {"MRAG_CONFIG": str(folder / "mrag.yaml"), "MRAG_CACHE": str(folder / "cache")}
    try:
        done = subprocess.run(
            [
                *(programs / "lm_eval", "run", "--model", "local-chat-completions", "--apply_chat_template"),
                *("--model_args", f"model=planted,base_url={server.url},num_concurrent=8"),
                *("--include_path", str(tasks_folder()), "--tasks", ",".join(tasks)),
                *("--metadata", json.dumps(metadata), "--log_samples", "--output_path", str(folder / "out")),
            ],
            cwd=folder,
            env={**os.environ, **environment, "OPENAI_API_KEY": "none"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        server.close()
    assert done.returncode == 0, done.stderr[-4000:]
    assert sorted(path.name for path in folder.iterdir()) == ["cache", "data", "mrag.yaml", "out", "wiki"]
    return folder / "out"


Cells = dict[str, dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def cells(out: Path, programs: Programs) -> Cells:
    """Return our figures as printed: table -> row -> column -> figure, or the reason for a blank."""
    found: Cells = {}
    for line in csv.DictReader(io.StringIO(printed(programs, "report", out, "--layout", "coral", "--format", "csv"))):
        # a search by BM25 and planted agents are not the paper's settings
        if line["from"].startswith(("this run", "run otherwise")):
            row = found.setdefault(line["table"], {}).setdefault(line["row"].partition(" / planted")[0], {})
            row[line["column"]] = line["value"] or line["reason"]
    return found


def printed(programs: Programs, *words: str | Path) -> str:
    command = [programs / "mrag-eval", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_table_1(cells: Cells) -> None:
    """Tiers and ``all`` are plain means over languages, CLIcK is the mean over questions."""
    blank = "no figure in the paper, and no task of ours"
    names = ("su", "low", "fa", "mid", "es", "high", "all", "all by question", "CLIcK")
    expected = {
        # half of ar, en, es and zh: all 4 * 50 / 13; by question 6 of 32, as en and es have two countries
        "Non-RAG": ("0.00", "0.00", "0.00", "0.00", "50.00", "50.00", "15.38", "18.75", "11.11"),
        # half of everything; CLIcK 2 of 9
        "monoRAG": ("50.00", "50.00", "50.00", "50.00", "50.00", "50.00", "50.00", "50.00", "22.22"),
        # the questions of BLEnD are English: nothing to translate; CLIcK 3 of 9
        "tRAG": (*[blank] * 8, "33.33"),
        # su and fa right, else half: low (100 + 4 * 50) / 5, mid (100 + 3 * 50) / 4, all (200 + 11 * 50) / 13; 18 of 32
        "multiRAG": ("100.00", "60.00", "100.00", "62.50", "50.00", "50.00", "57.69", "56.25", "44.44"),
        # am right, else half: low (100 + 4 * 50) / 5, all (100 + 12 * 50) / 13; 17 of 32 is 53.125
        "crossRAG": ("50.00", "60.00", "50.00", "50.00", "50.00", "50.00", "53.85", "53.12", "55.56"),
        # am and el half, else right: low (50 + 4 * 100) / 5, mid (50 + 3 * 100) / 4, all (100 + 1100) / 13; 30 of 32
        "CORAL": ("100.00", "90.00", "100.00", "87.50", "100.00", "100.00", "92.31", "93.75", "88.89"),
    }
    assert cells["1"] == {row: dict(zip(names, values, strict=True)) for row, values in expected.items()}


def test_table_2(cells: Cells) -> None:
    names = ("low", "mid", "high", "CLIcK")
    expected = {
        "Non-RAG": ("0.00", "0.00", "50.00", "11.11"),
        # mid half; of high only en, where C_own is monoRAG: 50 / 4. CLIcK: Korean as in monoRAG
        "C_own": ("0.00", "50.00", "12.50", "22.22"),
        "C_all": ("60.00", "62.50", "50.00", "44.44"),
        # high right, but en (C_own, half): (50 + 3 * 100) / 4; CLIcK 6 of 9
        "C_own and C_en": ("50.00", "50.00", "87.50", "66.67"),
        "CORAL": ("90.00", "87.50", "100.00", "88.89"),
    }
    assert cells["2"] == {row: dict(zip(names, values, strict=True)) for row, values in expected.items()}


def test_table_3(cells: Cells) -> None:
    names = ("low", "mid", "high", "CLIcK")
    expected = {
        "multiRAG": ("60.00", "62.50", "50.00", "44.44"),
        # low half, else right; CLIcK 7 of 9
        "dynamic corpora": ("50.00", "100.00", "100.00", "77.78"),
        "dynamic corpora and rewriting": ("90.00", "87.50", "100.00", "88.89"),
    }
    assert cells["3"] == {row: dict(zip(names, values, strict=True)) for row, values in expected.items()}


def test_table_6(cells: Cells) -> None:
    expected = {"Non-RAG": "15.38", "monoRAG": "50.00", "multiRAG": "57.69", "crossRAG": "53.85", "CORAL": "92.31"}
    assert cells["6"] == {row: {"all": value} for row, value in expected.items()}


def test_tables_7_to_12(cells: Cells) -> None:
    """One table of this form for each generator; every cell is 0, 1 or 2 of a country's two questions."""
    (table,) = [found for name, found in cells.items() if name.startswith("7")]
    modes = {
        "Non-RAG": "norag", "monoRAG": "monorag", "multiRAG": "multirag", "crossRAG": "crossrag", "CORAL": "coral"
    }  # fmt: skip
    for row, mode in modes.items():
        for language in CORAL_POOL:
            share = 50 * (right(mode, language, 1) + right(mode, language, 2))
            assert table[row][language] == f"{share}.00", (row, language)
        assert table[row]["CLIcK"] == f"{100 * CLICK_RIGHT[mode] / 9:.2f}"
    assert table["tRAG"]["CLIcK"] == "33.33"


def test_figure_3(cells: Cells) -> None:
    """Languages of the corpora chosen in all rounds, and of the documents shown, by source language."""

    def bars(benchmark: str, source: str, part: str) -> dict[str, str]:
        (row,) = [
            found
            for name, found in cells["languages"].items()
            if name.startswith(f"{benchmark} / {source} / ") and name.endswith(part) and "no_rewriting" not in name
        ]
        return {language: share for language, share in row.items() if share != "0.0"}

    # two questions, each en, then su and id; en is not valid, so su and id are shown
    assert bars("blend", "su", "corpora chosen") == {"en": "33.3", "su": "33.3", "id": "33.3"}
    assert bars("blend", "su", "documents shown") == {"su": "50.0", "id": "50.0"}
    # en, then en and id
    assert bars("blend", "en", "corpora chosen") == {"en": "66.7", "id": "33.3"}
    assert bars("blend", "en", "documents shown") == {"en": "50.0", "id": "50.0"}
    # ko, then ko and id
    assert bars("click", "ko", "corpora chosen") == {"ko": "66.7", "id": "33.3"}
    assert bars("click", "ko", "documents shown") == {"ko": "50.0", "id": "50.0"}


def test_rewritings_are_counted_from_the_samples(out: Path, programs: Programs) -> None:
    """Section 5.4: one for each of the 32 + 9 questions of CORAL, none where the query is kept."""
    report = json.loads(printed(programs, "judge", "rewrites", out, "--json"))
    assert (report["questions"], report["rewritten"], report["rewrites"]) == (82, 41, 41)


def test_every_form_and_export_has_the_same_figures(out: Path, programs: Programs, tmp_path: Path) -> None:
    """Cells of Tables 1, 2 and 7 to 12: CLIcK over nine questions, BLEnD's groups over those of their tasks."""
    tasks = {
        ("blend_coral_am", "acc"): (1 / 2, "50.0", 2),
        ("blend_multirag_su", "acc"): (2 / 2, "100.0", 2),
        ("click_coral", "acc"): (8 / 9, "88.9", 9),
        ("click_trag", "acc"): (3 / 9, "33.3", 9),
    }
    groups = {
        ("blend_coral", "acc"): (12 / 13, "92.3", 32),
        ("blend_coral", "acc_micro"): (30 / 32, "93.8", 32),
        ("blend_multirag_low", "acc"): (3 / 5, "60.0", 10),
    }
    check_everywhere(programs, out, tmp_path, tasks, groups)
