"""Classifiers of support: loading, windows, batches, verdicts and spans, and whether a right one separates answers."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.config import Grounded
from mrag_eval.core import Claim, Span
from mrag_eval.models import Asked, load_checker
from mrag_eval.models.grounding._load import EntailmentClassifier, TokenClassifier
from mrag_eval.models.grounding._pairs import PairClassifier, WindowPair, WindowRead, windows
from mrag_eval.platform import ConfigError
from mrag_eval.scoring._grounding import claims_of
from tests.worlds.classifiers import ENTAILMENT, EntailmentRule, Rule, classifier_folder

pytest.importorskip("torch")

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ru", "tr", "vi", "zh")
# Languages that the first stage reads all articles of: three scripts, one without spaces. The second reads the others.
FIRST = ("ar", "de", "zh")
HEADS = {
    "tokens": ("BertForTokenClassification", None),
    "tokens of ModernBERT": ("ModernBertForTokenClassification", None),
    "entailment": ("BertForSequenceClassification", ENTAILMENT),
}
TEXTS = (
    "The lighthouse of Varn was built in 1841. The bakery in Olm sells rye bread only.",
    "Der Leuchtturm von Varn wurde 1841 gebaut. Die Fähre nach Sund legt an Pier sieben ab.",
)


def asked(answer: str, *passages: str, question: str = "", lang: str = "en") -> Asked:
    return Asked(question, answer, tuple(claims_of(answer, lang)), passages)


def found(checker: PairClassifier, *rows: Asked) -> list[tuple[Claim, ...]]:
    claims = checker.findings(rows)
    assert not any(isinstance(one, str) for one in claims), claims
    return claims  # type: ignore[return-value]


def by_rule(folder: Path, texts: Sequence[str], kind: str = "tokens", **block: Any) -> PairClassifier:
    """Return a classifier that reads pairs as any other, and whose model is a rule."""
    head, labels = HEADS[kind]
    folder = classifier_folder(folder, texts, head, labels=labels, longest=block.get("max_length", 128))
    checker: Any = load_checker(Grounded(model=str(folder), **block))
    checker._model = EntailmentRule() if kind == "entailment" else Rule()
    return checker  # type: ignore[no-any-return]


@pytest.fixture(autouse=True)
def _loaded_anew() -> None:
    load_checker.cache_clear()


# ------------------------------------------------------------------ loading


@pytest.mark.parametrize("kind", HEADS)
def test_a_folder_of_either_kind_is_loaded_and_read(kind: str, tmp_path: Path) -> None:
    head, labels = HEADS[kind]
    folder = classifier_folder(tmp_path / "model", TEXTS, head, labels=labels)
    checker = load_checker(Grounded(model=str(folder)))
    assert isinstance(checker, EntailmentClassifier if kind == "entailment" else TokenClassifier)
    rows = [asked("It was built in 1841. Olm sells bread!", *TEXTS), asked("Varn", TEXTS[0])]
    for row, claims in zip(rows, found(checker, *rows), strict=True):
        assert [(one.start, one.end) for one in claims] == [(one.start, one.end) for one in row.claims]
        for one in claims:
            assert 0 <= one.support <= 1
            assert (one.verdict == "supported") == (not one.unsupported)
            assert (one.passage is None) == (one.verdict == "not_found")
            assert all(one.start <= part.start < part.end <= one.end for part in one.unsupported)


@pytest.mark.parametrize("kind", HEADS)
def test_findings_do_not_depend_on_what_is_read_beside(kind: str, tmp_path: Path) -> None:
    head, labels = HEADS[kind]
    folder = classifier_folder(tmp_path / "model", TEXTS, head, labels=labels, longest=64)
    checker = load_checker(Grounded(model=str(folder), batch_size=3))
    rows = [asked(answer, *TEXTS, question="Wo?") for answer in ("Varn", "It was built. In Olm. At Sund.", "rye bread")]
    rows.append(asked("The bakery.", " ".join(TEXTS * 5)))
    for alone, together in zip([found(checker, row)[0] for row in rows], found(checker, *rows), strict=True):
        assert [one.verdict for one in alone] == [one.verdict for one in together]
        assert [one.support for one in alone] == pytest.approx([one.support for one in together], abs=1e-5)


def test_a_classifier_is_what_its_folder_holds(tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path / "one" / "model", TEXTS)
    first = load_checker(Grounded(model=str(folder))).identity
    # wherever it lies, and whatever it is called
    for place in ("two/model", "another name"):
        copy = shutil.copytree(folder, tmp_path / place)
        assert load_checker(Grounded(model=str(copy))).identity == first, place
        assert load_checker(Grounded(model=str(copy))).name == copy.name
    # other weights of the same size and age
    other = classifier_folder(tmp_path / "three" / "model", TEXTS, seed=1)
    for name in os.listdir(folder):
        assert (other / name).stat().st_size == (folder / name).stat().st_size, name
        shutil.copystat(folder / name, other / name)
    assert load_checker(Grounded(model=str(other))).identity != first
    # and by every setting, but for those of this machine
    changes = {"threshold": 0.4, "template": "{passage}", "max_length": 64, "batch_size": 1, "revision": "abc",
               "device": "auto", "model": str(other), "by": "classifier"}  # fmt: skip
    for key in Grounded.model_fields:
        found = load_checker(Grounded.model_validate({"model": str(folder), key: changes[key]})).identity
        assert (found == first) is (key in ("batch_size", "by", "device", "revision")), key


@pytest.mark.parametrize(
    ("head", "labels", "said"),
    [
        ("BertForSequenceClassification", {0: "no", 1: "yes"}, "has the labels 0 no, 1 yes; expected entailment, "),
        ("BertForSequenceClassification", {0: "entailment", 1: "neutral", 2: "other"}, "0 entailment, 1 neutral, 2 o"),
        ("BertForTokenClassification", {0: "O", 1: "B", 2: "I"}, "has the labels 0 O, 1 B, 2 I; expected supported"),
        ("BertForTokenClassification", {0: "O", 1: "B-PER"}, "the labels 0 O, 1 B-PER; expected supported and hallu"),
        ("BertForMaskedLM", {0: "a", 1: "b"}, "is BertForMaskedLM; expected ...ForTokenClassification or ...ForSeq"),
    ],
)
def test_another_model_is_refused_in_one_line(head: str, labels: dict[int, str], said: str, tmp_path: Path) -> None:
    folder = classifier_folder(tmp_path / "model", TEXTS, head, labels=labels)
    with pytest.raises(ConfigError) as error:
        load_checker(Grounded(model=str(folder)))
    assert said in str(error.value)
    assert "\n" not in error.value.message


# Names that say that a token is supported, each beside those that say that it is not.
SUPPORTED = ("supported", "Grounded", "FAITHFUL", "consistent", "not_hallucinated", "No hallucination", "factual")
HALLUCINATED = ("hallucinated", "Hallucination", "UNSUPPORTED", "not supported", "non-factual", "unfaithful")


@pytest.mark.parametrize("first", [True, False])
def test_names_say_which_label_marks_what_is_not_supported(first: bool) -> None:
    for good, bad in itertools.product(SUPPORTED, HALLUCINATED):
        labels = dict(enumerate((good, bad) if first else (bad, good)))
        assert TokenClassifier.numbers(labels) == [1 if first else 0], labels


def test_of_labels_without_names_1_marks_it_and_others_say_nothing() -> None:
    for labels in ({0: "LABEL_0", 1: "LABEL_1"}, {0: "0", 1: "1"}):
        assert TokenClassifier.numbers(labels) == [1]
    names = (*SUPPORTED[:2], *HALLUCINATED[:2])
    for name, other in itertools.product(names, ("O", "B-PER", "LABEL_0", "LABEL_1", "0", "1", "", "supporter")):
        for labels in ({0: name, 1: other}, {0: other, 1: name}, {0: other, 1: other}, {0: name, 1: name}):
            assert TokenClassifier.numbers(labels) is None, labels
    assert TokenClassifier.numbers({0: "LABEL_1", 1: "LABEL_0"}) is None
    assert TokenClassifier.numbers({0: "supported", 1: "hallucinated", 2: "unsupported"}) is None


def test_labels_the_other_way_round_are_read_the_other_way_round(tmp_path: Path) -> None:
    labels = {0: "hallucinated", 1: "supported"}
    checker: Any = load_checker(Grounded(model=str(classifier_folder(tmp_path / "model", TEXTS, labels=labels))))
    rule = Rule()
    checker._model = lambda **given: SimpleNamespace(logits=rule(**given).logits.flip(-1))
    (claims,) = found(checker, asked("Varn was built in 1841. Olm in Varn.", TEXTS[0]))
    assert [claim.verdict for claim in claims] == ["supported", "not_found"]


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"classifier .*nothing cannot be loaded"):
        load_checker(Grounded(model=str(tmp_path / "nothing")))


# ------------------------------------------------------------------ windows


@given(tokens=st.integers(1, 400), room=st.integers(4, 120))
def test_windows_cover_a_text_and_overlap(tokens: int, room: int) -> None:
    offsets = [(3 * n, 3 * n + 2) for n in range(tokens)]
    found = windows(offsets, room)
    sizes = [sum(start <= low and high <= end for low, high in offsets) for start, end in found]
    assert max(sizes) <= room
    assert all(any(start <= low and high <= end for start, end in found) for low, high in offsets)
    for (_, end), (start, _) in itertools.pairwise(found):
        shared = sum(start <= low and high <= end for low, high in offsets)
        assert shared == room // 4
    # so a run of that many tokens stands whole in one of them
    run = room // 4 + 1
    for at in range(tokens - run + 1):
        assert any(s <= offsets[at][0] and offsets[at + run - 1][1] <= e for s, e in found)


@pytest.mark.parametrize("kind", ["tokens", "entailment"])
def test_support_is_found_wherever_it_stands(kind: str, tmp_path: Path) -> None:
    filler = [f"w{n}" for n in range(300)]
    claim = "Odile Brandt built seven lighthouses"
    checker: Any = by_rule(tmp_path, [" ".join(filler), claim], kind, max_length=64)
    rows = [asked(claim, "w1 w2", " ".join([*filler[:at], claim, *filler[at:]])) for at in range(0, 301, 7)]
    for (one,) in found(checker, *rows):
        assert (one.verdict, one.passage, one.unsupported) == ("supported", 2, ())
    assert max(width for _, width in checker._model.shapes) <= 64
    # without it, nothing supports the claim
    ((one,),) = found(checker, asked(claim, " ".join(filler)))
    assert one.verdict == ("not_found" if kind == "tokens" else "contradicted")
    assert one.unsupported == (Span(0, len(claim)),)


def test_batches_are_of_about_equal_lengths(tmp_path: Path) -> None:
    checker: Any = by_rule(tmp_path, TEXTS, batch_size=4)
    found(checker, *[asked("Varn", " ".join(["Olm"] * size)) for size in (90, 1, 80, 2, 70, 3, 60, 4)])
    assert [count for count, _ in checker._model.shapes] == [4, 4]
    assert [width > 60 for _, width in checker._model.shapes] == [True, False]


# ------------------------------------------------------------------ verdicts and spans


class _Fixed:
    """A model of entailment whose label depends on the first word of the premise."""

    def __init__(self, by_word: dict[int, int]) -> None:
        self.by_word = by_word

    def __call__(self, input_ids: Any, **_: Any) -> Any:
        import torch

        logits = torch.zeros((len(input_ids), 3))
        for row, ids in enumerate(input_ids.tolist()):
            logits[row, self.by_word[ids[1]]] = 3.0
        return SimpleNamespace(logits=logits)


def test_support_by_one_passage_counts_whatever_others_say(tmp_path: Path) -> None:
    checker: Any = by_rule(tmp_path, ["yes no maybe"], "entailment")
    ids = {word: checker._tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no", "maybe")}
    checker._model = _Fixed({ids["maybe"]: 0, ids["yes"]: 1, ids["no"]: 2})
    expected = {
        ("maybe", "no", "yes"): ("supported", 3),
        ("no", "yes"): ("supported", 2),
        ("yes", "yes"): ("supported", 1),
        ("maybe", "no", "no"): ("contradicted", 2),
        ("maybe", "maybe"): ("not_found", None),
    }
    for passages, verdict in expected.items():
        ((one,),) = found(checker, asked("claim", *passages))
        assert (one.verdict, one.passage) == verdict, passages


@pytest.mark.parametrize("kind", HEADS)
def test_a_passage_without_text_decides_nothing_wherever_it_stands(kind: str, tmp_path: Path) -> None:
    """Also for a model of random weights, which may say anything of an empty premise."""
    head, labels = HEADS[kind]
    checker = load_checker(Grounded(model=str(classifier_folder(tmp_path / "model", TEXTS, head, labels=labels))))
    answer = "It was built in 1841. Olm sells bread!"
    (alone,) = found(checker, asked(answer, *TEXTS))  # type: ignore[arg-type]
    for empty in ("", " \n", "...", "\u200b", "🙂"):
        for shown, places in (
            ((empty, *TEXTS), {1: 2, 2: 3}),
            ((TEXTS[0], empty, TEXTS[1]), {1: 1, 2: 3}),
            ((*TEXTS, empty), {1: 1, 2: 2}),
        ):
            (beside,) = found(checker, asked(answer, *shown))  # type: ignore[arg-type]
            moved = [one.passage and places[one.passage] for one in alone]
            assert [(one.verdict, one.passage) for one in beside] == [
                (one.verdict, place) for one, place in zip(alone, moved, strict=True)
            ]
            assert [one.support for one in beside] == pytest.approx([one.support for one in alone], abs=1e-5)
        assert checker.findings([asked(answer, empty)]) == ["no text: the passages hold nothing to read"]


def test_the_question_is_read_beside_every_window(tmp_path: Path) -> None:
    """A short answer repeats what the question says, which no passage does."""
    text = " ".join(f"w{n}" for n in range(200))
    row = asked("Which harbour", text, question="Which harbour has it")
    with_question = by_rule(tmp_path / "a", [text, row.question], max_length=64)
    without = by_rule(tmp_path / "b", [text, row.question], max_length=64, template="{passage}")
    assert [one.verdict for ((one,),) in (found(with_question, row), found(without, row))] == ["supported", "not_found"]
    # one longer than a quarter of the length is cut, and leaves room for the passage
    long = asked("w199 w1", f"{text} w199 w1", question=" ".join(["Which harbour"] * 60))
    assert found(with_question, long)[0][0].verdict == "supported"


def _cuts(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yield every way to cut a text into tokens."""
    for inner in itertools.product((False, True), repeat=len(text) - 1):
        at = [0, *(place for place, cut in enumerate(inner, 1) if cut), len(text)]
        yield [*itertools.pairwise(at)]


