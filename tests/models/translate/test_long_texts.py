"""Texts longer than a model's reply: translated in pieces, all of them or not at all."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from json import loads
from pathlib import Path
from typing import Any

import pytest

from mrag_eval.core import Failure
from mrag_eval.models import AuxModel, Translator, longest_piece
from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.models.translate._lm import LmBackend
from mrag_eval.models.translate._pieces import halves, packed, whole
from mrag_eval.models.translate._reply_size import _MARGIN, expected_tokens, longest_sentence
from mrag_eval.platform import Store
from tests.worlds.long_articles import WRITTEN, articles, cut_at, english, language, outline, source_of, translating
from tests.worlds.model_server import Answer, ModelServer, said

Start, ModelOf = Callable[..., ModelServer], Callable[..., AuxModel]
TEXTS = Path(__file__).parents[2] / "text"
LONG = [(text, language(written)) for written in WRITTEN for text in articles(written, 10)]


def translator(model: AuxModel, **options: Any) -> Translator:
    return Translator(LmBackend(model, **options), "lm m")


def finishes(server: ModelServer, script: Callable[..., Answer]) -> list[str]:
    return [script(body, 1).body["choices"][0]["finish_reason"] for *_, body in server.requests]


@pytest.mark.parametrize(
    ("letters_per_token", "cut_off"),
    # English has four and a half letters per token in the usual vocabularies; with two, the first pieces are too long
    [(4.5, False), (2.0, True)],
)
def test_articles_of_1300_words_are_translated_completely(
    start: Start, model_of: ModelOf, letters_per_token: float, cut_off: bool
) -> None:
    script = translating(letters_per_token)
    server = start(script)
    out = translator(model_of(server)).translate([t for t, _ in LONG], [lang for _, lang in LONG], "en")
    assert [done.outcome for done in out] == ["translated"] * 50
    assert all(done.failure is None and done.lang == "en" for done in out)
    # every sentence once, in order, in the paragraphs of the original
    assert [outline(done.text) for done in out] == [outline(text) for text, _ in LONG]
    assert ("length" in finishes(server, script)) is cut_off
    assert server.most_at_once > 8  # pieces of different texts share the requests in flight
    lengths = [len(text) for *_, body in server.requests for text in [source_of(body)]]
    assert len(lengths) > 2 * 50
    assert max(lengths) < max(len(text) for text, _ in LONG) / 1.5


def test_the_length_of_a_piece_follows_the_reply(start: Start, model_of: ModelOf) -> None:
    text = next(articles("de", 1))

    def requests(model: dict[str, Any], block: dict[str, Any]) -> tuple[int, int]:
        server = start(translating(4.5))
        (done,) = translator(model_of(server, **model), **block).translate([text], ["de"], "en")
        assert outline(done.text) == outline(text)
        return len(server.requests), server.requests[0][2]["max_tokens"]

    usual, _ = requests({}, {})
    fewer, sent = requests({"generation": {"max_tokens": 4096}}, {})
    assert (fewer, sent) == (1, 4096)
    # the translator's own limit counts, else that of the model
    more, sent = requests({"generation": {"max_tokens": 4096}}, {"max_tokens": 300})
    assert sent == 300
    assert more > usual > fewer


def test_a_question_is_asked_for_once_with_the_prompt_of_any_short_text(start: Start, model_of: ModelOf) -> None:
    server = start(translating(4.5))
    model = model_of(server)
    question = " Welche Stadt pflanzt 120 Bäume?\nLindholm oder Varga? "
    backend = LmBackend(model)
    conversation = backend._conversation(Text(question, "de", "en"))
    assert conversation[-1]["content"] == f"<source_text>\n{question}\n</source_text>"
    assert backend.seat.identity.items() <= backend.identity().items()
    assert Translator(backend, "lm m").translate([question], ["de"], "en")[0].outcome == "translated"
    assert [body["messages"] for *_, body in server.requests] == [conversation]


def test_every_third_piece_fails_and_no_part_of_its_text_passes_for_a_translation(
    start: Start, model_of: ModelOf
) -> None:
    kinds: dict[str, int] = {}

    def script(body: dict[str, Any], attempt: int) -> Answer:
        piece = source_of(body)
        if kinds.setdefault(piece, len(kinds)) % 3 == 2:
            return Answer(status=500, body="down")
        return said(f"<translation>{english(piece)}</translation>")

    short = [(text[: text.index("\n")], lang) for text, lang in LONG if "\n" in text]
    rows = LONG + short
    model = model_of(start(script), retries=0)
    out = translator(model).translate([t for t, _ in rows], [lang for _, lang in rows], "en")
    cut, failed = LmBackend(model)._pieces, 0
    for (text, lang), done in zip(rows, out, strict=True):
        pieces = {piece.text.strip() for piece in cut(Text(text, lang, "en"))}
        if all(kinds[piece] % 3 < 2 for piece in pieces):
            assert (done.outcome, done.failure, outline(done.text)) == ("translated", None, outline(text))
            continue
        failed += 1
        assert (done.text, done.lang, done.is_translation) == (text, lang, False)
        assert done.failure is not None
        assert (done.failure.stage, done.failure.model, done.failure.reason) == ("translation", "lm m", "server")
    assert len(rows) / 3 < failed < len(rows)


@pytest.mark.parametrize("lang", ["de", "es", "zh", "ar"])
def test_pieces_that_come_back_unchanged_leave_the_text_untranslated(
    start: Start, model_of: ModelOf, lang: str
) -> None:
    seen: list[str] = []

    def script(body: dict[str, Any], attempt: int) -> Answer:
        seen.append(source_of(body))
        reply = seen[-1] if len(seen) % 3 == 2 else english(seen[-1])
        return said(f"<translation>{reply}</translation>")

    (text,) = articles(lang, 1)
    (done,) = translator(model_of(start(script))).translate([text], [lang], "en")
    assert done.failure == Failure("translation", "lm m", "wrong_language", texts="queries")
    assert done.text == text


def test_a_piece_without_text_is_no_translation(start: Start, model_of: ModelOf) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        piece = source_of(body)
        return said(f"<translation>{'' if '1000' in piece else english(piece)}</translation>")

    (done,) = translator(model_of(start(script))).translate([LONG[0][0]], ["de"], "en")
    assert done.failure == Failure("translation", "lm m", "empty", texts="queries")


def test_what_never_ends_fails_with_the_limit_after_two_attempts(start: Start, model_of: ModelOf) -> None:
    def script(body: dict[str, Any], attempt: int) -> Answer:
        return cut_at(4.5, "<translation>" + "and so on " * 2000, body)

    server = start(script)
    out = translator(model_of(server)).translate([LONG[0][0], "Wo?"], ["de", "de"], "en")
    assert {done.failure for done in out} == {
        Failure("translation", "lm m", "length", "a reply was cut off at max_tokens=1024", "queries")
    }
    asked = [source_of(body) for *_, body in server.requests if len(body["messages"]) == 2]
    pieces = [text for text in asked if sum(text in other for other in asked) == 1 and text != "Wo?"]
    # each piece of the article, and its two halves; the question, which cannot be too long, in the same conversation
    assert len(asked) == 3 * len(pieces) + 1
    assert len(server.requests) == len(asked) + 1


def test_a_stopped_run_pays_for_no_piece_twice(start: Start, model_of: ModelOf, store: Store) -> None:
    server = start(translating(4.5))
    for outcome in ("translated", "cached"):
        out = translator(model_of(server, store)).translate([t for t, _ in LONG[:3]], ["de"] * 3, "en")
        assert {done.outcome for done in out} == {outcome}
    sent = [source_of(body) for *_, body in server.requests]
    assert len(sent) == len(set(sent))


# ----------------------------------------------------------------------------------------------------- the length


def test_expected_lengths_hold_between_languages() -> None:
    sentences = loads((TEXTS / "sentences.json").read_text("utf-8"))["fitted"]
    counts = loads((TEXTS / "token_counts.json").read_text("utf-8"))
    parallel = {lang: " ".join(texts) for lang, texts in sentences.items() if len(texts) == 5}
    over = [
        counts[target]["qwen"] / expected_tokens(parallel[source], target)
        for source, target in permutations(parallel, 2)
    ]
    assert len(over) == 36 * 35
    # what is longer than a piece may be fits in halves
    assert sum(each > _MARGIN for each in over) / len(over) < 0.08
    assert max(over) < 2 * _MARGIN


def test_every_limit_leaves_room() -> None:
    for max_tokens in (1, 2, 9, 64, 256, 1024, 100_000):
        assert 1 <= longest_piece(max_tokens) <= longest_sentence(max_tokens) <= max_tokens


def test_a_sentence_is_cut_only_if_it_cannot_fit() -> None:
    text = "Eins zwei drei vier. Fünf. Sechs. Sieben acht neun zehn elf zwölf dreizehn."
    assert packed(text, "de", 14, alone=22) == [
        "Eins zwei drei vier. ",
        "Fünf. Sechs. ",
        "Sieben acht ",
        "neun zehn elf ",
        "zwölf ",
        "dreizehn.",
    ]


def test_halves_end_at_the_sentence_nearest_the_middle() -> None:
    assert halves("Aaaa. Bb. Cc. Dddd.", "de") == ["Aaaa. Bb. ", "Cc. Dddd."]
    # a sentence that is most of the text is cut itself
    assert halves("Ja. Der alte Turm, der am Meer steht und leuchtet", "de") == [
        "Ja. Der alte Turm, ",
        "der am Meer steht und leuchtet",
    ]
    assert halves("aaaaaaaa", "de") == ["aaaa", "aaaa"]
    assert halves("a", "de") == ["a"]


def test_a_text_is_whole_or_has_the_reason_of_its_first_piece_without_a_translation() -> None:
    good, none, late = Translated("x"), Translated(None, "failed: timeout: 5 s"), Translated(None, "missing")
    assert whole(["A. ", "***\n", "B."], [good, Translated(""), good], "en") == Translated("x ***\nx")
    assert whole(["A. ", "B. ", "C."], [good, none, late], "en") == none
    assert whole(["A. ", "B."], [good, Translated(" ")], "en") == Translated(" ")
