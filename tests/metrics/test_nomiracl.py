"""NoMIRACL's reading of replies: by hand, and on the published replies of eleven models."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from mrag_eval.metrics import nomiracl_reading
from mrag_eval.platform import MetricError


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("Yes, answer is present", "present"),
        ("YES, ANSWER IS PRESENT in [3].", "present"),
        ("\nYes,\tanswer\nis present", "present"),
        ("I don't know.", "absent"),
        ("Well: i DON'T\nknow", "absent"),
        # both sentences, whichever is repeated
        ("I don't know. Yes, answer is present. Yes, answer is present.", "invalid"),
        # other forms of the sentence
        ("The answer is present in context 2", "present"),
        ("The answer is not present", "absent"),
        # a reply that is hardly more than a number
        ("[7]", "present"),
        ("See [12].", "present"),
        ("Look: [12]", "invalid"),
        ("7", "invalid"),
        # a refusal in other words, with another apostrophe, or in another language
        ("I do not know", "invalid"),
        ("I don’t know", "invalid"),
        ("Ich weiß es nicht.", "invalid"),
        ("Yes,  answer is present", "present"),
        ("", "invalid"),
    ],
)
def test_a_reply_is_read_as_upstream_reads_it(reply: str, said: str) -> None:
    assert nomiracl_reading(reply) == said


def test_a_reply_is_text() -> None:
    with pytest.raises(MetricError, match="reply must be a string"):
        nomiracl_reading(None)  # type: ignore[arg-type]


def test_the_published_replies_give_every_published_count(test_data: Path, reference: Path) -> None:
    """Seven languages, two subsets, eleven models: each count of the reference, and no reply beside them."""
    expected = json.loads((reference / "nomiracl_scores.json").read_text(encoding="utf-8"))["languages"]
    found: dict[str, dict[str, dict[str, dict[str, int]]]] = {}
    for language in expected:
        found[language] = {}
        for subset, right, wrong in (("relevant", "present", "absent"), ("non_relevant", "absent", "present")):
            file = test_data / "nomiracl" / f"{subset}.{language}.test.vanilla_prompt.jsonl.gz"
            said: dict[str, Counter[str]] = {}
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                for line in lines:
                    for model, reply in json.loads(line)["results"].items():
                        said.setdefault(model, Counter())[nomiracl_reading(reply)] += 1
            found[language][subset] = {
                model: {"n": n.total(), "correct": n[right], "wrong": n[wrong], "invalid": n["invalid"]}
                for model, n in said.items()
            }
    counted = {
        language: {subset: of[subset] for subset in ("relevant", "non_relevant")} for language, of in expected.items()
    }
    assert found == counted
    assert sum(len(models) for subsets in found.values() for models in subsets.values()) == 7 * 2 * 11