@pytest.mark.parametrize(("answer", "lang"), [("他来了。他说了。我去。", "zh"), ("Aa. Bb! 18?", "en")])
def test_a_token_is_of_every_claim_that_has_a_letter_of_it_however_an_answer_is_cut(
    answer: str, lang: str, tmp_path: Path
) -> None:
    checker = by_rule(tmp_path, TEXTS)
    row = asked(answer, "Varn", lang=lang)
    assert len(row.claims) == 3
    for offsets in _cuts(answer):
        for flagged in (None, *range(len(offsets))):
            probabilities = np.array([0.9 if at == flagged else 0.1 for at in range(len(offsets))])
            claims = checker.found(row, [WindowRead(WindowPair(0, 1, 0, ("Varn", answer)), probabilities, offsets)])
            low, high = (0, 0) if flagged is None else offsets[flagged]
            for claim in claims:
                own = answer[max(low, claim.start) : min(high, claim.end)]
                # a token of stops alone is of the claim that holds all of it
                wrong = any(map(str.isalnum, own)) or 0 < len(own.strip()) == len(answer[low:high].strip())
                assert (claim.verdict, claim.support) == (
                    ("not_found", pytest.approx(0.1)) if wrong else ("supported", pytest.approx(0.9))
                ), (offsets, flagged, claim)
                marked = [answer[part.start : part.end] for part in claim.unsupported]
                assert marked == ([own.strip()] if wrong else [])


