"""System prompts by name: the six of RAG in multilingual settings, in the language of the question or in English.

``system_prompts.yaml`` defines the names; the sentences are in the files of languages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mrag_eval.core import base_language
from mrag_eval.languages import known_languages, language
from mrag_eval.languages import name_in_prompts as name
from mrag_eval.platform import ConfigError, read_yaml

_NAMED = Path(__file__).parent / "system_prompts.yaml"


@dataclass(frozen=True)
class SystemPrompt:
    """A named system prompt with a text for each language of the question; ``label`` is the paper's.

    ``written_in`` is ``en`` or ``ul`` (the question's language); ``then`` names the sentence after the first.
    """

    name: str
    label: str
    written_in: str
    then: str | None = None

    def text(self, code: str, with_documents: bool) -> str:
        """Return the text for a question in a language, for a prompt with or without documents.

        A question in English gets only the first sentence. Raises ConfigError for a language without a text.
        """
        sentences = _sentences(code if self.written_in == "ul" else "en", self.name)
        first = _part(sentences, code, "with_documents" if with_documents else "without_documents")
        if self.then is None or base_language(code) == "en":
            return first
        then = _part(sentences, code, self.then).replace("{language}", name(code))
        return first + sentences.get("joint", " ") + then

    def texts(self) -> dict[str, tuple[str, str]]:
        """Return every language's text, for a prompt with documents and for one without."""
        return {code: (self.text(code, True), self.text(code, False)) for code in prompt_languages()}

    def check(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for the first of ``languages`` that this prompt has no text in."""
        for code in languages:
            self.text(code, with_documents=True)


@lru_cache(maxsize=1)
def system_prompts() -> Mapping[str, SystemPrompt]:
    """Return all system prompts by name, in the paper's order."""
    return {name: SystemPrompt(name, **row) for name, row in read_yaml(_NAMED).items()}


def prompt_languages() -> tuple[str, ...]:
    """Return the languages of the texts."""
    return tuple(code for code in known_languages() if (known := language(code)) is not None and known.prompts)


def _part(sentences: Mapping[str, str], code: str, key: str) -> str:
    if key not in sentences:
        raise ConfigError(
            f"prompt.system: the file of {name(code)} has no text prompts.{key}", "add it: docs/languages.md"
        )
    return sentences[key]


def _sentences(code: str, prompt: str) -> Mapping[str, str]:
    known = language(code)
    if known is None or not known.prompts:
        raise ConfigError(
            f"prompt.system: '{prompt}' has no text in {name(code)} (there are: {', '.join(prompt_languages())})",
            "use one written in English (short_in_ul_en), or give prompt.system the text itself or a file",
        )
    return known.prompts
