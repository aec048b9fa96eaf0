"""Option chosen by a free-text response."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mrag_eval.core import MetricError
from mrag_eval.metrics._choice_words import FILLER, JOINED, JOINED_BEFORE, LOCAL_LABELS, MARKER, NEGATIONS
from mrag_eval.metrics._scripts import NO_SPACE_SCRIPTS, script

# Circled and squared labels become "(1)", "(B)" (NFKC would leave a bare 1 or B); marks without width are removed.
_PREPARE: dict[int, str | None] = {ord(char): f"({i + 1})" for i, char in enumerate("①②③④⑤⑥⑦⑧⑨⑩")}
for _first in (0x24B6, 0x24D0, 0x1F130, 0x1F150, 0x1F170):
    _PREPARE.update({_first + i: f"({chr(65 + i)})" for i in range(26)})
_PREPARE.update(dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x061C, 0x0640, *range(0x202A, 0x202F))))
_PREPARE.update(dict.fromkeys(map(ord, "፦፡∶꞉"), ":"))

_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s*\{([^{}]*)\}")
_BOXED = re.compile(r"\\boxed\s*\{([^{}]*)\}")
_OBJECT = re.compile(r"\{[^{}]*\}", re.DOTALL)
_LOOSE_PAIR = re.compile(r"[\"'“]?\s*([\w ]+?)\s*[\"'”]?\s*:\s*[\"'“\[]*([^\"'”\]},]*)")
_KEYS = frozenset({"answer_choice", "answer", "choice", "final_answer", "correct_answer", "answer_letter", "option"})
_OPENING: Final = " \t*_`\"'“”‘’«»<>[](){}$#「」『』【】《》〈〉|~"
_SEPARATORS = re.compile(r"[\s*_`\"'“”‘’«»<>\[\](){}$|~#\-–—=→:]*")
# a label with its own mark: "B)", "(B)", "B.", "B:", "[B]", "**B**"
_MARKED_LETTER = re.compile(
    r"(?:(?<![\w'’])\(([A-Za-z])\)|\[([A-Za-z])\]|\*\*([A-Za-z])\*\*|(?<![\w'’.])([A-Za-z])\)|"
    r"(?:^|(?<=\n))[ \t>*_#-]*([A-Z])[.:](?=\s|\*|$)|\b[Oo](?:ption|pción|psi)\s+\**([A-Za-z])\b)"
)
_BARE_LETTER = re.compile(r"(?<![A-Za-z0-9_'’.&-])([A-Z])(?![A-Za-z0-9_'’&])")

_NOTHING: Final = -1  # text that is not an option
_OPEN: Final = -2  # no text that could be an option


def extract_choice(response: str, n_choices: int, options: Sequence[str] | None = None) -> int | None:
    """Return the 0-based index of the option that a response chooses, or None if it chooses none or several.

    The following are tried in order; the first one found decides:

    1. announced answers: ``Answer: B``, ``정답: B``, ``答案是B``, ``\\boxed{B}`` and similar forms in some 30
       languages, or an object ``{"answer_choice": "B"}``; the LAST announcement wins, two objects that disagree
       are ambiguous;
    2. the response as a whole: one letter (either case, full-width too), or exactly one option's text;
    3. a label that opens the response: ``B) Morocco, not A) Spain``;
    4. the only marked label anywhere: ``(B)``, ``**B**``, ``Option B``;
    5. the only option text contained in the response (longest first, so ``South Sudan`` is not ``Sudan``) and the only
       bare capital letter: either alone, or both if they agree.

    Labels are A, B, C, ... ; if announced or set off, also 1, 2, 3, the circled forms, and the letters that
    exams use locally (가 나 다, أ ب ج, ሀ ለ ሐ, ক খ গ, Α Β Γ, 甲 乙 丙, ...). Two different labels or options without an
    announcement, and a letter beyond ``n_choices``, give None. A reasoning block (``<think>``) is ignored; a
    cut-off one is ignored to the end of the response.
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
    text = _LATEX.sub(r"\1", unicodedata.normalize("NFKC", text)).strip()
    texts = [_plain(option) for option in options] if options is not None else []

    for attempt in (_announced, _whole, _leading, _only_marked, _mentioned):
        found = attempt(text, n_choices, texts)
        if found != _OPEN:
            return found if 0 <= found < n_choices else None
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
    objects = [(match.span(), claim) for match in _OBJECT.finditer(text) for claim in _object_claims(match[0])]
    objects = [(span, claim) for span, claim in objects if claim.strip()]
    blanked = list(text)
    for (start, end), _ in objects:
        blanked[start:end] = " " * (end - start)
    prose = "".join(blanked)
    # (position, announced text)
    lines = [(match.start(), _value(match[1], n, texts)) for match in _BOXED.finditer(prose)]
    lines += [(at, said) for at, said in _marker_claims(prose, n, texts) if said != _OPEN]
    last_line = max(lines, default=(-1, _OPEN))
    later = {_value(claim, n, texts) for (start, _), claim in objects if start > last_line[0]}
    if later:
        return later.pop() if len(later) == 1 else _NOTHING
    return last_line[1]