def test_control_tokens_in_texts_are_words(tmp_path: Path) -> None:
    """Else a passage could end the part that is read first, and an answer count as one."""
    checker: Any = by_rule(tmp_path, ["Varn was built [ SEP ] in 1841 CLS"], max_length=64)
    ((one,),) = found(checker, asked("built [SEP] in [CLS]", "Varn was [SEP] built [SEP] in"))
    assert [(span.start, span.end) for span in one.unsupported] == [(15, 20)]


def test_a_template_that_leaves_no_room_is_a_fault(tmp_path: Path) -> None:
    checker = by_rule(tmp_path, TEXTS, max_length=64, template=" ".join(["Varn"] * 55) + " {passage}")
    assert checker.findings([asked("Olm", "Olm")]) == [
        "too long: 1 tokens of a claim and 62 around it (judge.grounded.max_length)"
    ]


def test_a_long_answer_is_read_in_pieces_of_sentences(tmp_path: Path) -> None:
    said = [f"a{n} b{n} c{n} d{n} e{n}." for n in range(40)]
    checker: Any = by_rule(tmp_path, [" ".join(said)], max_length=64)
    (claims,) = found(checker, asked(" ".join(said), " ".join(said[:20])))
    assert [one.verdict for one in claims] == ["supported"] * 20 + ["not_found"] * 20
    assert max(width for _, width in checker._model.shapes) <= 64


