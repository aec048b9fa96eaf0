"""What mteb reads from the files of a folder, as JSON: run by a Python that has mteb, which this project has not."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mteb  # type: ignore[import-not-found,unused-ignore]
from mteb.models.model_meta import ModelMeta  # type: ignore[import-not-found,unused-ignore]
from mteb.results import TaskResult  # type: ignore[import-not-found,unused-ignore]


def read(path: Path) -> dict[str, Any]:
    if path.name == "model_meta.json":
        meta = ModelMeta.model_validate_json_resolved(path.read_text("utf-8"))
        return {"model": meta.name, "revision": meta.revision, "framework": meta.framework}
    result = TaskResult.from_disk(path)
    try:
        score = result.get_score()
    except TypeError:
        score = None
    by = {code: None if score is None else result.get_score(languages=[code]) for code in result.languages}
    revision = result.dataset_revision
    return {"task": result.task_name, "score": score, "by": by, "revision": revision, "splits": result.eval_splits}


print(
    json.dumps(
        {
            "version": mteb.__version__,
            "read": {str(path): read(path) for path in sorted(Path(sys.argv[1]).rglob("*.json"))},
        }
    )
)
