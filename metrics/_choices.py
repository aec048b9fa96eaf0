"""Option chosen by a free-text response."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from mrag_eval.core import MetricError
from mrag_eval.metrics._choice_mentions import Mention, first_proposed, mentions, says_right
from mrag_eval.metrics._choice_objects import OBJECT, object_claims
from mrag_eval.metrics._choice_texts import occurrences, plain_text, starts_with
from mrag_eval.metrics._choice_words import (
    DENIED,
    FILLER,
    LABEL_ENDING,
    LOCAL_LABELS,
    MARKER,
    SYLLABLE_ENDING,
    compiled,
)
from mrag_eval.text import script

# Circled and squared labels become "(1)", "(B)" (NFKC would leave a bare 1 or B); marks without width are removed.
_PREPARE: dict[int, str | None] = {ord(char): f"({i + 1})" for i, char in enumerate("①②③④⑤⑥⑦⑧⑨⑩")}
for _first in (0x24B6, 0x24D0, 0x1F130, 0x1F150, 0x1F170):
    _PREPARE.update({_first + i: f"({chr(65 + i)})" for i in range(26)})
_PREPARE.update(dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x061C, *range(0x202A, 0x202F))))
_PREPARE.update(dict.fromkeys(map(ord, "፦፡∶꞉"), ":"))
_PREPARE.update(dict.fromkeys(map(ord, "’ʼ‘"), "'"))

# The tatweel, unless it sets off a preposition, which is no label: "بـ 24".
_TATWEEL = re.compile(r"ـ(?=\w)|(?<![بكلف])ـ|(?<=\w[بكلف])ـ")
_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s*\{([^{}]*)\}")
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_OPENING: Final = " \t*_`\"'“”‘’«»<>[](){}$#「」『』【】《》〈〉|~"
_SEPARATORS = re.compile(r"[\s*_`\"'“”‘’«»<>\[\](){}$|~#\-–—=→:]*")

_NOTHING: Final = -1  # text that is not an option
_OPEN: Final = -2  # no text that could be an option


def extract_choice(response: str, n_choices: int, options: Sequence[str] | None = None) -> int | None:
    """Return the 0-based index of the option that a response chooses, or None if it chooses none or several.

    The following are tried in order; the first one found decides:

    1. announced answers: ``Answer: B``, ``정답: B``, ``答案是B``, ``\\boxed{B}`` and similar forms in 32 languages, or
       an object ``{"answer_choice": "B"}``; the LAST announcement wins, two objects that disagree are ambiguous;
    2. the response as a whole: one letter (either case, full-width too), or exactly one option's text;
    3. a label that opens the response: ``B) Morocco, not A) Spain``;
    4. the only option that the words behind it call right: ``B is correct``, ``B가 정답``, ``گزینه ۲ درست است``;
    5. the only marked label anywhere: ``(B)``, ``**B**``, ``Option B``, ``B variantı``;
    6. the only option text contained in the response (longest first, so ``South Sudan`` is not ``Sudan``) and the only
       bare label: either alone, or both if they agree.

    Options that the words before or behind them rule out (``not A``, ``A deyil``, ``A — no, B``) do not count. Two
    options that are proposed at once (``A or B``) give None, as do two different ones without an announcement, and a
    letter beyond ``n_choices``. Labels are A, B, C, ... and the letters that exams use locally (가 나 다, أ ب ج, ሀ ለ ሐ,
    ক খ গ, Α Β Γ, 甲 乙 丙, ...); if announced or set off, also 1, 2, 3 and the circled forms. A reasoning block
    (``<think>``) is ignored; a cut-off one is ignored to the end of the response.
    Option texts are compared after NFKC and case folding, punctuation aside.

    Args:
        response: the model's answer.
        n_choices: the number of options, 1 to 26.
        options: their texts in order; without them only labels are found.

    Raises:
        MetricError: ``response`` is not a string, ``n_choices`` is out of range or differs from ``len(options)``.
    """
    _check(response, n_choices, options)
    text = response.rpartition("</think>")[2].partition("<think>")[0].translate(_PREPARE)
    text = _LATEX.sub(r"\1", _TATWEEL.sub("", unicodedata.normalize("NFKC", text))).strip()
    texts = [plain_text(option) for option in options] if options is not None else []

    for attempt in (_announced, _whole, _leading):
        index = attempt(text, n_choices, texts)
        if index != _OPEN:
            return index if 0 <= index < n_choices else None
    found = mentions(text, n_choices, texts)
    for choice in (_confirmed(text, found), _only_marked(found), _mentioned(found)):
        if choice != _OPEN:
            return choice if 0 <= choice < n_choices else None
    return None


def _check(response: str, n_choices: int, options: Sequence[str] | None) -> None:
    if not isinstance(response, str):
        raise MetricError(f"response must be a string, got {type(response).__name__}")
    if not 1 <= n_choices <= 26:
        raise MetricError(f"n_choices must be 1 to 26, got {n_choices}")
    if options is not None and len(options) != n_choices:
        raise MetricError(f"{len(options)} option texts for {n_choices} choices")


def _announced(text: str, n: int, texts: Sequence[str]) -> int:
    """Return the last announced answer; an announcement without any content does not count."""
    objects = [(match.span(), claim) for match in OBJECT.finditer(text) for claim in object_claims(match[0])]
    objects = [(span, claim) for span, claim in objects if claim.strip()]
    blanked = list(text)
    for (start, end), _ in objects:
        blanked[start:end] = " " * (end - start)
    prose = "".join(blanked)
    boxes = list(_BOXED.finditer(prose))
    boxed = boxes[-1] if boxes else None
    last = _last_marker_claim(prose, boxed.start() if boxed else -1, n, texts)
    if last is None:
        last = (boxed.start(), _value(boxed[1], n, texts)) if boxed else (-1, _OPEN)
    later = {_value(claim, n, texts) for (start, _), claim in objects if start > last[0]}
    if later:
        return later.pop() if len(later) == 1 else _NOTHING
    return last[1]


def _last_marker_claim(text: str, after: int, n: int, texts: Sequence[str]) -> tuple[int, int] | None:
    """Return the position and the option of the last announcement behind a position; None if all are open.

    Every part of the text is read a fixed number of times: announcements that run into the same words share them.
    """
    behind: dict[int, tuple[int, bool]] = {}
    open_at: set[tuple[int, bool]] = set()
    markers = [match for match in compiled(MARKER).finditer(text) if match.start() > after]
    denied = {at for match in compiled(DENIED).finditer(text) for at in range(*match.span())} if markers else set()
    for match in reversed(markers):
        if match.start() in denied:
            continue
        gap = _SEPARATORS.match(text, match.end())
        assert gap is not None
        position, colon = _behind_fillers(text, gap.end(), behind)
        explicit = colon or ":" in gap[0] or "=" in gap[0] or "→" in gap[0]
        if (position, explicit) in open_at:
            continue
        line_end = text.find("\n", position)
        stop = len(text) if line_end < 0 else line_end
        if explicit:
            said = _value(text[position:stop], n, texts)
        elif _opens(text, position, stop, texts):
            said = _opening_value(text[position:stop], n, texts)
        else:
            said = _OPEN
        if said != _OPEN:
            return match.start(), said
        open_at.add((position, explicit))
    return None


def _behind_fillers(text: str, position: int, behind: dict[int, tuple[int, bool]]) -> tuple[int, bool]:
    """Return the position after the fillers that begin there, and whether a colon follows one of them.

    ``behind`` holds what is known already, by position, and is extended.
    """
    passed: list[tuple[int, bool]] = []
    while position not in behind:
        word = compiled(FILLER).match(text, position) if position < len(text) else None
        gap = _SEPARATORS.match(text, word.end()) if word else None
        if gap is None or gap.end() == len(text):
            behind[position] = (position, False)
        else:
            passed.append((position, ":" in gap[0]))
            position = gap.end()
    end, colon = behind[position]
    for start, own in reversed(passed):
        colon = colon or own
        behind[start] = (end, colon)
    return end, colon


def _opens(text: str, start: int, stop: int, texts: Sequence[str]) -> bool:
    """Return whether a part of a text starts with a label or an option's text, reading no more of it than needed."""
    while start < stop and text[start] in _OPENING:
        start += 1
    enough = max(map(len, texts), default=0) + 8
    length = 2 * enough
    while True:
        end = min(start + length, stop)
        # no cut between characters that normalisation joins
        while end < stop and (unicodedata.category(text[end])[0] == "M" or "\u1100" <= text[end] <= "\u11ff"):
            end += 1
        plain = plain_text(text[start:end])
        if len(plain) >= enough or end == stop:
            value = text[start:end].strip(_OPENING)
            return _label(value) is not None or any(option and starts_with(plain, option) for option in texts)
        length *= 2


