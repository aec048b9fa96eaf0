"""Measure how well language detectors recognise each language, by length of text.

    python scripts/detector_reliability.py DATA          print the counts that would be written
    python scripts/detector_reliability.py DATA --write  write them into the package, and the table of the docs
    python scripts/detector_reliability.py --docs        write the table from the counts of the package

``DATA`` holds texts of XQuAD (questions, first sentences of paragraphs), BLEnD (questions in the local language),
AfriQA (questions) and NoMIRACL (questions and first sentences of passages, not the replies), in a folder each, as their
repositories have them. Only counts leave this script. A text counts once for each language it occurs in.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from mrag_eval.core import language_name, normalize_language
from mrag_eval.languages import BANDS, RELIABILITY_FILE, band_of, reliabilities
from mrag_eval.metrics import FastTextDetector, LanguageDetector, LinguaDetector, accepts, wilson
from mrag_eval.metrics._language_detection import lingua_languages
from mrag_eval.text import sentence_spans

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "languages.md"
START, END = "<!-- detectors: written by scripts/detector_reliability.py -->", "<!-- end of detectors -->"
# The language of each country's questions.
_BLEND = {
    "Algeria": "ar", "Assam": "as", "Azerbaijan": "az", "China": "zh", "Ethiopia": "am", "Greece": "el",
    "Indonesia": "id", "Iran": "fa", "Mexico": "es", "North_Korea": "ko", "Northern_Nigeria": "ha",
    "South_Korea": "ko", "Spain": "es", "UK": "en", "US": "en", "West_Java": "su",
}  # fmt: skip
_PROMPT = re.compile(r"QUESTION:\n(.+?)\n\nCONTEXTS:\n(.+)\n\nOUTPUT:", re.DOTALL)
_CONTEXT = re.compile(r"^\[\d+\] (?:[^:\n]{1,80}: )?(.+)$", re.MULTILINE)


def texts_of(data: Path) -> dict[str, dict[str, set[str]]]:
    """Return the texts by language and source."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for source, read in (("XQuAD", _xquad), ("BLEnD", _blend), ("AfriQA", _afriqa), ("NoMIRACL", _nomiracl)):
        for lang, text in read(data):
            if any(map(str.isalpha, text)):
                found[normalize_language(lang)][source].add(" ".join(text.split()))
    return found


def _xquad(data: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((data / "xquad").glob("xquad.*.json.gz")):
        lang = path.name.split(".")[1]
        for article in json.loads(gzip.decompress(path.read_bytes()))["data"]:
            for paragraph in article["paragraphs"]:
                yield lang, _first_sentence(paragraph["context"], lang)
                yield from ((lang, qa["question"]) for qa in paragraph["qas"])


def _blend(data: Path) -> Iterator[tuple[str, str]]:
    for country, lang in _BLEND.items():
        path = data / "blend" / "questions" / f"{country}_questions.csv"
        yield from (
            (lang, row["Question"]) for row in csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig")))
        )


def _afriqa(data: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((data / "afriqa").glob("queries.*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            yield from ((row["lang"], row["question"]) for row in map(json.loads, rows))


def _nomiracl(data: Path) -> Iterator[tuple[str, str]]:
    for path in sorted((data / "nomiracl").glob("*.jsonl.gz")):
        lang = path.name.split(".")[1]
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            for row in map(json.loads, rows):
                if row["prompt"] and (parts := _PROMPT.search(row["prompt"])) is not None:
                    yield lang, parts[1]
                    yield from ((lang, _first_sentence(text, lang)) for text in _CONTEXT.findall(parts[2]))


def _first_sentence(text: str, lang: str) -> str:
    # the beginning of some, up to an abbreviation, which adds short texts
    start, end = next(iter(sentence_spans(text, lang, phrases=True)), (0, 0))
    return text[start:end]


def counted(texts: dict[str, dict[str, set[str]]]) -> list[dict[str, object]]:
    """Return a row for each detector, language and band of lengths with texts."""
    detectors: dict[str, LanguageDetector] = {
        "lid.176": FastTextDetector(),
        "lingua": LinguaDetector(sorted(lingua_languages())),
    }
    rows: list[dict[str, object]] = []
    for name, detector in detectors.items():
        known: frozenset[str] = getattr(detector, "supported", frozenset())
        labels: dict[int, dict[str, Counter[str]]] = {band: {} for band in BANDS}
        for lang, by_source in texts.items():
            own = sorted(set().union(*by_source.values()))
            for text, label in zip(own, detector.detect(own), strict=True):
                labels[band_of(len(text))].setdefault(lang, Counter())[label] += 1
        for lang in sorted(texts):
            if not any(accepts(lang, label) for label in known):
                continue
            for band, by_language in labels.items():
                mine = by_language.get(lang, Counter())
                others = Counter[str]()
                for other, counts in by_language.items():
                    # languages that count together are not taken for each other
                    if not accepts(lang, other):
                        others += counts
                if mine:
                    rows.append({
                        "detector": name, "language": lang, "from": band, "texts": mine.total(),
                        "recognised": sum(n for label, n in mine.items() if accepts(lang, label)),
                        "others": others.total(),
                        "taken": sum(n for label, n in others.items() if accepts(lang, label)),
                        "sources": " ".join(sorted(texts[lang])),
                    })  # fmt: skip
    return rows


def table() -> str:
    """Return the counts of the package as the tables of the docs: each share with its 95 % interval and n."""
    rows = reliabilities()
    lines = [
        "| language | detector | " + " | ".join(map(_band, BANDS)) + " | others taken for it | texts of |",
        "|---|---|" + "---|" * (len(BANDS) + 2),
    ]
    for lang, name in sorted({(each.language, each.detector) for each in rows}):
        own = {each.length_from: each for each in rows if (each.language, each.detector) == (lang, name)}
        cells = [_cell(own[band].recognised, own[band].texts) if band in own else "" for band in BANDS]
        # the others of a length at which the language has no text were not counted
        taken = _cell(sum(each.taken for each in own.values()), sum(each.others for each in own.values()))
        sources = ", ".join(next(iter(own.values())).sources)
        lines.append(f"| {language_name(lang)} | {name} | {' | '.join(cells)} | {taken} | {sources} |")
    return "\n".join(lines)


def _cell(hits: int, n: int) -> str:
    share = wilson(hits, n)
    if share.low is None or share.high is None:
        return ""
    return f"{100 * hits / n:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}] of {n:,}"


def _band(start: int) -> str:
    following = next((each for each in BANDS if each > start), None)
    return f"{start}+" if following is None else f"{start} to {following - 1}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--docs", action="store_true")
    options = parser.parse_args()
    if options.data is not None:
        rows = counted(texts_of(options.data))
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        if options.write:
            RELIABILITY_FILE.write_text(out.getvalue(), encoding="utf-8")
        else:
            print(out.getvalue())
    if options.docs or options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(START)
        PAGE.write_text(f"{before}{START}\n\n{table()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
