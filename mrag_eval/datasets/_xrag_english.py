"""XRAG's controls: question, supporting and distracting articles replaced by English versions (section 5.4).

An English question (EQ) asks for an English answer (the paper changes the language of both), so the row's language
becomes English and its reference the English answer. Articles (ES, ED) come from a file of translations, or from the
run's translator; the paper's were made with Google Translate and are not published. An article of the file that is
still in its language is shown as that, and is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mrag_eval.core import Failure, GivenPassage, RagDoc, is_language, same_language
from mrag_eval.datasets._files import iter_jsonl, require_columns, require_text, sha256_file
from mrag_eval.platform import DataError

Part = Literal["question", "supporting", "distracting"]
_LINE = '{"id": row id, "article": 0-based place in the row\'s articles, "text": English text}'


@dataclass(frozen=True)
class Translations:
    """English texts by passage id, and their source file."""

    path: Path
    texts: Mapping[str, str]
    sha256: str


def passage_id(row: str, article: int) -> str:
    """Return the id of an article: its row's id and its stored position in the row, from 0."""
    return f"{row}-a{article}"


def read_translations(path: Path | None, english: Collection[Part]) -> Translations | None:
    """Read the file of translated articles: JSON Lines of ``id``, ``article``, ``text``; None without a file, or if no
    article needs one.
    """
    if path is None or not {"supporting", "distracting"} & set(english):
        return None
    if not path.is_file():
        raise DataError(
            f"xrag: data.translations={path} is not a file", f"JSON Lines, one translated article per line: {_LINE}"
        )
    texts: dict[str, str] = {}
    for number, line in iter_jsonl(path):
        where = f"{path}, line {number}"
        require_columns(line, ("id", "article", "text"), where)
        article = line["article"]
        if isinstance(article, bool) or not isinstance(article, int) or article < 0:
            raise DataError(f"{where}: 'article' must be a whole number from 0, found {article!r:.40}")
        require_text(line["text"], where, "text")
        key = passage_id(str(line["id"]), article)
        if key in texts:
            raise DataError(f"{where}: article {article} of row '{line['id']}' is translated twice", "keep one of them")
        texts[key] = line["text"].strip()
    return Translations(path, texts, sha256_file(path))


def in_english(doc: RagDoc, english: Collection[Part], translations: Translations | None) -> RagDoc:
    """Return the row with the named parts replaced by their English versions; its id, group and order are unchanged.

    Without ``translations`` the articles keep their texts and are marked for the run's translator.
    Raises DataError naming the file and the row if the translation of an article is missing.
    """
    if "question" in english:
        doc = replace(doc, query=doc.extra["en_question"], query_lang="en", answers=(doc.extra["en_answer"],))
    return replace(doc, given_passages=tuple(_translated(doc, p, english, translations) for p in doc.given_passages))


def _translated(
    doc: RagDoc, passage: GivenPassage, english: Collection[Part], found: Translations | None
) -> GivenPassage:
    part = "supporting" if passage.is_gold else "distracting"
    if passage.lang == "en" or part not in english:
        return passage
    if found is None:
        return replace(passage, shown_in="en")
    text = found.texts.get(passage.id)
    if text is None:
        raise DataError(
            f"{found.path}: row '{doc.id}' has no translation of its {part} article "
            f"{passage.id.rpartition('-a')[2]} ({passage.lang}), which data.english asks for",
            f"add a line: {_LINE}",
        )
    return replace(passage, text=text, lang="en", original_lang=passage.lang)


def with_failures(
    docs: Sequence[RagDoc], translations: Translations, detect: Callable[[Sequence[str]], list[str]]
) -> tuple[list[RagDoc], int]:
    """Return the rows with a failure in each article of the file that is still in its own language, and their number.

    ``detect`` returns the languages of texts.
    """
    made = [p for doc in docs for p in doc.given_passages if p.original_lang]
    labels = detect([p.text for p in made])
    failed = {
        p.id
        for p, label in zip(made, labels, strict=True)
        if is_language(label) and same_language(label, str(p.original_lang))
    }
    failure = Failure("translation", translations.path.name, "wrong_language", texts="documents")

    def marked(p: GivenPassage) -> GivenPassage:
        if p.id not in failed:
            return p
        return replace(p, lang=str(p.original_lang), original_lang=None, failure=failure)

    return [replace(doc, given_passages=tuple(map(marked, doc.given_passages))) for doc in docs], len(failed)
