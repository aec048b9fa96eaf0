"""Classification of replies to a lettered question: an option was read, the reply declines, or it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from mrag_eval.platform import MetricError

Outcome = Literal["chosen", "chosen_of_several", "refused", "unread", "several", "beyond", "empty", "unclear"]
Share = Literal["read", "refused", "unread"]
# The share of replies that each outcome belongs to.
SHARES: dict[str, Share] = {
    "chosen": "read",
    "chosen_of_several": "read",
    "refused": "refused",
    "unread": "unread",
    "several": "unread",
    "beyond": "unread",
    "empty": "unread",
    "unclear": "unread",
}

# "A)" anywhere, or a letter that is the whole reply, whatever announces it ("Answer: A").
_LETTER = re.compile(r"(?<![^\W_])([A-H])\)|^\W*(?:\w+\W+){0,5}?([A-H])\W*$", re.IGNORECASE)


def reply_outcome(reply: str, options: Sequence[str], index: int, lang: str | None = None) -> Outcome:
    """Return the relation of a reply, read as option ``index`` (-1: none), to the options that it names.

    An option is named by its letter or by its name, in any case; a name inside a longer option's name does not count
    (Sudan in South Sudan). ``chosen`` and ``chosen_of_several``: an option was read, and the reply names no other, or
    others too. If none was read:

    - ``unread``: it names exactly one option (the reading rule missed it); ``beyond``: only a letter without an option;
    - ``refused``: it declines to choose, in words that :func:`~mrag_eval.metrics.declines` knows of its language or of
      English. Other refusals are not recognised, so their number is a lower bound;
    - ``several``: it names more than one; ``empty``: it is blank; ``unclear``: none of these.

    ``lang``: the reply's language (BCP 47); None for English.

    :data:`SHARES` gives the share of replies that an outcome belongs to: read, refused or unread.

    Raises MetricError for an index outside the options.
    """
    if not -1 <= index < len(options):
        raise MetricError(f"option {index} is outside -1..{len(options) - 1}")
    letters = {ord((first or second).upper()) - ord("A") for first, second in _LETTER.findall(reply)}
    rest, named = reply, {i for i in letters if i < len(options)}
    for i in sorted(range(len(options)), key=lambda i: -len(options[i])):
        name = re.escape(options[i])
        rest, count = re.subn(rf"{name}|(?i:(?<!\w){name}(?!\w))", "\0", rest) if name else (rest, 0)
        if count:
            named.add(i)
    if index >= 0:
        return "chosen" if named <= {index} else "chosen_of_several"
    if len(named) == 1:
        return "unread"
    if letters and not named:
        return "beyond"
    # the words of refusals take longer to load than most replies to classify
    from mrag_eval.metrics._choices import declines

    if declines(reply, lang, options):
        return "refused"
    if named:
        return "several"
    return "unclear" if reply.strip() else "empty"
