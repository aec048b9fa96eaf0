"""System prompts by name: the six of RAG in multilingual settings, in the language of the question or in English.

``system/variants.yaml`` defines the names; the files next to it hold the sentences, one file per language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mrag_eval.core import ConfigError, base_language, normalize_language
from mrag_eval.core import language_name as name

_FOLDER = Path(__file__).parent / "system"
_VARIANTS = "variants"


@dataclass(frozen=True)
class SystemPrompt:
    """A named system prompt with a text for each language of the question; ``label`` is the paper's.

    ``written_in`` is ``en`` or ``ul`` (the question's language); ``then`` names the sentence after the first.
    """

    name: str
    label: str
    written_in: str
    then: str | None = None

    def text(self, language: str, with_documents: bool) -> str:
        """Return the text for a question in ``language``, for a prompt with or without documents.

        A question in English gets only the first sentence. Raises ConfigError for a language without a text.
        """
        sentences = _sentences(language if self.written_in == "ul" else "en", self.name)
        first = sentences["with_documents" if with_documents else "without_documents"]
        if self.then is None or base_language(language) == "en":
            return first
        return first + sentences.get("joint", " ") + sentences[self.then].replace("{language}", name(language))

    def texts(self) -> dict[str, tuple[str, str]]:
        """Return every language's text, for a prompt with documents and for one without."""
        return {code: (self.text(code, True), self.text(code, False)) for code in prompt_languages()}

    def check(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for the first of ``languages`` that this prompt has no text in."""
        for language in languages:
            self.text(language, with_documents=True)


@lru_cache(maxsize=1)
def system_prompts() -> Mapping[str, SystemPrompt]:
    """Return all system prompts by name, in the paper's order."""
    return {name: SystemPrompt(name, **row) for name, row in _yaml(_VARIANTS).items()}


def prompt_languages() -> tuple[str, ...]:
    """Return the languages of the texts."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml") if path.stem != _VARIANTS))


def _sentences(language: str, prompt: str) -> Mapping[str, str]:
    for code in (normalize_language(language), base_language(language)):
        if code in prompt_languages():
            return _yaml(code)
    raise ConfigError(
        f"prompt.system: '{prompt}' has no text in {name(language)} (there are: {', '.join(prompt_languages())})",
        "use one written in English (short_in_ul_en), or give prompt.system the text itself or a file",
    )


@lru_cache(maxsize=32)
def _yaml(stem: str) -> dict[str, Any]:
    import yaml

    content: dict[str, Any] = yaml.safe_load((_FOLDER / f"{stem}.yaml").read_text(encoding="utf-8"))
    return content