def _value(value: str, n: int, texts: Sequence[str]) -> int:
    """Return the option of an answer text: a label first, then an option's text."""
    value = value.strip(_OPENING)
    if not value:
        return _OPEN
    opening = _opening_value(value, n, texts)
    if opening != _OPEN:
        return opening
    index = _mentioned(mentions(value, n, texts))
    return index if index != _OPEN else _NOTHING


def _opening_value(value: str, n: int, texts: Sequence[str]) -> int:
    """Return the option proposed by a value that starts with a label or option text; open if it starts otherwise."""
    value = value.strip(_OPENING)
    plain = plain_text(value)
    exact = [i for i, option in enumerate(texts) if option and option == plain]
    label = _label(value)
    lead = None
    if label is not None:
        index, rest, doubtful = label
        if exact and (doubtful or index >= n):
            return exact[0] if len(exact) == 1 else _NOTHING
        others = {i for i, _, _ in occurrences(rest, texts)} if doubtful else set()
        if len(others) == 1 and index not in others:
            return others.pop()
        lead = Mention(index, 0, len(value) - len(rest), marked=True)
    elif exact:
        return exact[0] if len(exact) == 1 else _NOTHING
    elif not any(option and starts_with(plain, option) for option in texts):
        return _OPEN
    found = first_proposed(mentions(value, n, texts, lead))
    return found.index if found is not None and found.index < n else _NOTHING