def _object_claims(group: str) -> Iterator[str]:
    """Yield the answers given in a JSON object, or in a text meant to be one."""
    try:
        pairs: dict[Any, Any] = json.loads(re.sub(r",\s*\}", "}", group))
    except ValueError:
        pairs = dict(_LOOSE_PAIR.findall(group))
    for key, value in pairs.items():
        name = str(key).strip().lower()
        if name in _KEYS or MARKER.fullmatch(name):
            listed = value if isinstance(value, list) else [value]
            yield " , ".join(str(entry) for entry in listed if entry is not None)


def _marker_claims(text: str, n: int, texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    for match in MARKER.finditer(text):
        gap = _SEPARATORS.match(text, match.end())
        assert gap is not None
        position, explicit = gap.end(), ":" in gap[0] or "=" in gap[0] or "→" in gap[0]
        while (word := FILLER.match(text, position)) is not None and position < len(text):
            gap = _SEPARATORS.match(text, word.end())
            assert gap is not None
            if gap.end() == len(text):
                break
            position, explicit = gap.end(), explicit or ":" in gap[0]
        tail = text[position:].split("\n", 1)[0]
        if not tail.strip(_OPENING):
            continue
        said = _value(tail, n, texts) if explicit else _opening_value(tail, n, texts)
        yield match.start(), said


def _value(value: str, n: int, texts: Sequence[str]) -> int:
    """Return the option of an answer text: a label first, then an option's text."""
    value = value.strip(_OPENING)
    if not value:
        return _OPEN
    opening = _opening_value(value, n, texts)
    if opening != _OPEN:
        return opening
    found = _contained(_plain(value), texts)
    return found.pop() if len(found) == 1 else _NOTHING


def _opening_value(value: str, n: int, texts: Sequence[str]) -> int:
    """Return the label or option text that a value starts with; open if it starts with something else."""
    value = value.strip(_OPENING)
    plain = _plain(value)
    exact = [i for i, option in enumerate(texts) if option and option == plain]
    label = _label(value)
    if label is not None:
        index, rest, doubtful = label
        if exact and (doubtful or index >= n):
            return exact[0] if len(exact) == 1 else _NOTHING
        others = _contained(_plain(rest), texts) if doubtful else set()
        if len(others) == 1 and index not in others:
            return others.pop()
        joined = JOINED.match(rest)
        second = _label(rest[joined.end() :]) if joined else None
        if second is not None and second[0] != index and not second[2]:
            return _NOTHING
        if any(other != index and JOINED_BEFORE.search(rest[:at]) for other, at in _marked(rest)):
            return _NOTHING
        return index if index < n else _NOTHING
    if exact:
        return exact[0] if len(exact) == 1 else _NOTHING
    starts = [i for i, option in enumerate(texts) if option and _starts_with(plain, option)]
    if starts:
        longest = max(starts, key=lambda i: len(texts[i]))
        rest = plain[len(texts[longest]) :]
        rivals = [before for index, before in _occurrences(rest, texts) if texts[index] != texts[longest]]
        return _NOTHING if any(not before.strip() or JOINED_BEFORE.search(before) for before in rivals) else longest
    return _OPEN


def _label(value: str) -> tuple[int, str, bool] | None:
    """Return a leading label: its index, the text after it, and whether it may be a word or number instead."""
    value = value.lstrip(_OPENING)
    if not value:
        return None
    for length in (3, 1):
        local = LOCAL_LABELS.get(value[:length])
        if local is not None and _ends(value, length):
            return local, value[length:], False
    first = value[0]
    if first.isascii() and first.isalpha():
        follower = value[1:2]
        if follower and (follower in "'’_&" or (follower.isalnum() and script(follower) in ("Latn", None))):
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
    return at >= len(value) or unicodedata.category(value[at])[0] not in "LMN"


def _whole(text: str, n: int, texts: Sequence[str]) -> int:
    """Return the option of a response that is nothing but a label or an option's text."""
    bare = text.strip(_OPENING + ".,:;。、!？?")
    plain = _plain(text)
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
    rivals = {index for index, at in _marked(first_line) if index != found[0] and not NEGATIONS.search(first_line[:at])}
    return _NOTHING if rivals else found[0]


def _marked(text: str) -> Iterator[tuple[int, int]]:
    for match in _MARKED_LETTER.finditer(text):
        letter = next(group for group in match.groups() if group)
        yield ord(letter.upper()) - 65, match.start()


def _only_marked(text: str, n: int, texts: Sequence[str]) -> int:
    """Return the only label with its own mark."""
    found = {index for index, at in _marked(text) if not NEGATIONS.search(text[:at])}
    if not found:
        return _OPEN
    return found.pop() if len(found) == 1 else _NOTHING


def _mentioned(text: str, n: int, texts: Sequence[str]) -> int:
    """Return the only option text and the only bare capital that the response contains."""
    options = {index for index, before in _occurrences(_plain(text), texts) if not NEGATIONS.search(before)}
    letters = set()
    for match in _BARE_LETTER.finditer(_without_options(text, texts)):
        index = ord(match[1]) - 65
        an_article = match[1] in "AEIOUY" and re.match(r"\s+[^\W\d_]", match.string[match.end() :])
        if index < n and not an_article and not NEGATIONS.search(match.string[: match.start()]):
            letters.add(index)
    found = options or letters
    if options and letters and len(options) > 1:
        found = letters
    elif options and letters and options != letters:
        return _NOTHING
    return found.pop() if len(found) == 1 else _NOTHING


def _without_options(text: str, texts: Sequence[str]) -> str:
    for option in sorted((option for option in texts if option), key=len, reverse=True):
        words = r"[\W_]+".join(re.escape(word) for word in option.split())
        text = re.sub(words, " - ", text, flags=re.IGNORECASE)
    return text


def _plain(text: str) -> str:
    """Return the text in NFKC, case folded, with every run of punctuation, symbols and spaces as one space."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    kept = (char if unicodedata.category(char)[0] in "LMN" else " " for char in folded)
    return " ".join("".join(kept).split())


# Words that are joined to the next one: Arabic, Hebrew and Ethiopic prepositions and articles.
_PROCLITICS = {"Arab": "وفبلك", "Hebr": "ובלמהשכ", "Ethi": "የበለከ"}


def _starts_with(text: str, option: str) -> bool:
    return text.startswith(option) and _right_edge(text, len(option))


def _contained(text: str, texts: Sequence[str]) -> set[int]:
    """Return the indices of the options whose text occurs in the text; a longer option hides shorter ones inside it."""
    return {index for index, _ in _occurrences(text, texts)}


def _occurrences(text: str, texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return each option found in the text, with the text before it."""
    found: list[tuple[int, str]] = []
    for option in sorted({option for option in texts if option}, key=len, reverse=True):
        position = text.find(option)
        while position >= 0:
            end = position + len(option)
            if _left_edge(text, position) and _right_edge(text, end):
                found.extend((i, text[:position]) for i, other in enumerate(texts) if other == option)
                text = text[:position] + "\n" * len(option) + text[end:]
            position = text.find(option, position + 1)
    return found


def _left_edge(text: str, position: int) -> bool:
    own = script(text[position])
    if position == 0 or own in NO_SPACE_SCRIPTS:
        return True
    start = position
    while start and unicodedata.category(text[start - 1])[0] in "LMN":
        start -= 1
    before = text[start:position]
    return all(char in _PROCLITICS.get(own or "", "") for char in before) and len(before) <= 2


def _right_edge(text: str, end: int) -> bool:
    # Korean attaches particles to the noun; scripts without spaces have no word boundaries
    if end >= len(text) or unicodedata.category(text[end])[0] not in "LMN":
        return True
    own = script(text[end - 1])
    follower = script(text[end])
    return own in NO_SPACE_SCRIPTS or own == "Hang" or (follower is not None and own is not None and follower != own)
