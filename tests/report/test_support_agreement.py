"""People's labels of sentences and spans beside what a classifier says of the same answers, from files to figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mrag_eval import score
from mrag_eval.cli import Session, app
from mrag_eval.core import Claim, Span
from mrag_eval.metrics import fleiss_kappa
from mrag_eval.models import Asked
from mrag_eval.platform import DataError
from mrag_eval.report import agreement, of_whole_answers, read_samples, support_agreement, write_pooled_sheet
from tests.worlds.classifiers import Holds
from tests.worlds.labelled import NO, OPEN, SENTENCES, YES, memerag, psiloqa
from tests.worlds.logs import write_log

ORDERS = [(0, 1, 2), (2, 0, 1), (1, 2, 0), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
# a label of each sentence of a row, by the row
LABELS = [
    (YES, NO, YES),
    (YES, YES, NO),
    (NO, NO, YES),
    (OPEN, YES, NO),
    (YES, NO, NO),
    (NO, YES, YES),
    (YES, YES, YES),
]


class Words(Holds):
    """A checker that marks every word of a claim that no passage holds."""

    def _claim(self, asked: Asked, span: Span) -> Claim:
        parts, at = [], span.start
        for word in asked.answer[span.start : span.end].split(" "):
            if word and not any(word.strip(".,") in passage for passage in asked.passages):
                parts.append(Span(at, at + len(word)))
            at += len(word) + 1
        return Claim(span.start, span.end, "not_found" if parts else "supported", 0.5, unsupported=tuple(parts))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRAG_CACHE", str(tmp_path / "cache"))


def scored(rows: Path, out: Path, checker: Holds, monkeypatch: pytest.MonkeyPatch, **more: Any) -> Path:
    """Score a file with a checker; return the samples."""
    monkeypatch.setattr("mrag_eval.models.load_checker", lambda block: checker)
    score(rows, ["grounded"], grounded="any", output=out, **more)
    (path,) = out.rglob("samples_*.jsonl")
    return path


def sentence_rows(lang: str, annotators: int = 1) -> list[dict[str, Any]]:
    rows = []
    for i, order in enumerate(ORDERS * 3):
        labels: Any = LABELS[i % len(LABELS)]
        if annotators > 1:
            # each annotator has the labels of another row
            labels = [[LABELS[(i + n) % len(LABELS)][place] for n in range(annotators)] for place in range(3)]
        kept = order[: 1 + i % 3]
        labels = labels[: len(kept)]
        texts = [SENTENCES[lang][place].strip() + (" ", "\n\n", "")[n] for n, place in enumerate(kept)]
        rows.append(memerag(f"{lang}{i}#0", lang, labels, texts))
    # a sentence without a word is one for people, and for no classifier
    rows[0]["answer"].insert(0, {**rows[0]["answer"][0], "sentence": "[\n"})
    return rows


def span_rows() -> list[dict[str, Any]]:
    answers = [
        ("en", " The mill of Olm was built in 1764.", [(13, 16)]),
        ("en", "The mill of Tarn was built in 1764.", []),
        ("de", "Die Mühle von Olm wurde 1765 gebaut. ", [(14, 17), (24, 28)]),
        ("de", "Die Mühle von Tarn wurde 1764 gebaut.", [(0, 9)]),
        ("de", "Seither wird dort Roggen gemahlen.", [(13, 24)]),
        ("en", "It grinds rye, and rye alone.", []),
    ]
    return [psiloqa(f"p{i}", *row) for i, row in enumerate(answers)]


def cli(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["judge", "agree", *map(str, arguments)], obj=Session())
    assert done.exit_code == 0, done.output
    return done.output


# ---------------------------------------------------------------- sentences


def compared(rows: Iterable[Mapping[str, Any]], samples: Path) -> list[tuple[str, str, bool, bool]]:
    """Return id, language, classifier's and people's verdict of each sentence that has both, from the files alone."""
    out = []
    lines = {line["rows"]["row"]: line["rows"] for line in map(json.loads, samples.read_text("utf-8").splitlines())}
    for row in rows:
        record, text, at = lines[str(row["query_id"])], "".join(part["sentence"] for part in row["answer"]), 0
        for part in row["answer"]:
            own = {place for place in range(at, at + len(part["sentence"])) if text[place].isalnum()}
            at += len(part["sentence"])
            says = [
                claim["verdict"] == "supported"
                for claim in record["grounding"]["claims"]
                if own & {*range(claim["start"], claim["end"])}
            ]
            given = part["factuality"] if isinstance(part["factuality"], list) else [part["factuality"]]
            (label, most), *_ = Counter(given).most_common()
            if says and 2 * most > len(given) and label != OPEN:
                out.append((record["row"], record["cell"]["query_lang"], all(says), label == YES))
    return out


@pytest.mark.parametrize("annotators", [1, 5])
def test_sentences_are_compared_as_scikit_learn_does(
    annotators: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score

    files = {lang: write_log(tmp_path / f"{lang}.jsonl", sentence_rows(lang, annotators)) for lang in ("de", "en")}
    samples = [scored(path, tmp_path / lang, Holds(lang), monkeypatch, lang=lang) for lang, path in files.items()]
    found = support_agreement(samples, [*files.values()])
    told = [one for lang, path in zip(files, samples, strict=True)
            for one in compared(sentence_rows(lang, annotators), path)]  # fmt: skip
    assert len(told) > 25
    assert {*found.by_language} == {"all", "de", "en"}
    for cell, measures in found.by_language.items():
        ours, theirs = zip(*((a, b) for _, lang, a, b in told if cell in ("all", lang)), strict=True)
        assert measures["kappa"].value == pytest.approx(cohen_kappa_score(ours, theirs))
        assert measures["balanced_accuracy"].value == pytest.approx(balanced_accuracy_score(theirs, ours))
        assert measures["says_supported"].value == pytest.approx(sum(ours) / len(ours))
        assert measures["agreement"].value == pytest.approx(sum(map(bool.__eq__, ours, theirs)) / len(ours))
        assert {one.n for one in measures.values()} == {len(ours)}
        for name, one in measures.items():
            assert one.low is not None, (cell, name, one)
            assert one.low <= (one.value or 0) <= (one.high or 0)
    assert (found.rows, found.sentences, found.annotators) == (len({one[0] for one in told}), len(told), annotators)
    labels = [part["factuality"] for lang in files for row in sentence_rows(lang, annotators) for part in row["answer"]]
    if annotators == 1:
        assert found.between_people is None
        # the brackets are people's first sentence of one row of each language
        assert found.left_out == {"challenging to determine": labels.count(OPEN), "in no claim": 2}
        assert found.human_supported is not None
        assert found.human_supported.value == pytest.approx(sum(b for *_, b in told) / len(told))
    else:
        sure = [given for given in labels if OPEN not in given]
        assert found.between_people is not None
        assert found.between_people.value == pytest.approx(fleiss_kappa(sure).value)
        assert found.between_people.n == len(sure)
        assert sum(found.left_out.values()) + found.sentences == len(labels)


def test_the_command_prints_both_layouts_and_counts_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = sentence_rows("en", 3)
    samples = scored(write_log(tmp_path / "scored.jsonl", rows), tmp_path / "out", Holds(), monkeypatch, lang="en")
    others = [memerag(f"other{i}", "en", [YES]) for i in range(5)]
    human = write_log(tmp_path / "people.jsonl", [*rows[1:], *others])
    said = cli(samples, "--human", human)
    found = support_agreement([samples], [human])
    assert said.startswith(
        f"rows       {found.rows} checked and labelled, {found.sentences} sentences · 1 unlabelled, "
    )
    assert said.splitlines()[0].endswith(", 5 unmatched (other0, other1, other2, ...)")
    assert "\nhumans     " in said
    assert "\nannotators 3, Fleiss' kappa " in said
    head, line = said.splitlines()[3:5]
    assert head.split() == ["balanced", "accuracy", "kappa", "agreement", "says", "supported", "n"]
    assert line.split()[0] == "en"
    as_json = json.loads(cli(samples, "--human", human, "--json"))
    assert (as_json["sentences"], as_json["unmatched"]) == (found.sentences, [f"other{i}" for i in range(5)])

    spans = write_log(tmp_path / "spans.parquet", span_rows())
    marked = scored(spans, tmp_path / "spans", Words("words"), monkeypatch)
    said = cli(marked, "--human", spans)
    assert said.startswith("rows       6 checked and labelled\n")
    assert said.splitlines()[1].split() == ["span", "f1", "iou", "n"]
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["all", "de", "en"]


# ---------------------------------------------------------------- spans


def test_spans_are_compared_by_character_as_scikit_learn_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.metrics import f1_score, jaccard_score

    rows = span_rows()
    path = write_log(tmp_path / "spans.jsonl", rows)
    samples = scored(path, tmp_path / "out", Words(), monkeypatch)
    found = support_agreement([samples], [path])
    assert (found.rows, found.sentences, found.left_out) == (6, 0, {})
    ours = {one.record.row: one.record.grounding for one in read_samples(samples)}
    by_lang: dict[str, list[tuple[float, float]]] = {"all": []}
    for row in rows:
        text, grounding = row["llm_answer"], ours[row["id"]]
        assert grounding is not None
        # the classifier's places are those of the answer without the white space around it
        shift = len(text) - len(text.lstrip())
        marks = [[False] * len(text) for _ in range(2)]
        for claim in grounding.claims:
            for part in claim.unsupported:
                marks[0][part.start + shift : part.end + shift] = [True] * (part.end - part.start)
        for start, end in row["labels"]:
            marks[1][start:end] = [True] * (end - start)
        both = tuple(of(marks[1], marks[0], zero_division=1.0) for of in (f1_score, jaccard_score))
        by_lang["all"].append(both)
        by_lang.setdefault(row["lang"], []).append(both)
    assert {*found.by_language} == {*by_lang}
    for cell, values in by_lang.items():
        for place, name in enumerate(("span_f1", "iou")):
            one = found.by_language[cell][name]
            assert (one.value, one.n) == (pytest.approx(sum(both[place] for both in values) / len(values)), len(values))
    # the word that is wrong in the first answer is where people marked it
    assert by_lang["en"] == [(1.0, 1.0), (1.0, 1.0), (0.0, 0.0)]


@pytest.mark.parametrize("count", [1, 2])
def test_one_sentence_is_no_sentences(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [memerag("m", "en", [[YES, NO, YES], [NO, NO, YES]][:count])]
    samples = scored(write(tmp_path, "log.jsonl", rows), tmp_path / "out", Holds(), monkeypatch)
    said = cli(samples, "--human", tmp_path / "log.jsonl")
    noun = "1 sentence" if count == 1 else "2 sentences"
    assert f"1 checked and labelled, {noun}\n" in said
    assert f"({noun} that all labelled)" in said


# ---------------------------------------------------------------- bad input


def write(folder: Path, name: str, rows: Sequence[Any]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def changed(row: Mapping[str, Any], place: int, **changes: Any) -> dict[str, Any]:
    """Return a row of MEMERAG with a sentence changed; None takes a key away."""
    parts = [dict(part) for part in row["answer"]]
    parts[place] = {key: value for key, value in {**parts[place], **changes}.items() if value is not None}
    return {**row, "answer": parts}


_M, _P = memerag("m", "en", [YES, NO, OPEN]), psiloqa("p", "en", "It grinds spelt.", [(3, 9)])
# rows of labels, and the line that they end with
BAD: Mapping[str, tuple[Sequence[Any], str]] = {
    "other columns": ([_M, {"id": "a", "label": "correct"}], "line 2: neither MEMERAG's columns nor PsiloQA's: id,"),
    "both layouts": ([_M, _P], "line 2: the columns of PsiloQA, after those of MEMERAG"),
    "an id twice": ([_M, {**_M, "query": "Again?"}], "line 2: the id 'm' comes a second time"),
    "no id": ([_M, {key: value for key, value in _M.items() if key != "query_id"}], "line 2: it has no id"),
    "no answer": ([_P, {**_P, "id": "q", "llm_answer": None}], "line 2: it has no answer"),
    "no sentence": ([_M, {**changed(_M, 1, sentence=None), "query_id": 2}], "line 2: 'answer' holds no text"),
    "a sentence of nothing": ([{**_M, "answer": [{**_M["answer"][0], "sentence": None}]}], "line 1: 'answer' holds no"),
    "no label": ([changed(_M, 2, factuality=None)], r"line 1, answer\[2\]: factuality is None"),
    "an unknown label": ([changed(_M, 1, factuality="Maybe")], r"line 1, answer\[1\]: factuality is 'Maybe'"),
    "one of several": ([changed(_M, 0, factuality=[YES, 3])], r"line 1, answer\[0\]: factuality is 3"),
    "no label of several": ([changed(_M, 0, factuality=[])], r"line 1, answer\[0\]: factuality is \[\]"),
    "an empty label": ([changed(_M, 0, factuality="")], r"line 1, answer\[0\]: factuality is ''"),
    "sentences as text": ([{**_M, "answer": json.dumps(_M["answer"])}], "line 1: 'answer' is no list of"),
    "a sentence as text": ([{**_M, "answer": [_M["answer"][0], '{"sentence": "a"}']}], "'answer' holds no text"),
    "no spans": ([{key: value for key, value in _P.items() if key != "labels"}], "line 1: 'labels' is None, no list"),
    "spans as text": ([{**_P, "labels": "3-9"}], "line 1: 'labels' is '3-9', no list of spans"),
    "half a span": ([{**_P, "labels": [[3]]}], r"line 1: a span of 'labels' is \[3\]"),
    "a span of words": ([{**_P, "labels": [["It", "grinds"]]}], r"line 1: a span of 'labels' is \['It', 'grinds'\]"),
    "a span of numbers": ([{**_P, "labels": [3, 9]}], "line 1: a span of 'labels' is 3"),
    "behind the answer": ([{**_P, "labels": [[3, 17]]}], r"line 1: a span of 'labels' is \[3, 17\], in an answer of"),
    "before the answer": ([{**_P, "labels": [[-1, 4]]}], r"line 1: a span of 'labels' is \[-1, 4\]"),
    "backwards": ([{**_P, "labels": [[9, 3]]}], r"line 1: a span of 'labels' is \[9, 3\]"),
    "another answer": ([changed(_M, 1, sentence="It grinds rye.")],
                       "line 1: the answer of 'm' is not the one that was scored"),
    "no row of the run": ([memerag("z", "en", [YES])], r"none of its 1 ids is a scored row of .* \(one is 'm'\)"),
    "nothing": ([], "holds no labels"),
    "no row": ([3], "line 1: expected a JSON object"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_labels_are_one_line_with_file_and_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, said = BAD[name]
    samples = scored(write(tmp_path, "log.jsonl", [_M]), tmp_path / "out", Holds(), monkeypatch)
    path = write(tmp_path, "people.jsonl", rows)
    with pytest.raises(DataError, match=said) as caught:
        support_agreement([samples], [path])
    assert "\n" not in caught.value.message
    assert caught.value.message.startswith(str(path))
    # what is no JSON object is told as in any file
    assert caught.value.next_step or name == "no row"
    # a step that the command has
    assert "--columns" not in str(caught.value.next_step)


def test_runs_without_claims_and_sheets_beside_answers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "log.jsonl", [_M])
    score(path, ["copied"], output=tmp_path / "out")
    (plain,) = (tmp_path / "out").rglob("samples_*.jsonl")
    with pytest.raises(DataError, match="no checker of support read these answers") as caught:
        support_agreement([plain], [path])
    assert "--grounded MODEL" in str(caught.value.next_step)
    with pytest.raises(DataError, match="sheets, and files of whole answers"):
        of_whole_answers([path, tmp_path / "people.csv"])
    hashed = scored(path, tmp_path / "hashed", Holds(), monkeypatch, hash_texts=True)
    with pytest.raises(DataError, match="line 1: the answer of 'm' is not the one that was scored, 'sha256"):
        support_agreement([hashed], [path])


@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet", "jsonl.gz", "JSONL"])
def test_the_ending_tells_labels_of_whole_answers_from_sheets(ending: str) -> None:
    assert of_whole_answers([Path(f"people.{ending}")])
    assert not of_whole_answers([Path("people.csv"), Path("people.tsv"), Path("people.txt")])


def test_sheets_of_labels_are_read_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = scored(write(tmp_path, "log.jsonl", [_M]), tmp_path / "out", Holds(), monkeypatch)
    (tmp_path / "people.csv").write_text("id,label\nm,correct\n", "utf-8")
    said = "the claims of these answers were checked, and no panel judged the answers as a whole"
    for asks in (
        lambda: agreement([samples], [tmp_path / "people.csv"]),
        lambda: write_pooled_sheet([samples], tmp_path / "sheet.csv"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            asks()
        assert "--human FILE.jsonl" in str(caught.value.next_step)
        assert "judge answers" in str(caught.value.next_step)