def _label(value: str) -> tuple[int, str, bool] | None:
    """Return a leading label: its index, the text after it, and whether it may be a word or number instead."""
    value = value.lstrip(_OPENING)
    if not value:
        return None
    for length in (3, 1):
        local = LOCAL_LABELS.get(value[:length])
        if local is not None and (_ends(value, length) or SYLLABLE_ENDING.match(value, length)):
            return local, value[length:], False
    first = value[0]
    if first.isascii() and first.isalpha():
        follower = value[1:2]
        if (
            LABEL_ENDING.match(value, 1) is None
            and follower
            and (follower in "'_&" or (follower.isalnum() and script(follower) in ("Latn", None)))
        ):
            return None
        word_follows = re.match(r"\s+[^\W\d_]{2}", value[1:]) is not None
        if word_follows and first.islower():
            return None
        return ord(first.upper()) - 65, value[1:], word_follows and first in "AEIOUY"
    number = re.match(r"(\d{1,2})(?![\d]|[.,:/]\d)", value)
    if number is not None and int(number[1]) >= 1:
        rest = value[number.end() :]
        if re.match(r"\s*(?:$|[).\]:,;*]|번|号|號|番)", rest):
            return int(number[1]) - 1, rest, True
    return None


def _ends(value: str, at: int) -> bool:
    """Return whether a label ends there: "ক'ব" is a word, "ב'" a label."""
    at += value[at : at + 1] == "'" and value[at + 1 : at + 2].isalpha()
    return at >= len(value) or unicodedata.category(value[at])[0] not in "LMN"


def _whole(text: str, n: int, texts: Sequence[str]) -> int:
    """Return the option of a response that is nothing but a label or an option's text."""
    bare = text.strip(_OPENING + ".,:;。、!？?")
    plain = plain_text(text)
    label = _label(bare) if bare else None
    if label is not None and not label[1].strip(_OPENING + ".,:;)。") and not bare.isdecimal():
        if label[0] < n:
            return label[0]
        if plain not in texts:
            return _NOTHING
    circled = re.fullmatch(r"\W*\((\d{1,2})\)\W*", text)
    if circled and plain not in texts:
        return int(circled[1]) - 1
    exact = [i for i, option in enumerate(texts) if option and option == plain]
    if exact:
        return exact[0] if len(exact) == 1 else _NOTHING
    return _OPEN


def _leading(text: str, n: int, texts: Sequence[str]) -> int:
    """Return a set-off label at the very start, unless others are also proposed or all options are listed."""
    start = re.match(r"[\s*_`\"'“#>]*[(\[]?(\w{1,3}?)[)\].:](?!\w)", text)
    found = _label(text) if start else None
    if start is None or found is None or found[0] >= n:
        return _OPEN
    if text[start.start(1)].isdecimal() and "(" not in start[0]:
        return _OPEN
    listed = [_label(line) for line in text.splitlines() if re.match(r"[\s*_#>-]*[(\[]?\w{1,3}[)\].:]", line)]
    if n > 1 and [entry[0] for entry in listed if entry is not None][:n] == list(range(n)):
        return _OPEN
    first_line = text.splitlines()[0]
    proposed = [mention for mention in mentions(first_line, n, texts) if not mention.out]
    if not proposed or proposed[0].index != found[0]:
        return _OPEN
    rivals = any(mention.marked and mention.index != found[0] for mention in proposed)
    return _NOTHING if rivals or first_proposed(proposed) is None else found[0]


def _confirmed(text: str, found: Sequence[Mention]) -> int:
    """Return the only option that the words behind it call right."""
    confirmed: set[int] = set()
    for at, mention in enumerate(found):
        if not mention.out and says_right(text, mention):
            confirmed.add(mention.index)
            if mention.joined and not found[at - 1].out:
                confirmed.add(found[at - 1].index)
    return _only(confirmed)


def _only_marked(found: Sequence[Mention]) -> int:
    """Return the only label with its own mark."""
    return _only({mention.index for mention in found if mention.marked and not mention.out})


def _mentioned(found: Sequence[Mention]) -> int:
    """Return the only option text and the only label that a text proposes."""
    proposed = [mention for mention in found if not mention.out]
    options = {mention.index for mention in proposed if mention.is_text}
    letters = {mention.index for mention in proposed if not mention.is_text}
    if options and letters and len(options) == 1 and options != letters:
        return _NOTHING
    return _only(letters or options)


def _only(found: set[int]) -> int:
    """Return the only element of a set; open if it is empty."""
    if not found:
        return _OPEN
    return found.pop() if len(found) == 1 else _NOTHING
