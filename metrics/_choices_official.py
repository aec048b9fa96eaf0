"""The answer rules of BLEnD and BorderLines / BordIRlines as their authors' code has them, faults included.

For comparing with published figures only; :func:`mrag_eval.metrics.extract_choice` is the one to use otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.core import MetricError
from mrag_eval.metrics._citations import parse_citations

_LETTERS = "ABCDEFGH"


def extract_choice_blend_official(response: str, prompt: str, options: Mapping[str, str]) -> str:
    """BLEnD's multiple-choice rule: the answer's letter, or the response itself where it is not understood.

    The first ``{...}`` is read as JSON and its ``answer_choice`` taken: the first capital in it if ``"<letter>."``
    stands in the prompt, else the option whose text it is. Without an object the first capital anywhere is the
    answer, so that "The answer is B" gives T. An object without the key gives the response.

    Args:
        response: the model's answer.
        prompt: the prompt it answers.
        options: letter -> option text.

    Raises:
        MetricError: the response is no string.

    Source: the evaluation script published with BLEnD.
    """
    _check(response)
    text = response.replace("\n", "")
    group = re.search(r"\{[^}]*\}", text)
    if group:
        text = group[0]
        try:
            decoded = json.loads(re.sub(r",\s*\}", "}", text.replace("`", "")))
        except ValueError:
            pass
        else:
            if "answer_choice" not in decoded:
                return response
            value = decoded["answer_choice"]
            letter = re.search(r"[A-Z]", str(value))
            if letter and f"{letter[0]}." in prompt:
                return letter[0]
            return next((key for key, option in options.items() if option == value), response)
    capital = re.search(r"[A-Z]", text)
    return capital[0] if capital else response


def parse_borderlines_direct(response: str, options: Sequence[str]) -> int:
    """BordIRlines' rule for direct answers: the option's index, or -1 (refusal).

    A single character gets ``)`` appended; a letter ``A)`` to ``H)`` at the start, else the only one anywhere, else an
    answer that is exactly an option's name. Case-sensitive, nothing is stripped; a letter beyond the options does not
    count. Raises MetricError if the response is no string.
    """
    _check(response)
    index = _letter(response)
    if index is not None and index < len(options):
        return index
    return options.index(response) if response in options else -1


def parse_borderlines_freetext(response: str, options: Sequence[str]) -> int | None:
    """BorderLines' rule for free text: the option's index; None where the original stops with an IndexError.

    The only option name contained in the response; else the only ``A)`` to ``G)``, which is not checked against the
    number of options (None if beyond it); else the name that comes first. Ties, and responses without any name, give
    0: the rule never refuses. Names inside longer names count (Sudan in South Sudan). Raises MetricError if the
    response is no string.
    """
    _check(response)
    contained = [index for index, option in enumerate(options) if option in response]
    if len(contained) == 1:
        return contained[0]
    letters = re.findall(r"([A-G])\)", response)
    if len(letters) == 1:
        index = _LETTERS.index(letters[0])
        return index if index < len(options) else None
    positions = [response.find(option) if option in response else len(response) for option in options]
    return positions.index(min(positions))


@dataclass(frozen=True, slots=True)
class BorderlinesCitation:
    """A parsed citation-format response: chosen option (-1: none), inline citations, ``Cited Documents:`` line."""

    index: int
    inline_citations: tuple[int, ...]
    cited_documents_line: str | None


def parse_borderlines_citation(response: str, options: Sequence[str]) -> BorderlinesCitation:
    """BordIRlines' rule for the citation format.

    The option is read between the first ``Chosen Option:`` and ``Explanation:`` (both must be there): the first
    option string (``A) name``) contained in it, else its letter; a name alone does not count. Citations are read as
    in :func:`~mrag_eval.metrics.parse_citations`. Raises MetricError if the response is no string.
    """
    cited = parse_citations(response)
    index = -1
    if "Chosen Option:" in response and "Explanation:" in response:
        chosen = response.split("Chosen Option:", 1)[1].split("Explanation:", 1)[0].strip()
        labelled = [f"{letter}) {option}" for letter, option in zip(_LETTERS, options, strict=False)]
        found = [position for position, option in enumerate(labelled) if option in chosen]
        letter_index = _letter(chosen)
        if found:
            index = found[0]
        elif letter_index is not None and letter_index < len(options):
            index = letter_index
    return BorderlinesCitation(index, cited.inline, cited.listed_line)


def _letter(text: str) -> int | None:
    if len(text) == 1:
        text += ")"
    if re.match(r"[A-H]\)", text):
        return _LETTERS.index(text[0])
    found = {letter for letter in _LETTERS if f"{letter})" in text}
    return _LETTERS.index(found.pop()) if len(found) == 1 else None


def _check(response: str) -> None:
    if not isinstance(response, str):
        raise MetricError(f"response must be a string, got {type(response).__name__}")
