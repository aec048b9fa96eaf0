"""The split of The Cross-Lingual Cost, compared passage by passage with LlamaIndex's own splitter."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrag_eval.platform import ConfigError
from mrag_eval.retrievers import Document, chunk_documents, named_token_counter, read_corpus
from mrag_eval.retrievers.chunking import _token_counters as counters
from mrag_eval.retrievers.chunking._chunking import count_tokens
from mrag_eval.retrievers.chunking._sentence_splitter import split_sentences


def theirs(size: int, count: Callable[[str], int] | None) -> Callable[[str], list[str]]:
    """Return LlamaIndex's splitter; None: with its own tokenizer."""
    splitter = pytest.importorskip("llama_index.core.node_parser").SentenceSplitter
    tokenizer = None if count is None else (lambda text: [0] * count(text))
    found: Callable[[str], list[str]] = splitter(chunk_size=size, chunk_overlap=0, tokenizer=tokenizer).split_text
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("tokenizer", "passages"), [("cl100k_base", 4712), ("model_free", 3731)])
def test_the_whole_travel_corpus_is_cut_the_same_way(tokenizer: str, passages: int, test_data: Path) -> None:
    path = test_data / "cross_lingual_cost" / "travel_corpus.parquet"
    count = named_token_counter(tokenizer)
    # by default LlamaIndex itself counts in cl100k_base
    split = theirs(100, None if tokenizer == "cl100k_base" else count)
    total = 0
    for document in read_corpus(path, keys={"title": "country"}):
        expected = [f"{document.title}. {piece}" for piece in split(document.text)]
        found = [p.text for p in chunk_documents([document], {"method": "llamaindex"}, token_counter=count)]
        assert found == expected, document.id
        total += len(found)
    assert total == passages


PIECES = st.sampled_from(
    ["One two.", " Three,", "\n\n\n", "\n", "?", " ", "!", "كلمة", "؟", "漢字。", "a-b", "Dr. Smith;", "x" * 9, "..."]
)


@example("\n\n\n", 1)
@given(st.lists(PIECES, max_size=25).map("".join), st.integers(1, 9))
def test_any_text_is_cut_the_same_way(text: str, size: int) -> None:
    # every character counts once, so no single one exceeds the limit, which is an error there
    assert split_sentences(text, size, len) == [piece for piece in theirs(size, len)(text) if piece]


def test_pieces_by_hand() -> None:
    def words(text: str) -> int:
        return len(text.split())

    # 3 + 2 words fit into 5, the next sentence (3) does not
    assert split_sentences("One two three. Four five. Six seven eight.", 5, words) == [
        "One two three. Four five.",
        "Six seven eight.",
    ]
    # a sentence over the limit is cut at commas, and its last piece is joined to the next sentence
    assert split_sentences("a b c, d e f, g h. i j k l.", 4, words) == ["a b c,", "d e f,", "g h.", "i j k l."]
    assert split_sentences("a b, c d, e. f g h.", 3, words) == ["a b,", "c d, e.", "f g h."]
    # a phrase over the limit is cut between words
    assert split_sentences("a b c d e f g", 3, words) == ["a b c", "d e f", "g"]
    assert split_sentences("all of it fits", 4, words) == ["all of it fits"]
    assert split_sentences(" \n ", 4, words) == []


def test_a_character_over_the_limit_is_a_passage() -> None:
    assert split_sentences("ab", 1, lambda text: 2 * len(text)) == ["a", "b"]


def test_the_method_counts_without_a_model_by_default() -> None:
    document = Document("d", "en", "One two three. Four five. Six.", "T")
    # letters at 0.11 token, spaces at 0.7 and marks at 1, rounded up for each sentence: 5, 4, 2
    assert [p.text for p in chunk_documents([document], {"method": "llamaindex", "size": 8})] == [
        "T. One two three.",
        "T. Four five. Six.",
    ]


def test_cl100k_base_counts_as_tiktoken() -> None:
    pytest.importorskip("llama_index.core")
    count = named_token_counter("cl100k_base")
    # "hello world" is the standard example: two tokens
    assert count("hello world") == 2
    assert count("") == 0
    assert count("<|endoftext|>") == 1
    assert counters._CACHE not in os.environ
    assert named_token_counter("model_free") is count_tokens


def test_a_missing_tokenizer_gives_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    counters._cl100k.cache_clear()
    with pytest.raises(ConfigError) as caught:
        named_token_counter("cl100k_base")
    counters._cl100k.cache_clear()
    assert "the tokenizer cl100k_base cannot be loaded" in caught.value.message
    assert "data.tokenizer=model_free" in (caught.value.next_step or "")
    with pytest.raises(ConfigError, match="unknown tokenizer 'cl100k'; did you mean 'cl100k_base'"):
        named_token_counter("cl100k")
