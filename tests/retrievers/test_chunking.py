"""Cutting documents: sizes, scripts, titles, stable ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrag_eval.platform import ConfigError, CorpusError
from mrag_eval.retrievers import ChunkConfig, Document, chunk_documents
from mrag_eval.retrievers.chunking._chunking import METHODS, count_tokens


def texts(document: Document, **config: object) -> list[str]:
    return [passage.text for passage in chunk_documents([document], config)]


def words_and_marks(text: str) -> int:
    """Count words and marks, and each Han character."""
    return len(re.findall(r"[\u4e00-\u9fff]|[a-z]+|[^\w\s]", text, re.IGNORECASE))


def sentences(document: Document, size: int) -> list[str]:
    config = {"method": "sentences", "size": size}
    return [passage.text for passage in chunk_documents([document], config, token_counter=words_and_marks)]


def test_words_with_the_title_in_front() -> None:
    document = Document("d", "en", "one two\nthree  four five", "Numbers")
    assert texts(document, method="words", size=2) == ["Numbers. one two", "Numbers. three four", "Numbers. five"]
    assert texts(document, method="words", size=9, title_in_front=False) == ["one two three four five"]
    assert texts(Document("d", "en", "one"), method="words") == ["one"]


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("zh-Hans", "旧桥横跨河流", ["旧桥横跨", "河流"]),
        ("ja", "古い橋が川を渡る", ["古い橋が", "川を渡る"]),
        # four characters would separate the tone mark from its letter: the piece grows until it is whole
        ("th", "ข้าวน้ำ", ["ข้าว", "น้ำ"]),
        ("ko", "오래된 다리가 강을 건넌다 또", ["오래된 다리가 강을 건넌다", "또"]),
    ],
)
def test_words_are_characters_without_spaces(lang: str, text: str, expected: list[str]) -> None:
    assert texts(Document("d", lang, text), method="words", size=4) == expected


def test_a_mark_is_not_parted_from_its_letter() -> None:
    assert texts(Document("d", "th", "ก้ก้ก้"), method="words", size=3) == ["ก้ก้", "ก้"]


def test_sentences_fill_up_to_the_limit() -> None:
    document = Document("d", "en", "One two three. Four five! Six seven eight nine? Ten.", "T")
    # tokens per sentence, the mark included: 4, 3, 5, 2
    assert sentences(document, 7) == [
        "T. One two three. Four five!",
        "T. Six seven eight nine? Ten.",
    ]


@pytest.mark.parametrize(
    ("lang", "text", "expected"),
    [
        ("en", 'He said "yes." Then 3.5 km. End', ['He said "yes."', "Then 3.5 km.", "End"]),
        ("zh", "旧桥很长。河流很宽！“真的？”他问。", ["旧桥很长。", "河流很宽！", "“真的？”", "他问。"]),
        ("ja", "橋だ。川だ。", ["橋だ。", "川だ。"]),
        ("ar", "هل هذا جسر؟ نعم. إنه قديم.", ["هل هذا جسر؟", "نعم.", "إنه قديم."]),
        ("hi", "पुल पुराना है। नदी चौड़ी है।", ["पुल पुराना है।", "नदी चौड़ी है।"]),
        ("am", "ድልድይ ነው። ወንዝ ነው።", ["ድልድይ ነው።", "ወንዝ ነው።"]),
        ("ur", "پل ہے۔ دریا ہے۔", ["پل ہے۔", "دریا ہے۔"]),
        ("hy", "Կամուրջ է։ Գետ է։", ["Կամուրջ է։", "Գետ է։"]),
        ("th", "สะพานเก่า แม่น้ำกว้าง", ["สะพานเก่า", "แม่น้ำกว้าง"]),
        ("ru", "Это мост. Это река…", ["Это мост.", "Это река…"]),
        ("he", "זה גשר. זה נהר!", ["זה גשר.", "זה נהר!"]),
        ("el", "Γέφυρα. Ποτάμι!", ["Γέφυρα.", "Ποτάμι!"]),
        ("ko", "다리다. 강이다.", ["다리다.", "강이다."]),
    ],
)
def test_sentence_ends(lang: str, text: str, expected: list[str]) -> None:
    # with a limit of one, every longer sentence would be cut: count each as one token
    passages = chunk_documents([Document("d", lang, text)], {"method": "sentences", "size": 1}, token_counter=_one)
    assert [passage.text for passage in passages] == expected


def _one(text: str) -> int:
    return 1


def test_a_sentence_over_the_limit_is_cut() -> None:
    assert sentences(Document("d", "en", "a b c d e f. g"), 3) == ["a b c", "d e", "f.", "g"]
    assert sentences(Document("d", "zh", "一二三四五六七"), 3) == ["一二三", "四五六", "七"]


def test_paragraphs() -> None:
    document = Document("d", "en", "First one.\nStill first.\n\n  \nNo.\r\n\r\nThird paragraph.", "T")
    pieces = ["First one.\nStill first.", "No.", "Third paragraph."]
    assert texts(document, method="paragraphs", title_in_front=False) == pieces
    # the third one begins with the title
    assert texts(document, method="paragraphs") == ["T. First one.\nStill first.", "T. No.", "Third paragraph."]
    assert texts(document, method="paragraphs", min_chars=4)[1] == "Third paragraph."


def test_none_keeps_the_text_as_it_is() -> None:
    text = "  {{ kept }}\n\n as it is "
    document = Document("doc-9", "en", text, "Title")
    (passage,) = chunk_documents([document], {"method": "none", "title_in_front": False})
    assert (passage.text, passage.title, passage.doc_id, passage.lang) == (text, "Title", "doc-9", "en")
    (passage,) = chunk_documents([document], "none")
    assert (passage.text, passage.title) == (f"Title. {text}", "Title")
    (passage,) = chunk_documents([Document("doc-9", "en", "Title: text", "Title")], "none")
    assert passage.text == "Title: text"


@pytest.mark.parametrize("method", ["words", "sentences", "paragraphs", "none"])
def test_blank_documents_give_nothing(method: str) -> None:
    assert texts(Document("d", "en", " \n \u3000", "Title"), method=method) == []


def test_ids_are_stable_and_distinct() -> None:
    documents = [Document("1", "en", "same. same. same."), Document("1", "de", "same."), Document("2", "en", "same.")]
    config = {"method": "sentences", "size": 2}
    ids = [passage.id for passage in chunk_documents(documents, config)]
    assert len(set(ids)) == len(ids) == 5
    assert all(len(identifier) == 16 and int(identifier, 16) >= 0 for identifier in ids)
    assert ids == [passage.id for passage in chunk_documents(documents, config)]
    # an earlier document changes no id; a literal value pins the rule itself
    more = chunk_documents([Document("0", "en", "x."), *documents], config)
    assert [passage.id for passage in more][1:] == ids
    assert ids[0] == "43794cc5300c4aa9"


def test_the_default_limit_is_in_tokens_of_embedders() -> None:
    # a sentence has five spaces at 0.7 token, twenty letters at 0.11 and a mark: 6.7, rounded up
    text = "aaaa bbbb cccc dddd eeee. " * 4
    assert [len(piece.split()) for piece in texts(Document("d", "en", text), method="sentences", size=14)] == [10, 10]
    assert [len(piece.split()) for piece in texts(Document("d", "en", text), method="sentences", size=13)] == [5] * 4


def test_the_manifest_names_the_version_of_the_rules() -> None:
    for method in METHODS:
        config = ChunkConfig(method)
        record = config.to_dict()
        assert record.get("version") == (2 if method in ("sentences", "llamaindex") else None)
        assert ChunkConfig.recorded(record) == config
    assert ChunkConfig.recorded({}) == ChunkConfig()


def test_documents_of_an_older_index_are_not_cut_by_other_rules() -> None:
    # version 1 was not recorded
    old = {"method": "sentences", "size": 50, "title_in_front": True, "min_chars": 1}
    config = ChunkConfig.recorded(old)
    assert config.to_dict() == old
    with pytest.raises(CorpusError, match="cut by 'sentences' version 1, this mrag-eval has version 2"):
        list(chunk_documents([Document("d", "en", "One.")], config))
    unchanged = ChunkConfig.recorded({**old, "method": "words"})
    assert unchanged == ChunkConfig("words", 50)
    assert len(list(chunk_documents([Document("d", "en", "One.")], unchanged))) == 1
    with pytest.raises(ConfigError, match="unknown key 'version'"):
        ChunkConfig.of({"method": "sentences", "version": 1})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("sentence", "unknown method 'sentence'; did you mean 'sentences'"),
        ({"method": "words", "sise": 3}, "unknown key 'sise'; did you mean 'size'"),
        ({"method": "words", "size": 0}, "size is 0"),
        ({"method": "words", "size": "9"}, "chunker.size is '9', expected int"),
        ({"method": "paragraphs", "min_chars": 0}, "min_chars is 0"),
    ],
)
def test_wrong_settings(spec: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        ChunkConfig.of(spec)  # type: ignore[arg-type]


@given(
    st.text(alphabet=st.sampled_from("ab .!?\n。、漢字กา้ ा।"), max_size=60),
    st.sampled_from(["en", "zh", "th", "hi"]),
    st.sampled_from(["words", "sentences", "paragraphs", "none"]),
    st.integers(1, 7),
)
def test_nothing_is_lost_or_repeated(text: str, lang: str, method: str, size: int) -> None:
    pieces = texts(Document("d", lang, text), method=method, size=size)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(piece.strip() for piece in pieces)
    if method == "sentences":
        # a letter keeps its marks even if they exceed the limit; everything else stays within it
        assert all(count_tokens(piece) <= size or not any(c.isspace() for c in piece) for piece in pieces)
