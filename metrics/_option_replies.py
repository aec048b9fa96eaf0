"""Classification of replies to a lettered question from which no single option could be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from mrag_eval.core import MetricError

Outcome = Literal["chosen", "chosen_of_several", "unread", "several", "beyond", "refused"]
OUTCOMES: tuple[Outcome, ...] = ("chosen", "chosen_of_several", "unread", "several", "beyond", "refused")
_LETTER = re.compile(r"(?<![^\W_])([A-H])\)")


def reply_outcome(reply: str, options: Sequence[str], index: int) -> Outcome:
    """Return the relation of a reply, read as option ``index`` (-1: none), to the options that it names.

    An option is named by its letter (``A)``) or by its name; a name inside a longer option's name does not count (Sudan
    in South Sudan). ``chosen`` and ``chosen_of_several``: an option was read, and the reply names no other, or others
    too. If none was read: ``unread`` names exactly one (the reading rule missed it), ``several`` more than one,
    ``beyond`` only a letter beyond the options, ``refused`` none.

    Raises MetricError for an index outside the options.
    """
    if not -1 <= index < len(options):
        raise MetricError(f"option {index} is outside -1..{len(options) - 1}")
    letters = {ord(letter) - ord("A") for letter in _LETTER.findall(reply)}
    rest, named = reply, {i for i in letters if i < len(options)}
    for i in sorted(range(len(options)), key=lambda i: -len(options[i])):
        if options[i] and options[i] in rest:
            named.add(i)
            rest = rest.replace(options[i], "\0")
    if index >= 0:
        return "chosen" if named <= {index} else "chosen_of_several"
    if named:
        return "unread" if len(named) == 1 else "several"
    return "beyond" if letters else "refused"
