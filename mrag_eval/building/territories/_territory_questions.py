"""Questions and their template in ``mrag-eval build territories``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mrag_eval.languages import language
from mrag_eval.platform import ConfigError


@dataclass(frozen=True, slots=True)
class OwnQuestion:
    """A question on a territory in one language; ``options`` are the names of its claimants there."""

    id: str
    territory: str
    lang: str
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wording:
    """A question with the placeholders ``{territory}`` and ``{options}``, and the word between two options."""

    template: str
    between: str

    def question(self, territory: str, options: Sequence[str]) -> str:
        """Return the question with lettered options, ``A) x or B) y or C) z``, as BorderLines lists them."""
        lettered = [f"{chr(65 + i)}) {option}" for i, option in enumerate(options)]
        # sequential replacement would mistake a territory called {options} for the placeholder
        before, after = self.template.split("{options}")
        listed = f" {self.between} ".join(lettered)
        return before.replace("{territory}", territory) + listed + after.replace("{territory}", territory)


def fault_of(template: str) -> str | None:
    """Return the fault of a template; None for a valid one."""
    for place in ("{territory}", "{options}"):
        if template.count(place) != 1:
            return f"must hold {place} once"
    return None


def builtin_wording(lang: str) -> Wording | None:
    """Return the question in a language (BCP 47) from its file; None if it has none.

    Raises:
        ConfigError: the file gives one of its two parts, or a faulty question.
    """
    known = language(lang)
    if known is None or not known.territory:
        return None
    question, between = known.territory.get("question", ""), known.territory.get("between")
    fault = fault_of(question) or (None if between else "needs the key 'between' beside it")
    if fault is not None:
        raise ConfigError(f"{known.code}.yaml: territory: the question {fault}", "see docs/languages.md")
    return Wording(question, str(between))
