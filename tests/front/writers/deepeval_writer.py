"""Write rows as files by deepeval, run by a Python that has it: WRITER ROWS.json FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from deepeval.dataset import EvaluationDataset  # type: ignore[import-not-found,unused-ignore]
from deepeval.test_case import LLMTestCase  # type: ignore[import-not-found,unused-ignore]

rows, folder = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
dataset = EvaluationDataset()
for row in rows:
    dataset.add_test_case(
        LLMTestCase(
            input=row["question"],
            actual_output=row["answer"],
            retrieval_context=row["contexts"],
            expected_output=row["reference"],
        )
    )
for form in ("json", "jsonl", "csv"):
    dataset.save_as(file_type=form, directory=str(folder), file_name="rows", include_test_cases=True)
