"""Compare the check of support with the bare classifier on the same pairs, and time a second run from cache.

A BERT of random weights (4 layers, 256 wide) labels the tokens of every answer beside each of its passages. The bare
loop is transformers' own tokenizer and model over these pairs, sorted by length, in batches of equal size; the two
alternate in one process and medians are compared. The check begins with an empty cache: besides reading pairs, it cuts
answers into claims and passages into windows, tells languages, combines what each window says, and saves the claims.

    python benchmarks/grounding.py            100 answers x 5 passages
    python benchmarks/grounding.py --quick    a smoke test with small numbers
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mrag_eval.config import Grounded
from mrag_eval.core import Hit, RagDoc, Scored
from mrag_eval.models import load_checker
from mrag_eval.scoring import with_grounding

MAX_LENGTH, BATCH = 512, 32


def main() -> None:
    import torch
    import transformers
    from _rows import arguments, row, write_rows
    from rerank import write_model

    parser = arguments(__doc__)
    parser.add_argument("--answers", type=int, default=100)
    parser.add_argument("--passages", type=int, default=5)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.answers, options.repetitions = 8, 1
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(5_000)]

    def text(low: int, high: int) -> str:
        return " ".join(words[i] for i in rng.integers(0, len(words), int(rng.integers(low, high))))

    rows = [
        Scored(
            RagDoc(str(n), text(6, 16), "en"),
            ". ".join(text(6, 20) for _ in range(int(rng.integers(1, 5)))) + ".",
            passages=tuple(Hit(f"{n}-{i}", "en", text(30, 200), 1.0, i + 1) for i in range(options.passages)),
        )
        for n in range(options.answers)
    ]
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder) / "model", [*words, "."])
        config = transformers.BertConfig.from_pretrained(model)
        config.num_labels = 2
        torch.manual_seed(0)
        transformers.BertForTokenClassification(config).save_pretrained(model)
        checker = load_checker(Grounded(model=str(model), max_length=MAX_LENGTH, batch_size=BATCH))
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        network = transformers.AutoModelForTokenClassification.from_pretrained(model).eval()
        pairs = [(f"{one.doc.query} {hit.text}", one.answer) for one in rows for hit in one.passages]

        def bare(pairs: Sequence[tuple[str, str]] = pairs) -> list[np.ndarray]:
            order = sorted(range(len(pairs)), key=lambda n: -len(pairs[n][0]) - len(pairs[n][1]))
            out: list[np.ndarray] = [np.empty(0)] * len(pairs)
            for start in range(0, len(order), BATCH):
                places = order[start : start + BATCH]
                first, second = zip(*(pairs[n] for n in places), strict=True)
                batch = tokenizer(
                    list(first),
                    list(second),
                    padding=True,
                    truncation="only_first",
                    max_length=MAX_LENGTH,
                    return_tensors="pt",
                )
                with torch.inference_mode():
                    found = network(**batch).logits.softmax(dim=-1)[..., 1].numpy()
                for n, values, types, mask in zip(
                    places, found, batch["token_type_ids"].numpy(), batch["attention_mask"].numpy(), strict=True
                ):
                    # without the last token, which is no word of the answer
                    out[n] = values[(types == 1) & (mask == 1)][:-1]
            return out

        def check(cache: str, rows: Sequence[Scored] = rows) -> list[Scored]:
            os.environ["MRAG_CACHE"] = str(Path(folder) / cache)
            return with_grounding(rows, checker)

        check("warm", rows[:8])
        bare(pairs[:64])
        times: dict[str, list[float]] = {"bare": [], "check": []}
        for repetition in range(options.repetitions):
            start = time.perf_counter()
            expected = bare()
            middle = time.perf_counter()
            out = check(f"cold-{repetition}")
            times["bare"].append(middle - start)
            times["check"].append(time.perf_counter() - middle)
        start = time.perf_counter()
        again = check("cold-0")
        cached = time.perf_counter() - start
    assert again == out
    for n, one in enumerate(out):
        assert one.grounding is not None
        own = np.minimum.reduce(expected[n * options.passages : (n + 1) * options.passages])
        least = min(claim.support for claim in one.grounding.claims)
        assert abs(1.0 - own.max() - least) < 1e-4, one.doc.id
    plain, checked = (statistics.median(times[name]) for name in ("bare", "check"))
    work = f"support of {options.answers:,} answers x {options.passages} passages, empty cache"
    print(f"{work}: bare {plain:.2f} s, the check {checked:.2f} s, ratio {checked / plain:.3f}; cached {cached:.2f} s")
    runs = [mine / other for mine, other in zip(times["check"], times["bare"], strict=True)]
    figures = {"bare_s": plain, "check_s": checked, "from_cache_s": cached}
    limit = {"at_most": 1.1, "judged": not options.quick}
    write_rows(options.json, [row(work, "transformers, sorted by length", runs, figures=figures, **limit)])


if __name__ == "__main__":
    main()
