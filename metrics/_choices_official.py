"""Answer rules of BLEnD and BorderLines / BordIRlines as implemented in their authors' code, faults included.

Use them only for comparison with published figures, and :func:`mrag_eval.metrics.extract_choice` otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.metrics._citations import parse_citations
from mrag_eval.platform import JsonFault, MetricError, json_value

_LETTERS = "ABCDEFGH"


def extract_choice_blend_official(response: str, prompt: str, options: Mapping[str, str]) -> str:
    """Apply BLEnD's multiple-choice rule: return the answer's letter, or the response itself if it is not understood.

    The first ``{...}`` is parsed as JSON and its ``answer_choice`` used: its first capital if ``"<letter>."`` occurs in
    the prompt, else the option with that text. Without an object the first capital anywhere is the answer, so that "The
    answer is B" gives T. An object without the key gives the response.

    Args:
        response: the model's answer.
        prompt: the prompt it answers.
        options: letter -> option text.

    Raises:
        MetricError: the response is not a string.

    Source: the evaluation script published with BLEnD.
    """
    _check(response)
    text = response.replace("\n", "")
    opening = text.find("{")
    closing = text.find("}", opening)
    if -1 < opening < closing:
        text = text[opening : closing + 1]
        try:
            decoded = json_value(re.sub(r",\s*\}", "}", text.replace("`", "")), lax="all")
        except JsonFault:
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
    """Apply BordIRlines' rule for direct answers: return the option's index, or -1 (refusal).

    A single character gets ``)`` appended. The answer is a letter ``A)`` to ``H)`` at the start, else the only one
    anywhere, else an answer that is exactly an option's name. Case-sensitive, without stripping; a letter beyond the
    options does not count. Raises MetricError if the response is not a string.
    """
    _check(response)
    index = _letter(response)
    if index is not None and index < len(options):
        return index
    return options.index(response) if response in options else -1


def parse_borderlines_freetext(response: str, options: Sequence[str]) -> int | None:
    """Apply BorderLines' rule for free text: return the option's index; None if the original fails with an IndexError.

    The answer is the only option name contained in the response; else the only ``A)`` to ``G)``, which is not checked
    against the number of options (None if beyond it); else the name that comes first. Ties, and responses without any
    name, give 0: the rule never refuses. Names inside longer names count (Sudan in South Sudan). Raises MetricError if
    the response is not a string.
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
    """Apply BordIRlines' rule for the citation format.

    The option is read between the first ``Chosen Option:`` and ``Explanation:`` (both are required): the first option
    string (``A) name``) contained in it, else its letter; a name alone does not count. Citations are read as in
    :func:`~mrag_eval.metrics.parse_citations`. Raises MetricError if the response is not a string.
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
