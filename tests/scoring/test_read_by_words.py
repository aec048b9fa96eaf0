"""Metrics that files of languages decide: those that say so, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Claim, Grounding, Hit, RagDoc, Scored
from mrag_eval.languages import changed_languages, language
from mrag_eval.scoring import METRIC_NAMES, METRICS, read_by_words, task_record

HIT = Hit("p1", "en", "The tower is in Varn, and it is old.", 1.0, 1)
OPTIONS = ("Varn", "Sund", "Olm", "Brask")
TERRITORY = {"territory": "Varn", "claimants": list(OPTIONS), "claimant_langs": ["en"] * 4, "control_query": False,
             "controller": "Varn", "controller_lang": "en"}  # fmt: skip
# Each reply is read by one word or more of the package's file, or of the user's below.
REPLIES = (
    *("I don't know.", "Yes.", "No, it is not.", "The answer is B", "option B", "B or C", "zorp", "zorp B", "B zorp C"),
    *("the zorp is B", "Varn zorp", "I rule out A, B and C.", "It is Varn [1].", "Varn", "zorp Varn [1].", ""),
)


def rows() -> Iterator[Scored]:
    """Yield rows of every kind that a metric reads, for each reply."""
    for reply in REPLIES:
        for relevant, answers, options in (
            (("p1",), ("Varn",), OPTIONS),
            (("p9",), ("yes",), ()),
        ):
            chosen = {"choices": options, "gold_choice": 1} if options else {}
            doc = RagDoc("r", "Where?", "en", answers, relevant_ids=relevant, extra=TERRITORY, **chosen)
            claims = Grounding("en", (Claim(0, len(reply), "supported", 1.0, 1, "p1", "en"),)) if reply else None
            yield Scored(doc, reply, passages=(HIT,), grounding=claims, form="plain")


def scores(found: Sequence[Scored]) -> dict[str, Any]:
    """Return the value of every row, or its reason, by metric and by score of a task."""
    values = {name: metric.score(found) for name, metric in METRICS.items()}
    of_task = {
        name: [str(task_record([name], row.doc, row.answer, row.passages)) for row in found if row.doc.choices]
        for name in {*METRIC_NAMES} - {*METRICS}
    }
    return {**values, **of_task}


def own_words(folder: Path, content: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a file of English into a folder that the config file names."""
    folder.mkdir()
    (folder / "en.yaml").write_text(content, "utf-8")
    config = folder.with_suffix(".yaml")
    config.write_text(f"languages: {folder}\n", "utf-8")
    monkeypatch.setenv("MRAG_CONFIG", str(config))


def test_a_metric_that_changes_with_the_words_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every field of words is replaced, one at a time, and all at once."""
    found = list(rows())
    before = scores(found)
    english = language("en")
    assert english is not None
    changed: set[str] = set()
    # letters are labels, and no words
    fields = [field for field in english.words.__slots__ if getattr(english.words, field) and field != "letters"]
    for number, replaced in enumerate([*([field] for field in fields), fields]):
        lines = "".join(f"  {field}: zorp\n" for field in replaced)
        own_words(tmp_path / str(number), f"words:\n{lines}", monkeypatch)
        assert [*changed_languages(["en"])] == ["en"]
        after = scores(found)
        changed |= {name for name, values in after.items() if values != before[name]}
    declared = {name for name in before if read_by_words(name)}
    assert changed - declared == set()
    # these follow from the support of claims and from which answers are right, once all rows are scored
    assert declared - changed <= {"right_supported", "right_unsupported", "wrong_supported", "wrong_unsupported"}


@pytest.mark.parametrize(("content", "changes"), [("written_by: somebody else", []), ("name: Anglish", ["en"])])
def test_a_file_that_says_what_ships_changes_nothing(
    content: str, changes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_words(tmp_path / "own", content, monkeypatch)
    assert [*changed_languages(["en", "de"])] == changes
