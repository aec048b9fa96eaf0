"""Records of ``mrag-eval build qa``: documents, and questions on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mrag_eval.building.qa._qa_config import LANGUAGE
from mrag_eval.platform import OPTIONAL


@dataclass(frozen=True, slots=True)
class QaDocument:
    """A document in the language drawn for it; ``versions`` are all that it is available in."""

    id: str
    lang: str
    title: str
    text: str
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QaQuestion:
    """A question to write on the ``excerpt`` of a document, and its texts once they are written.

    Attributes:
        id: of the question.
        document, doc_lang, title: id, language and title of the document.
        excerpt: the part of it that the question is written from.
        user_lang: the language to ask in.
        categories: the value drawn for each category.
        question, answer: in that language.
        corrected: whether a reviewer corrected the answer; None: not reviewed.
    """

    id: str
    document: str
    doc_lang: str
    title: str
    excerpt: str
    user_lang: str
    categories: Mapping[str, str]
    question: str = field(default="", metadata=OPTIONAL)
    answer: str = field(default="", metadata=OPTIONAL)
    corrected: bool | None = field(default=None, metadata=OPTIONAL)

    @property
    def traits(self) -> dict[str, str]:
        """Return the categories other than the language."""
        return {name: label for name, label in self.categories.items() if name != LANGUAGE}