def test_an_answer_is_too_long_only_if_one_of_its_claims_is(tmp_path: Path) -> None:
    """However much room template and question take, and however many claims an answer has."""
    outcomes, longest = set(), 64
    for words, question in itertools.product(range(0, longest, longest // 8), ("", "Wo " * longest)):
        load_checker.cache_clear()
        template = " ".join(["Varn"] * words) + " {question} {passage}"
        checker: Any = by_rule(tmp_path / f"{words}{len(question)}", TEXTS, max_length=longest, template=template)
        for size in range(2, longest // 2, 5):
            claim = " ".join(["Varn"] * size) + "."
            (alone,) = checker.findings([asked(claim, TEXTS[0], question=question)])
            several = checker.findings(
                [asked(" ".join([claim] * count), TEXTS[0], question=question) for count in (2, 5, 20)]
            )
            outcomes.add(isinstance(alone, str))
            assert {isinstance(one, str) for one in several} == {isinstance(alone, str)}, (words, question[:2], size)
        assert max((width for _, width in checker._model.shapes), default=0) <= longest
    assert outcomes == {True, False}


# ------------------------------------------------------------------ failures


def test_what_cannot_be_read_is_a_fault_of_its_row_alone(tmp_path: Path) -> None:
    checker: Any = by_rule(tmp_path, TEXTS, max_length=64, batch_size=1)
    long = asked(" ".join(["Varn"] * 40), "Varn")
    rows = [asked("Olm", "Olm"), long, asked("Sund", "Sund")]
    good, fault, last = checker.findings(rows)
    assert fault == "too long: 40 tokens of a claim and 7 around it (judge.grounded.max_length)"
    assert [one[0].verdict for one in (good, last)] == ["supported"] * 2
    rule, olm = checker._model, checker._tokenizer.convert_tokens_to_ids("Olm")

    def full(input_ids: Any, **rest: Any) -> Any:
        if olm in input_ids.tolist()[0]:
            raise RuntimeError("CUDA out of memory\nlong advice")
        return rule(input_ids, **rest)

    checker._model = full
    assert checker.findings(rows)[::2] == ["RuntimeError: CUDA out of memory", last]

    def overflown(input_ids: Any, **rest: Any) -> Any:
        return SimpleNamespace(logits=rule(input_ids, **rest).logits * (float("nan") if olm in input_ids else 1.0))

    checker._model = overflown
    assert checker.findings(rows)[::2] == ["not a number: the classifier gave no finite probability", last]


# ------------------------------------------------------------------ XQuAD


class _Paragraph:
    def __init__(self, content: Any) -> None:
        self.text: str = content["context"]
        self.answers: list[str] = [one["answers"][0]["text"] for one in content["qas"]]
        self.questions: list[str] = [one["question"] for one in content["qas"]]


def _articles(data: Path, lang: str) -> list[list[_Paragraph]]:
    with gzip.open(data / "xquad" / f"xquad.{lang}.json.gz", "rt", encoding="utf-8") as file:
        return [[_Paragraph(one) for one in article["paragraphs"]] for article in json.load(file)["data"]]


def _area(right: Sequence[float], wrong: Sequence[float]) -> float:
    high, low = np.asarray(right)[:, None], np.asarray(wrong)[None, :]
    return float(((high > low) + 0.5 * (high == low)).mean())


@pytest.mark.parametrize("kind", ["tokens", "entailment"])
@pytest.mark.parametrize(
    "lang", [*FIRST, *(pytest.param(lang, marks=pytest.mark.slow) for lang in LANGUAGES if lang not in FIRST)]
)
def test_supported_answers_are_separated_from_those_to_shifted_passages(
    lang: str, kind: str, test_data: Path, tmp_path: Path
) -> None:
    """An answer is shown its own paragraph, or the next one of its article; most are read in several windows."""
    articles = _articles(test_data, lang)
    checker: Any = by_rule(tmp_path, [one.text for article in articles for one in article], kind, max_length=128)
    rows: dict[int, list[Asked]] = {0: [], 1: []}
    for article in articles:
        for shift, cases in rows.items():
            for at, own in enumerate(article):
                shown = article[(at + shift) % len(article)].text
                cases += [
                    asked(answer, shown, question=question, lang=lang)
                    for answer, question in zip(own.answers[:1], own.questions, strict=False)
                ]
    values = {}
    for shift, cases in rows.items():
        checked = [one for one in checker.findings(cases) if not isinstance(one, str)]
        assert len(checked) > 0.99 * len(cases)
        values[shift] = [np.mean([claim.verdict == "supported" for claim in one]) for one in checked]
    assert sum(count for count, _ in checker._model.shapes) > 1.2 * sum(map(len, rows.values()))
    assert _area(values[0], values[1]) >= 0.95


@pytest.mark.parametrize("lang", LANGUAGES)
def test_spans_are_those_of_the_unsupported_sentence_in_every_script(
    lang: str, test_data: Path, tmp_path: Path
) -> None:
    """Spans count code points, from right to left as well, and behind a character beyond the basic plane."""
    articles = _articles(test_data, lang)
    checker = by_rule(tmp_path, [one.text for article in articles for one in article], max_length=256)
    rows, foreign = [], []
    for article, other in zip(articles[:12], articles[12:24], strict=True):
        own, strange = article[0].text, other[0].text
        first, second = (next(claims_of(text, lang)) for text in (own, strange))
        said = f"🙂 {own[first.start : first.end]} "
        rows.append(asked(said + strange[second.start : second.end], own, lang=lang))
        foreign.append(len(said))
    checked = [(row, start, one) for row, start, one in zip(rows, foreign, checker.findings(rows), strict=True)]
    read = [(row, start, one) for row, start, one in checked if not isinstance(one, str)]
    assert len(read) >= 10
    for row, start, claims in read:
        # the smile is no letter, and stands in the first sentence
        inside = [claim for claim in claims if claim.start < start]
        outside = [claim for claim in claims if claim.start >= start]
        spans = [span for claim in inside for span in claim.unsupported]
        assert [row.answer[span.start : span.end] for span in spans] in ([], ["🙂"])
        marked = "".join(row.answer[span.start : span.end] for claim in outside for span in claim.unsupported)
        assert len(marked) >= 0.5 * len(row.answer[start:])
