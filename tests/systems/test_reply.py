"""Replies of systems: read in every shape that logs have, and refused in one line that names what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mrag_eval.core import same_language
from mrag_eval.metrics import correct_language_rate
from mrag_eval.platform import DataError
from mrag_eval.systems import (
    SystemReply,
    completion_in,
    hits_of,
    names_of,
    reading_of,
    reading_of_reply,
    reply_of,
    told_languages,
)
from tests.worlds import logs

TURN = logs.TURNS[0]
# Where each shape repeats the question of its log, which a reply need not.
ASKED = ("id", "user_input", "question", "query", "input", "reference", "ground_truth", "expected_output", "answers")
# Traces are rows of several spans, and a log of BERGEN has no contexts.
REPLIES = {name: shape for name, shape in logs.SHAPES.items() if not name.startswith("OpenInference")}


def texts(reply: SystemReply) -> tuple[str, list[str]]:
    return reply.answer, [one["text"] for one in reply.contexts or ()]


@pytest.mark.parametrize("name", REPLIES)
def test_a_reply_is_read_in_every_shape_of_a_log_without_its_question(name: str) -> None:
    (row,) = REPLIES[name](TURN)
    kept = row if name.startswith("Haystack") else {key: part for key, part in row.items() if key not in ASKED}
    found = reply_of(kept)
    assert texts(found) == (TURN.answer, [text for _, text in TURN.contexts])
    assert [one["id"] for one in found.contexts or ()] == [name for name, _ in TURN.contexts]


# A name that may be another part's is read as well, if it is the only one.
NAMES = {part: sorted(names_of(part)) for part in ("answer", "contexts")}


@pytest.mark.parametrize("answer", NAMES["answer"][::12])
@pytest.mark.parametrize("start", range(7))
def test_answer_and_contexts_may_have_the_names_of_different_programs(answer: str, start: int) -> None:
    for contexts in NAMES["contexts"][start::7]:
        read_under(answer, contexts)


def read_under(answer: str, contexts: str) -> None:
    for listed in (["one", "two"], [{"page_content": "one"}, {"page_content": "two"}]):
        assert texts(reply_of({answer: "a", contexts: listed})) == ("a", ["one", "two"])
    # none are shown
    for listed in ([], None):
        assert reply_of({answer: "a", contexts: listed}).contexts == listed


@pytest.mark.parametrize("answer", NAMES["answer"][::9])
@pytest.mark.parametrize("name", ["quellen", "found_in", "passages_used"])
def test_contexts_under_a_name_that_is_not_known_are_not_lost(answer: str, name: str) -> None:
    for listed in (["one"], [{"content": "one"}], {"found": [{"document": {"content": "one"}}]}):
        with pytest.raises(DataError, match=name):
            reply_of({answer: "a", name: listed})
        assert texts(reply_of({answer: "a", "contexts": ["two"], name: listed})) == ("a", ["two"])
        assert reply_of({answer: "a", name: listed}, reading_of_reply({"answer": answer})).contexts is None


def test_what_else_a_reply_has_is_no_context() -> None:
    for more in (
        {"meta": [{"model": "m", "index": 0}]},
        {"model": "m", "usage": {"n": 1}},
        {"trace": []},
        {"scores": [1]},
    ):
        assert reply_of({"response": "a", **more}).contexts is None


def test_a_completion_is_found_wherever_a_table_keeps_it() -> None:
    choice = {"index": 0, "message": {"content": "1841", "refusal": None}, "finish_reason": "stop"}
    whole = {"choices": [choice], "error": None}
    for row, path in [
        (whole, "choices.0.message.content"),
        ({"choices": json.dumps([choice]), "error": "None"}, "choices.0.message.content"),
        ({"raw": whole}, "raw.choices.0.message.content"),
        ({"raw": json.dumps(whole)}, "raw.choices.0.message.content"),
    ]:
        assert completion_in(row, reading_of_reply({"answer": path})) == whole
    assert completion_in({"choices": ["a", "b"], "reply": "a"}, reading_of([{"reply": "a"}])) is None
    assert completion_in({"choices": ["a", "b"]}, reading_of_reply({"answer": "choices.0"})) is None


@dataclass
class Found:
    """An object of a framework that is a dataclass."""

    text: str
    score: float


class Dumped:
    """An object of a framework that writes itself."""

    def to_dict(self) -> dict[str, Any]:
        return {"page_content": "one", "metadata": {"lang": "en"}}


@pytest.mark.parametrize(
    ("value", "answer", "contexts"),
    [
        ("a", "a", None),
        ("", "", None),
        (("a", ["one"]), "a", [{"text": "one"}]),
        (("a", None), "a", None),
        (("a", []), "a", []),
        (SystemReply("a", [{"content": "one", "id": 7}]), "a", [{"text": "one", "id": "7"}]),
        (SystemReply("a", [Found("one", 1)]), "a", [{"text": "one", "score": 1.0}]),
        (("a", [Dumped()]), "a", [{"text": "one", "lang": "en"}]),
        ({"answer": {"content": "a"}, "contexts": ["one"]}, "a", [{"text": "one"}]),
        (("a", np.array(["one", ""], dtype=object)), "a", [{"text": "one"}]),
        (
            SystemReply("a", [{"content": "one", "id": np.int64(7), "score": float("nan")}]),
            "a",
            [{"text": "one", "id": "7"}],
        ),
    ],
)
def test_texts_tuples_records_and_objects(value: Any, answer: str, contexts: Any) -> None:
    found = reply_of(value)
    assert (found.answer, found.contexts) == (answer, contexts)


def test_paths_that_the_user_names_are_where_the_parts_are() -> None:
    value = {"output": {"text": "a"}, "sources": [{"body": "one", "nr": 3}], "usage": {"prompt_tokens": 5}}
    columns = {"answer": "output.text", "contexts": "sources", "contexts.text": "body", "contexts.id": "nr"}
    found = reply_of(value, reading_of_reply(columns))
    assert (found.answer, found.contexts, found.usage) == ("a", [{"text": "one", "id": "3"}], {"prompt_tokens": 5})
    # an answer alone is asked for
    assert reply_of(value, reading_of_reply({"answer": "output.text"})).contexts is None


@pytest.mark.parametrize(
    ("value", "columns", "said"),
    [
        (None, {}, "the reply is neither a text nor has keys, found NoneType"),
        (["a"], {}, "neither a text nor has keys, found list"),
        ({"said": "a", "with": []}, {}, "no part that is known; its keys: said, with"),
        ({"said": "a"}, {"answer": "answer.text"}, "nothing at 'answer.text'; its keys: said"),
        ({"said": "a"}, {"answer": "said", "contexts": "docs"}, "nothing at 'docs'; its keys: said"),
        ({"said": None}, {"answer": "said"}, "no answer; its keys: said"),
        ({"said": [1]}, {"answer": "said"}, None),
        ({"said": {"n": 1}}, {"answer": "said"}, "holds no text, found dict"),
        (("a", [{"nothing": 1}]), {}, "or a dictionary with 'id' or 'text'"),
        (("a", 5), {}, "or a dictionary with 'id' or 'text'"),
    ],
)
def test_what_is_missing_is_named_in_one_line(value: Any, columns: Mapping[str, str], said: str | None) -> None:
    shape = reading_of_reply(columns) if columns else None
    if said is None:
        assert reply_of(value, shape).answer == "1"
        return
    with pytest.raises(DataError, match=said) as caught:
        reply_of(value, shape)
    assert "\n" not in caught.value.message
    assert caught.value.next_step


@pytest.mark.parametrize("score", ["high", float("inf"), -float("inf"), "nan", "-Infinity", 10**400])
def test_a_score_that_is_no_finite_number_is_refused(score: Any) -> None:
    with pytest.raises(DataError, match=r"passages\[1\]: 'score': "):
        reply_of(("a", [{"text": "one", "score": 1}, {"text": "two", "score": score}]))


@pytest.mark.parametrize("score", [None, float("nan"), [1], {}])
def test_a_context_may_have_no_score(score: Any) -> None:
    (context,) = reply_of(("a", [{"text": "one", "score": score}])).contexts or ()
    assert "score" not in context


def test_contexts_are_named_by_content_and_their_languages_told() -> None:
    text = "Die Bäckerei in Olm verkauft seit vielen Jahren Roggenbrot an alle Bewohner der Stadt."
    named = {"id": "x", "lang": "es"}
    rows: list[Any] = [("a", "de", [{"text": text}]), ("b", "en", [{"text": text}, named]), ("c", "en", None)]
    first, second, none = hits_of(rows)
    assert none is None
    assert first is not None
    assert second is not None
    assert (first[0].lang, second[1].lang) == ("de", "es")
    assert first[0].id == second[0].id != second[1].id
    assert [hit.rank for hit in second] == [1, 2]


# A language of a question, a text beside it, and what is told of the text's language; "" for what is not relied on.
BESIDE = {
    # the detector's label is another one that counts as the question's language
    ("sr", "Beograd je glavni grad Srbije i nalazi se na ušću Save u Dunav."): "sr",
    ("hr", "Zagreb je glavni grad Hrvatske i leži na rijeci Savi."): "hr",
    # it is called Italian
    ("hi", "Dilli Bharat ki rajdhani hai aur yahan bahut log rehte hain, yeh bada shahar hai."): "hi-Latn",
    ("de", "Dilli Bharat ki rajdhani hai aur yahan bahut log rehte hain, yeh bada shahar hai."): "",
    # it is called Irish
    ("yo", "Ìlú Èkó ni ìlú tí ó tóbi jùlọ ní orílẹ̀-èdè Nàìjíríà, ó sì wà ní etí òkun."): "",
    ("de", "Ìlú Èkó ni ìlú tí ó tóbi jùlọ ní orílẹ̀-èdè Nàìjíríà, ó sì wà ní etí òkun."): "",
    # texts in the question's language could not be told, so none is
    ("yo", "The lighthouse of Varn was built by the council of the town in the year 1841."): "",
    ("ha", "The lighthouse of Varn was built by the council of the town in the year 1841."): "",
    ("de", "The lighthouse of Varn was built by the council of the town in the year 1841."): "en",
    ("de", "Den Leuchtturm von Varn baute der Rat der Stadt."): "de",
    ("zh-Hant", "臺北是中華民國的首都，也是臺灣的政治、經濟與文化中心，擁有許多歷史悠久的建築。"): "zh",
    ("de", "1984: 45"): "",
    ("de", "🙂 12345"): "",
}


@pytest.mark.parametrize(("asked", "text"), BESIDE)
def test_the_language_of_a_context_is_told_as_that_of_an_answer_is(asked: str, text: str) -> None:
    # what is said of one question is not said of another's
    others: list[Any] = [("o", lang, [{"text": words}]) for lang, words in BESIDE]
    *_, found = hits_of([*others, ("a", asked, [{"text": text, "id": "p"}])])
    assert found is not None
    assert found[0].lang == BESIDE[asked, text]
    rate = correct_language_rate([text], asked, min_chars=None, min_recognised=0.8)
    if rate.correct[0] is None:
        assert found[0].lang == ""
    elif found[0].lang:
        assert same_language(found[0].lang, asked) is rate.correct[0] or "-" in found[0].lang
    # what the row says itself is taken
    (given,) = hits_of([("a", asked, [{"text": text, "lang": "sw"}])])
    assert given is not None
    assert given[0].lang == "sw"


def test_questions_that_the_detector_is_not_sure_of_are_not_relied_on() -> None:
    yoruba, hindi = (next(text for lang, text in BESIDE if lang == code) for code in ("yo", "hi"))
    german = "Wann hat der Rat der Stadt den Leuchtturm von Varn gebaut?"
    told = told_languages([yoruba, hindi, german, "1984?"])
    assert [why is None for _, why in told] == [False, False, True, False]
    assert told[2][0] == "de"
    assert told[3] == ("en", "the question's language is not given, and it has no letters")
