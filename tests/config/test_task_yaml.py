"""Task files read without the harness: as the harness reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lm_eval.tasks import TaskManager

from mrag_eval.config import listed_by, read_task_yaml
from mrag_eval.harness import read_task_file
from mrag_eval.platform import tasks_folder

FILES = [path for path in sorted(tasks_folder().rglob("*.yaml")) if path.name != "_matrix.yaml"]


def without_class(config: dict[str, Any]) -> dict[str, Any]:
    # the harness puts the folder before the name of a function
    return {key: value for key, value in config.items() if key != "class"}


@pytest.mark.parametrize("with_includes", [True, False])
def test_every_task_file_reads_as_by_the_harness(with_includes: bool) -> None:
    for path in FILES:
        ours, theirs = (
            read_task_yaml(path, with_includes=with_includes),
            read_task_file(path, with_includes=with_includes),
        )
        assert without_class(ours) == without_class(theirs), path
        assert ("class" in ours) == ("class" in theirs)


def test_of_two_included_files_the_later_one_counts_and_a_circle_is_refused(tmp_path: Path) -> None:
    for name, text in (
        ("a.yaml", "x: 1\ny: {p: 1}\n"),
        ("b.yaml", "x: 2\n"),
        ("both.yaml", "include: [a.yaml, b.yaml]\ntask: both\ny: {q: !function some.thing}\n"),
        ("circle.yaml", "include: round.yaml\n"),
        ("round.yaml", "include: circle.yaml\n"),
        ("list.yaml", "- 1\n"),
    ):
        (tmp_path / name).write_text(text, "utf-8")
    assert read_task_yaml(tmp_path / "both.yaml") == {"x": 2, "y": {"q": "some.thing"}, "task": "both"}
    for name in ("circle.yaml", "list.yaml"):
        with pytest.raises(ValueError, match=name.partition(".")[0]):
            read_task_yaml(tmp_path / name)


def test_tasks_and_groups_of_a_manager_are_listed_by_name_and_tags_are_not(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("{task: own, tag: mine, dataset_path: json}", "utf-8")
    (tmp_path / "both.yaml").write_text("{group: both, task: [own]}", "utf-8")
    listed = listed_by(TaskManager(include_path=str(tmp_path), include_defaults=False))
    assert set(listed) == {"own", "both"}
    assert len(listed) == 2
    assert "mine" not in listed
    assert {name: one.is_group for name, one in listed.items()} == {"own": False, "both": True}
    assert listed["own"].path == tmp_path / "own.yaml"
    assert listed["own"].tags == ("mine",)
    with pytest.raises(KeyError):
        listed["mine"]
