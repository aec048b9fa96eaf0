"""Logs as ragas and deepeval write them themselves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrag_eval import score
from tests.front.test_score import found
from tests.report.test_consumers import called, foreign
from tests.worlds.logs import TURNS

WRITERS = Path(__file__).parent / "writers"


@pytest.mark.slow
@pytest.mark.parametrize("package", ["ragas", "deepeval"])
def test_the_files_of_a_package_are_read_as_they_are(package: str, tmp_path: Path) -> None:
    python = foreign(package.upper(), package)
    rows = [
        {
            "question": turn.question,
            "answer": turn.answer,
            "contexts": [text for _, text in turn.contexts],
            "reference": turn.reference,
        }
        for turn in TURNS
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows), "utf-8")
    folder = tmp_path / package
    folder.mkdir()
    called([python, WRITERS / f"{package}_writer.py", tmp_path / "rows.json", folder], tmp_path)
    # our own shape has no contexts of texts alone
    own = [
        {
            "query": row["question"],
            "reply": row["answer"],
            "passages": [{"text": text} for text in row["contexts"]],
            "answers": [row["reference"]],
        }
        for row in rows
    ]
    expected = found(score(own))
    written = sorted(folder.iterdir())
    assert len(written) == 3
    for path in written:
        assert found(score(path)) == expected, path.name
