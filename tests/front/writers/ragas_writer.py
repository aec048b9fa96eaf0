"""Write rows as files by ragas, run by a Python that has it: WRITER ROWS.json FOLDER."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ragas import EvaluationDataset, SingleTurnSample  # type: ignore[import-not-found,unused-ignore]

rows, folder = json.loads(Path(sys.argv[1]).read_text("utf-8")), Path(sys.argv[2])
dataset = EvaluationDataset(
    samples=[
        SingleTurnSample(
            user_input=row["question"],
            response=row["answer"],
            retrieved_contexts=row["contexts"],
            reference=row["reference"],
        )
        for row in rows
    ]
)
dataset.to_jsonl(str(folder / "rows.jsonl"))
dataset.to_csv(str(folder / "rows.csv"))
dataset.to_pandas().to_parquet(folder / "rows.parquet")
