"""Compare the rerank stage with the cross-encoder's own ``predict`` on the same pairs, and time a second run from
cache.

A BERT of random weights (4 layers, 256 wide) scores the passages of every question; the two alternate in one process
and medians are compared. The stage's runs begin with an empty cache: besides scoring, they look every pair up, save
scores for the next run, order the hits and choose those to show.

    python benchmarks/rerank.py            1,000 questions x 20 passages
    python benchmarks/rerank.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mrag_eval.config import Retrieval
from mrag_eval.core import Kept, Passage, RagDoc, Ranked, Searched
from mrag_eval.retrieval._plan import RowPlan
from mrag_eval.retrieval.rerank._rerank import open_reranker, rerank

MAX_LENGTH = 256


class Texts:
    """Passages by id, held in memory."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._by_id = {passage.id: passage for passage in passages}

    def passages(self, ids: Sequence[str]) -> list[Passage]:
        return [self._by_id[pid] for pid in ids]


def write_model(folder: Path, words: Sequence[str]) -> Path:
    """Build a cross-encoder with random weights and a whole-word tokenizer."""
    import torch
    import transformers

    folder.mkdir()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=512,
        num_labels=1,
    )
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    return folder


def main() -> None:
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__)
    parser.add_argument("--questions", type=int, default=1_000)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.questions, options.depth, options.repetitions = 8, 10, 1
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(5_000)]

    def text(low: int, high: int) -> str:
        return " ".join(words[i] for i in rng.integers(0, len(words), int(rng.integers(low, high))))

    docs = [RagDoc(str(row), text(6, 16), "en") for row in range(options.questions)]
    corpus = [Passage(str(i), "en", text(30, 120)) for i in range(options.questions * options.depth)]
    rows = [corpus[i : i + options.depth] for i in range(0, len(corpus), options.depth)]
    found = [
        Searched(
            tuple(Ranked(p.id, "", "en", -float(place)) for place, p in enumerate(row)),
            tuple(Kept(p.id, 0.0) for p in row[:5]),
        )
        for row in rows
    ]
    plans = [RowPlan(doc.query) for doc in docs]
    pairs = [(doc.query, passage.text) for doc, row in zip(docs, rows, strict=True) for passage in row]
    source = Texts(corpus)
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder) / "model", words)
        settings = {"model": str(model), "max_length": MAX_LENGTH}
        block = Retrieval.model_validate({"mode": "all", "k": 5, "depth": options.depth, "rerank": settings})
        reranker = open_reranker(block)
        assert reranker is not None

        from sentence_transformers import CrossEncoder
        from torch import nn

        bare_model = CrossEncoder(str(model), device="cpu")
        text_settings = {"text": {"truncation": "only_second", "max_length": MAX_LENGTH}}

        def bare() -> np.ndarray:
            scores = bare_model.predict(
                pairs, show_progress_bar=False, activation_fn=nn.Identity(), processing_kwargs=text_settings
            )
            return np.asarray(scores)

        def stage(cache: str) -> list[Searched]:
            os.environ["MRAG_CACHE"] = str(Path(folder) / cache)
            return rerank(found, docs, plans, block, reranker, source)

        bare_model.predict(pairs[:64], show_progress_bar=False)
        reranker.scores([pairs[0][0]], [[pairs[0][1]] * 64])  # type: ignore[union-attr]
        times: dict[str, list[float]] = {"predict": [], "stage": []}
        for repetition in range(options.repetitions):
            start = time.perf_counter()
            scores = bare()
            middle = time.perf_counter()
            out = stage(f"cold-{repetition}")
            times["predict"].append(middle - start)
            times["stage"].append(time.perf_counter() - middle)
        start = time.perf_counter()
        again = stage("cold-0")
        cached = time.perf_counter() - start
    ours = {place.id: place.score for row in out for place in (row.reranked.ranking if row.reranked else ())}
    expected = {p.id: score for p, score in zip(corpus, scores.tolist(), strict=True)}
    off = max(abs(ours[pid] - score) for pid, score in expected.items())
    assert off < 1e-4, f"the two disagree by {off}"
    assert [[kept.id for kept in row.kept] for row in again] == [[kept.id for kept in row.kept] for row in out]
    predict, staged = (statistics.median(times[name]) for name in ("predict", "stage"))
    print(
        f"rerank {options.questions:,} x {options.depth} pairs: CrossEncoder.predict {predict:.2f} s, "
        f"the stage with an empty cache {staged:.2f} s, ratio {staged / predict:.3f}; "
        f"from cache {cached:.2f} s, {staged / cached:.0f} times as fast"
    )
    repeated = zip(times["stage"], times["predict"], strict=True)
    write_rows(
        options.json,
        [
            row(
                f"rerank {options.questions:,} x {options.depth} pairs, empty cache",
                "CrossEncoder.predict",
                [mine / other for mine, other in repeated],
                figures={"predict_s": predict, "stage_s": staged, "from_cache_s": cached},
            )
        ],
    )


if __name__ == "__main__":
    main()
