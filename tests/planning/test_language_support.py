"""What is said of a language: the pieces, the next steps, and the lines of a run."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrag_eval.cli import Session, app
from mrag_eval.config import CorrectLanguage, split_config
from mrag_eval.languages import Language, known_languages
from mrag_eval.planning import Piece, language_support, unsupported
from mrag_eval.scoring import METRIC_NAMES


def pieces(code: str, setting: CorrectLanguage | None = None) -> dict[str, Piece]:
    found = language_support(code, setting)
    assert len({piece.name for piece in found}) == len(found)
    return {piece.name: piece for piece in found}


@pytest.mark.parametrize("code", [*known_languages(), "ml", "ig", "hi-Latn", "nn", "prs", "quy", "zh-Hans"])
def test_every_piece_that_is_missing_has_a_next_step(code: str) -> None:
    found = pieces(code)
    for piece in found.values():
        assert piece.what
        assert not (piece.ok and piece.fix)
        # Snowball's algorithms are what they are
        assert piece.fix or piece.ok is not False or piece.name == "stems"
    # a field that is added to the files is told
    assert len(found) >= 8 + len({each.name for each in fields(Language)} - {*("code", "name", "written_by"),
                                 *("checked_by", "words", "labels")})  # fmt: skip


def test_what_is_said_of_yoruba_swahili_and_german() -> None:
    yoruba, swahili, german = pieces("yo"), pieces("sw"), pieces("de")
    assert [yoruba[name].ok for name in ("file", "words of answers", "yes and no", "labels", "detector")] == [
        *(True, True, True, True, False)
    ]
    assert yoruba["detector"].what.startswith(
        "lid.176 recognises 2% of texts of 20 to 49 characters, 5% of texts of 50"
    )
    assert yoruba["detector"].fix == "judge.correct_language.detector: {yo: lingua} recognises 88% or more"
    # of Sundanese lingua knows nothing
    assert pieces("su")["detector"].fix.startswith("name the path of a fastText model")
    assert pieces("hi-Latn")["detector"].what == "the detector fasttext does not know Hindi in Latin script"
    assert pieces("hi-Latn")["detector"].fix.startswith("name the path of a fastText model")
    assert pieces("ml")["detector"].ok is None
    assert swahili["file"].what == "sw.yaml, the package's, written by a language model, checked by no speaker"
    assert all(piece.ok for piece in german.values())
    assert pieces("nn")["name in prompts"].what == "Norwegian Nynorsk"


def test_the_settings_of_detectors_are_followed() -> None:
    assert pieces("yo", CorrectLanguage(detector={"yo": "lingua"}))["detector"].ok
    # German replies of up to 19 characters are missed, and scored without a minimum
    assert pieces("de", CorrectLanguage(min_chars=None))["detector"].ok is False
    assert pieces("de", CorrectLanguage(min_chars=20))["detector"].ok
    paper = pieces("sw", CorrectLanguage(min_recognised=None))["detector"]
    assert "the others count as wrong" in paper.what
    assert pieces("de", CorrectLanguage(letters_only=True))["detector"].ok is None


def test_a_run_has_one_line_for_each_piece_that_its_metrics_need() -> None:
    def lines(codes: list[str], **blocks: object) -> list[str]:
        config = {"task": "t", "retrieval": {"mode": "no_ir"}, "data": {"benchmark": "jsonl"}, **blocks}
        blocks = split_config(config, METRIC_NAMES)[1]
        return unsupported(codes, blocks.metrics, blocks.judge.correct_language)

    assert lines(["yo", "su", "de"], metrics=["match"]) == []
    assert lines(["de", "en"], metrics=["correct_language", "acc", "yes_no"]) == []
    found = lines(["ig", "ml", "de", "ibo"], metrics=["acc", "yes_no"])
    assert [line.partition(":")[0] for line in found] == [
        *("words of answers for ig, ml", "yes and no for ig, ml", "labels for ml"),
    ]
    detectors = lines(["yo", "th", "ml", "de"], metrics=["correct_language"])
    assert detectors == [
        "detector for ml, th: the reliability of lid.176 is not measured",
        f"detector for yo: {pieces('yo')['detector'].what}; {pieces('yo')['detector'].fix}",
    ]
    assert all("\n" not in line for line in detectors)


def said(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["languages", *arguments], obj=Session())
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = said("yor")
    assert one.splitlines()[0] == "Yoruba (yo)"
    assert all(piece.what in one and piece.fix in one for piece in language_support("yo"))
    table = said("yo", "zh_tw", "yor")
    assert sum(line.startswith("| yo ") for line in table.splitlines()) == 1
    assert "| zh-Hant |" in table
    assert set(json.loads(said("--json", "yo", "de"))) == {"yo", "de"}
    assert set(json.loads(said("--json"))) == set(known_languages())
    tasks = said("--tasks", "xquad_rag")
    assert [line.split("|")[1].strip() for line in tasks.splitlines()[2:12]] == [
        *("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
    ]
    # a file of the user's is told, with who wrote it
    (tmp_path / "yo.yaml").write_text("name: Yoruba\nwritten_by: a reader\nwords: {yes: a, no: b}\n", "utf-8")
    config = tmp_path / "mrag.yaml"
    config.write_text(f"languages: {tmp_path}/own\n", "utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "yo.yaml").rename(tmp_path / "own" / "yo.yaml")
    monkeypatch.setenv("MRAG_CONFIG", str(config))
    own = said("yo")
    assert f"yo.yaml, {tmp_path}/own/yo.yaml, written by a reader, checked by no speaker" in own
    assert "1 and 1 words" in own
