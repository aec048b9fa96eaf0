"""A small corpus in seven languages, and embedders that need no model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mrag_eval.core import Passage
from mrag_eval.retrievers import Index, build_index
from mrag_eval.retrievers.index._hashing import hash64
from mrag_eval.text import Analyzer


class TokenHashEmbedder:
    """The normalised sum of one random vector per token: texts that share tokens are close to each other."""

    name, revision = "token-hash", "1"

    def __init__(self, dim: int = 32) -> None:
        self.dim = dim
        self.embedded: list[str] = []

    def _vector(self, text: str) -> np.ndarray:
        total = np.zeros(self.dim)
        for token in Analyzer().tokenizer(None)(text) or [text]:
            total += np.random.default_rng(hash64(token)).standard_normal(self.dim)
        return total / np.linalg.norm(total)

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.embedded += texts
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    embed_passages = embed_queries


class ConstantEmbedder:
    """Every text at the same point, so every score ties."""

    name, revision, dim = "constant", "1", 8

    def embed_queries(self, texts: Sequence[str]) -> np.ndarray:
        return np.full((len(texts), self.dim), 8**-0.5, dtype=np.float32)

    embed_passages = embed_queries


TEXTS = {
    "en": ["The old bridge crosses the river.", "Rice grows in wet fields.", "The museum opens at nine."],
    "de": ["Die alte Brücke führt über den Fluss.", "Das Museum öffnet um neun."],
    "ar": ["الجسر القديم يعبر النهر.", "ينمو الأرز في الحقول الرطبة."],
    "hi": ["पुराना पुल नदी के पार जाता है।", "संग्रहालय नौ बजे खुलता है।"],
    "zh-Hans": ["旧桥横跨河流。", "水稻生长在湿地里。"],
    "ko": ["오래된 다리가 강을 건넌다.", "박물관은 아홉 시에 문을 연다."],
    "th": ["สะพานเก่าข้ามแม่น้ำ", "ข้าวเติบโตในทุ่งนา"],
}


def small_corpus() -> list[Passage]:
    return [
        Passage(id=f"{lang}-{number}", lang=lang, text=text, title=f"title {number}", doc_id=f"doc-{number}")
        for lang, texts in TEXTS.items()
        for number, text in enumerate(texts)
    ]


@pytest.fixture
def passages() -> list[Passage]:
    return small_corpus()


@pytest.fixture
def token_hash() -> TokenHashEmbedder:
    return TokenHashEmbedder()


@pytest.fixture
def constant() -> ConstantEmbedder:
    return ConstantEmbedder()


@pytest.fixture
def make_index(tmp_path: Path, token_hash: TokenHashEmbedder) -> Callable[..., Index]:
    """Run ``build_index`` into a fresh folder, with the token-hash embedder and no progress bar."""
    made = 0

    def make(corpus: object, **options: object) -> Index:
        nonlocal made
        made += 1
        settings: dict[str, object] = {"embedder": token_hash, "progress": False, **options}
        return build_index(corpus, tmp_path / f"index-{made}", **settings)  # type: ignore[arg-type]

    return make
