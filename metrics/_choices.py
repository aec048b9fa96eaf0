"""Option chosen by a free-text reply."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import Final

from mrag_eval.core import split_thinking
from mrag_eval.languages import language
from mrag_eval.metrics._choice_options import Lexicon, Mention, Spans, inside, lexicon, normal, opens_line, plain_text
from mrag_eval.metrics._choice_sentences import BARE, CLAUSE_END, SENTENCE_END, SEVERAL, PreparedReply, Sentence
from mrag_eval.platform import MetricError

# Circled and squared labels become "⟦1⟧", "⟦B⟧" (NFKC would leave a bare 1 or B); marks without width are removed.
_PREPARE: dict[int, str | None] = {ord(char): f"⟦{i + 1}⟧" for i, char in enumerate("①②③④⑤⑥⑦⑧⑨⑩")}
for _first in (0x24B6, 0x24D0, 0x1F130, 0x1F150, 0x1F170):
    _PREPARE.update({_first + i: f"⟦{chr(65 + i)}⟧" for i in range(26)})
_PREPARE.update(dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF, 0x061C, *range(0x202A, 0x202F))))
_PREPARE.update(dict.fromkeys(map(ord, "፦፡∶꞉"), ":"))
_PREPARE.update(dict.fromkeys(map(ord, "’ʼ‘"), "'"))

# a set of characters beyond the first plane would be slow to search for, a range is not
_SPECIAL: Final = re.compile(f"[{''.join(chr(code) for code in _PREPARE if code < 1 << 16)}\U0001f130-\U0001f189]")

_LATEX = re.compile(r"\\(?:text|textbf|mathrm|mathbf|textit)\s*\{([^{}]*)\}")
_STRUCTURED: Final = re.compile(r"\\boxed\s*\{([^{}]*)\}|\{[^{}]*\}")
# Keys and values of an object, or of a text that is meant to be one: quotation marks may be missing.
_PAIR: Final = re.compile(r"[{,]\s*[\"'“]?([^\"'“”:,{}\[\]\s]+)[\"'”]?\s*:\s*(\[[^\]]*|\"[^\"]*|“[^”]*|'[^']*|[^,}]*)")
_KEYS: Final = frozenset(
    {"answer_choice", "answer", "choice", "final_answer", "correct_answer", "answer_letter", "option"}
)
# The head of a line that gives an answer, and its label, where the words around it are not known.
_HEADED: Final = re.compile(r"^[\s*_#>-]*[^\s:：\d*]{2,}(?: [^\s:：\d*]+){0,2}\s?[:：][\s*_]*")
_LABELLED: Final = re.compile(r"[\s*_(]*([^\W\d_])[\s*_)\].:、-]+")
# Labels that are sought where the options are unknown.
_LABELS: Final = 8
# A label with the marks around it, and the words of no reply that is one.
_LONGEST_LABEL: Final = 40
# Quotations and lines of dialogue.
_QUOTED: Final = re.compile(
    '[“„«‹「『][^“”„«»‹›「」『』\\n]{1,200}[”“»›」』]|"[^"\\n]{1,200}"|(?<!\\w)\'[^\\n]{1,200}?[.,!?]\'(?!\\w)'
    r"|(?:^|(?<=: ))[—–] ?[^—–\n]{1,200}[,.!?…] ?(?:[—–]|$)",
    re.MULTILINE,
)
# The most words behind a refusal that says of nobody that he does it, and the fewest characters of an answer before it.
_FEW, _SHORTEST_ANSWER = 4, 8
_RIGHT_MARKS: Final = "✅✔☑✓"
_MARK: Final = re.compile("[✅✔☑✓❌✗✘✖]")
_MARKED_LINE: Final = re.compile("^[^\\n✅✔☑✓❌✗✘✖]*[✅✔☑✓❌✗✘✖][^\\n]*$", re.MULTILINE)


def extract_choice(
    response: str,
    n_choices: int,
    options: Sequence[str] | None = None,
    lang: str | None = None,
    *,
    cut_off: bool = False,
) -> int | None:
    """Return the 0-based index of the option that a reply chooses, or None if it chooses none or several.

    A label or text alone decides, else the last statement (``Answer: B``, ``\\boxed{B}``), else where the label stands
    (docs/languages.md has the order). A reply that states an option and ends on the label of another (``Answer: A. No,
    B.``) gives None, unless it corrects itself (``Wait, B.``).

    Options that the words around them rule out or only weigh (``not A``, ``A deyil``, ``at first sight A``) do not
    count. Two options proposed at once (``A or B``) give None, as does a letter beyond ``n_choices``. Labels are A, B,
    C, ..., the letters of the language (가 나 다, أ ب ج, ক খ গ, ...), and numbers if announced or set off. Thinking
    (:func:`~mrag_eval.core.split_thinking`) is ignored. Texts of options are compared after NFKC and in
    lower case, punctuation aside; they may take endings. Of a reply that was cut off, what it announces or opens with
    counts alone: an option that it names may not be the one it was about to choose.

    Args:
        response: the model's answer.
        n_choices: the number of options, 1 to 26.
        options: their texts in order; without them only labels are found.
        lang: the reply's language (BCP 47). Its words and those of English count; those of English alone, beside what
            needs no words, for None and for a language without a file.
        cut_off: whether the reply ended at its length.

    Raises:
        MetricError: ``response`` is not a string, ``n_choices`` is out of range or differs from ``len(options)``.
        ConfigError: ``lang`` is no language code.
    """
    _check(response, n_choices, options)
    text = _prepared(response)
    texts = [plain_text(option) for option in options] if options is not None else []
    for found in _readings(text, n_choices, texts, lexicon(lang), cut_off):
        if found is not None:
            return found if 0 <= found < n_choices else None
    return None


def declines(text: str, lang: str | None = None, options: Sequence[str] = ()) -> bool:
    """Return whether a text declines to answer, in words of its language or of English.

    A text that names two options before it says so weighs them up, one that calls two right gives two answers, and one
    that chooses an option answers: none of them declines.

    Args:
        text: the model's answer.
        lang: its language (BCP 47); None for English.
        options: texts of the options; without them only labels are found.
    """
    if 1 <= len(options) <= 26 and extract_choice(text, len(options), options, lang) is not None:
        return False
    prepared = unicodedata.normalize("NFKC", text).replace("’", "'")
    reply = PreparedReply(prepared, len(options) or _LABELS, [plain_text(option) for option in options], lexicon(lang))
    said = reply.stated()[1]
    mentions = [mention for sentence in reply.sentences() for mention in sentence.mentions]
    return said != SEVERAL and _refuses(reply, mentions)


def reads_refusals(lang: str) -> bool:
    """Return whether the words are known in which replies in a language (BCP 47) decline."""
    known = language(lang)
    return known is not None and bool(known.words.refuses)


def _refuses(reply: PreparedReply, mentions: Sequence[Mention]) -> bool:
    """Return whether a reply declines before it answers, and does not turn to an answer behind that.

    What is quoted declines nothing, nor does what persons do if the clause is of others: "The boy did not know." An
    apology or a doubt declines alone: "Sorry for the confusion. It was 1890."
    """
    text = reply.text
    spans = reply.words.spans(reply.folded)
    if not (spans["refuses"] or spans["refuses_if_own"] or spans["refuses_if_alone"]):
        return False
    named = [(mention.start, mention.end) for mention in mentions]
    quoted = [match.span() for match in _QUOTED.finditer(text)]
    if len(quoted) == 1 and BARE.fullmatch(text[: quoted[0][0]] + text[quoted[0][1] :]):
        quoted = []
    although = [at for at, _ in spans["although"]]
    own = spans["own"] + spans["passage"] + (spans["option"] + spans["answer"] if reply.texts else [])
    owns = sorted(at for at, _ in own)
    sentences = [0, *map(re.Match.end, SENTENCE_END.finditer(text))]
    turns = [at for at, _ in spans["turns"]]
    clauses = sorted([*sentences, *map(re.Match.end, CLAUSE_END.finditer(text)), *turns, *although])

    def clause(at: int) -> tuple[int, int]:
        last = bisect_right(clauses, at)
        return clauses[last - 1], clauses[last] if last < len(clauses) else len(text)

    def whose(start: int, end: int, opens: bool = False) -> bool:
        first, last = clause(start)
        alone = BARE.fullmatch(text, first, start) and (opens or reply.texts or len(text[end:last].split()) <= _FEW)
        return bool(alone or (reply.texts and not mentions) or _between(owns, first, last))

    def conceded(start: int) -> bool:
        first, last = clause(start)
        within = not _between(sentences, first, first + 1) or (
            last < len(text) and not _between(sentences, last, last + 1)
        )
        return within and _between(although, first, start + 1)

    def counts(at: int) -> bool:
        return not (inside(named, at) or inside(quoted, at) or conceded(at))

    mild = [span for span in spans["refuses_if_alone"] if counts(span[0]) and whose(*span, opens=True)]
    # what an apology opens is the reply's own; "not sure" is no "not"
    owns = sorted([*owns, *(end for _, end in mild)])
    strong = spans["refuses"] + [span for span in spans["refuses_if_own"] if whose(*span)]
    said = [at for at, end in strong if counts(at) and not (inside(mild, at) and inside(mild, end - 1))]
    found = sorted([*said, *(at for at, _ in mild)])
    before = [mention for mention in mentions if found and mention.start < found[0]]
    if not found or len({mention.index for mention in before}) > 1:
        return False
    if not said and before and all(mention.doubted for mention in mentions):
        return False
    named_behind = {m.index for m in mentions if m.start > found[-1]}
    if not reply.texts:
        commas = {*clauses} - {*sentences, *turns}
        asserts = not said and _asserts(text, clauses, commas, spans, mild)
        return not (asserts or _answers(reply, spans, sentences, found))
    turned = found[0] if not said else next((end for start, end in reversed(spans["turns"]) if start > found[-1]), None)
    chosen = any(m.start >= turned and (m.doubted or not m.out) for m in mentions) if turned is not None else False
    return len(named_behind) != 1 or not chosen


def _between(places: Sequence[int], first: int, last: int) -> bool:
    """Return whether one of some places, in their order, is in a half-open span."""
    return bisect_left(places, first) < bisect_left(places, last)


def _answers(reply: PreparedReply, spans: Spans, sentences: Sequence[int], refusals: Sequence[int]) -> bool:
    """Return whether a reply to an open question answers before it declines, or turns to an answer behind that."""
    told = sorted(at for at, _ in spans["own"] + spans["passage"])
    for first, last in pairwise([*sentences, len(reply.text)]):
        said = reply.text[first:last].strip()
        if BARE.fullmatch(said) or said[-1] in "?!:？！：؟":
            continue
        if len(said) >= _SHORTEST_ANSWER and not _between(refusals, first, last) and not _between(told, first, last):
            return True
        break
    turned = next((end for start, end in reversed(spans["turns"]) if start > refusals[-1]), None)
    return turned is not None and not any(start >= turned for start, _ in spans["passage"])


def _asserts(
    text: str, clauses: Sequence[int], commas: Collection[int], spans: Spans, mild: Sequence[tuple[int, int]]
) -> bool:
    """Return whether a clause beside apologies and doubts says something of what was asked.

    That is a number, or words that neither deny nor speak of the one who replies or of his passages. Behind a comma,
    words may be what is doubted: "I am not sure, who that was" in other languages.
    """
    starts, doubted = [at for at, _ in mild], False
    fields = (("own",), ("rejects", "wrong"), ("passage",))
    places = [sorted(at for field in each for at, _ in spans[field]) for each in fields]
    for first, last in pairwise([*clauses, len(text)]):
        own, denied, passage = (_between(each, first, last) for each in places)
        held = _between(starts, first, last)
        said = text[mild[bisect_left(starts, last) - 1][1] if held else first : last]
        doubted = (doubted and first in commas) or (held and denied)
        if not passage and not (denied and (own or held)):
            # "Sorry for the confusion"
            few = sum(any(map(str.isalnum, word)) for word in said.split()) <= (_FEW if held else 0)
            if any(map(str.isdecimal, said)) or not (few or own or denied or doubted):
                return True
    return False


def _prepared(response: str) -> str:
    text = split_thinking(response).answer
    if not text.isascii():
        if _SPECIAL.search(text):
            text = text.translate(_PREPARE)
        text = unicodedata.normalize("NFKC", text)
    return (_LATEX.sub(r"\1", text) if "\\" in text else text).strip()


def _check(response: str, n_choices: int, options: Sequence[str] | None) -> None:
    if not isinstance(response, str):
        raise MetricError(f"response must be a string, got {type(response).__name__}")
    if not 1 <= n_choices <= 26:
        raise MetricError(f"n_choices must be 1 to 26, got {n_choices}")
    if options is not None and len(options) != n_choices:
        raise MetricError(f"{len(options)} option texts for {n_choices} choices")


def _readings(text: str, n: int, texts: Sequence[str], words: Lexicon, cut_off: bool) -> Iterator[int | None]:
    """Yield what each kind of evidence says, the strongest first; None where it says nothing."""
    text, structured = _structured(text, n, texts, words)
    if not structured:
        yield _whole(text, n, texts, words)
    if not words.known:
        yield _bare_line(text, n, texts, words)
    reply = PreparedReply(text, n, texts, words)
    position, said = reply.stated()
    later = [index for at, index in structured if at > position]
    if later:
        position, said = max(structured)[0], _only(later)
    yield None if said is None else reply.end_behind(position, said)
    sentences = reply.sentences()
    # without words, what a sentence says of an option is not known
    if not sentences or not words.known:
        return
    mentions = [mention for sentence in sentences for mention in sentence.mentions]
    if cut_off and len({mention.index for mention in mentions}) > 1:
        return
    yield _marked(text, mentions, n)
    listed = [m.index for m in mentions if m.label and opens_line(text, m.start)]
    # a reply that lists all options in their order, a line each, and rules out none
    if n > 1 and listed == list(range(n)) and not any(m.out for m in mentions):
        return
    leading = _leading(text, mentions)
    other = None if leading is None or len(sentences) < 2 else sentences[-1].ends_on_other(leading)
    yield leading if other is None else other
    if cut_off:
        return
    yield _eliminated(sentences, mentions, n)
    if not _refuses(reply, mentions):
        yield _by_place(sentences, mentions, n, [at for at, _ in reply.words.spans(reply.folded)["refuses_if_alone"]])


def _only(indices: Sequence[int]) -> int:
    return indices[0] if len(set(indices)) == 1 else SEVERAL


def _structured(text: str, n: int, texts: Sequence[str], words: Lexicon) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without its objects and boxes, and the positions and options of those that give an answer."""
    found: list[tuple[int, int]] = []

    def read(match: re.Match[str]) -> str:
        if match[1] is not None:
            claims = [match[1]]
            # a box goes before what stands above it
            found.clear()
        else:
            pairs = ((normal(key), value) for key, value in _PAIR.findall(match[0]))
            claims = [value for key, value in pairs if value.strip() and (key in _KEYS or key in words.words["answer"])]
        found.extend((match.start(), _value(claim, n, texts, words)) for claim in claims)
        return " " * len(match[0]) if claims else match[0]

    return _STRUCTURED.sub(read, text) if "{" in text else text, found


def _value(value: str, n: int, texts: Sequence[str], words: Lexicon) -> int:
    """Return the option that an answer in a structured form gives."""
    whole = _whole(f"({value})" if value.strip().isdecimal() else value, n, texts, words)
    if whole is not None:
        return whole
    named = {
        m.index
        for sentence in PreparedReply(value, n, texts, words).sentences()
        for m in sentence.mentions
        if not m.out
    }
    return named.pop() if len(named) == 1 else SEVERAL


def _whole(text: str, n: int, texts: Sequence[str], words: Lexicon) -> int | None:
    """Return the option of a reply that is nothing but a label or an option's text."""
    if len(text) > _LONGEST_LABEL + 2 * max(map(len, texts), default=0):
        return None
    plain = plain_text(text)
    exact = [i for i, option in enumerate(texts) if option and option == plain]
    if exact and not (len(plain) == 1 and plain.isascii() and plain.isalpha() and ord(plain) - 97 < n):
        return _only(exact)
    bare = text.strip(" \t\n*_`\"'“”‘’«»<>[](){}$#「」『』【】《》〈〉|~.,:;。、！？?!⟦⟧")
    if len(bare) == 1 and bare.isascii() and bare.isalpha():
        return ord(bare.upper()) - 65
    if bare.isdecimal() and len(bare) <= 2 and re.search(r"[(⟦]", text):
        return int(bare) - 1
    return words.labels.get(bare)


def _bare_line(text: str, n: int, texts: Sequence[str], words: Lexicon) -> int | None:
    """Return the option of the first or last line that is nothing but a label, with its text or a word and a colon."""
    found = []
    for line in dict.fromkeys(each.strip() for each in (text.partition("\n")[0], text.rpartition("\n")[2])):
        said = _HEADED.sub("", line)
        label = _LABELLED.match(said)
        behind = plain_text(said[label.end() :]) if label is not None else ""
        own = _whole(label[1], n, texts, words) if label is not None and behind else None
        if own is not None and own < len(texts) and texts[own] == behind:
            found.append(own)
        elif (whole := _whole(said, n, texts, words)) is not None:
            found.append(whole)
    return _only(found) if found else None


def _leading(text: str, mentions: Sequence[Mention]) -> int | None:
    """Return a label that opens the reply, set off from what explains it."""
    first = mentions[0]
    if not first.label or first.out or first.start > 12 or not opens_line(text, first.start):
        return None
    if not re.match(r"\w{1,3}(?:\.(?!\.)|[⟧)\]:*]|\s*(?:\n|$))", text[first.start :][:8]):
        return None
    if any(m.joined and not m.out and m.index != first.index for m in mentions[1:2]):
        return SEVERAL
    return first.index


def _marked(text: str, mentions: Sequence[Mention], n: int) -> int | None:
    """Return the only option of a list with a mark of its own for right, or the only one without a mark for wrong."""
    right: set[int] = set()
    wrong: set[int] = set()
    starts = [mention.start for mention in mentions]
    for line in _MARKED_LINE.finditer(text):
        first, end = bisect_left(starts, line.start()), bisect_left(starts, line.end())
        marks = [*_MARK.finditer(text, *line.span())] if first < end else []
        for mark in marks:
            # marks follow their options, or precede them if a mark comes first
            at = bisect_left(starts, mark.start()) - (marks[0].start() > starts[first])
            if first <= at < end:
                (right if mark[0] in _RIGHT_MARKS else wrong).add(mentions[at].index)
    if right:
        return _only([*right])
    rest = {*range(n)} - wrong
    return rest.pop() if len(rest) == 1 and n > 2 else None


def _eliminated(sentences: Sequence[Sentence], mentions: Sequence[Mention], n: int) -> int | None:
    """Return the option that a reply does not name, if it denies the first and the last of all others.

    A reply that denies the first only may have found its answer at the end: it is not read, unless it concludes there.
    """
    named = {m.index for m in mentions if m.index < n}
    if len(named) != n - 1 or n < 3:
        return None
    denied = {m.index for m in mentions if m.out}
    for sentence in sentences:
        group = {m.index for m in sentence.mentions}
        if sentence.denied and len(group) == 1:
            denied |= group
    first, last = mentions[0], mentions[-1]
    if first.index not in denied:
        return None
    if last.index in denied:
        return (set(range(n)) - named).pop()
    concluded = sentences[-1].concludes or (last.label and sentences[-1].closed_by(last))
    return None if concluded else SEVERAL


def _by_place(sentences: Sequence[Sentence], mentions: Sequence[Mention], n: int, doubts: Sequence[int]) -> int | None:
    """Return the option that the end of a reply names alone, else its beginning."""
    claims = [(sentence, mention) for sentence in sentences if (mention := sentence.claim()) is not None]
    if not claims:
        # "Perhaps B." proposes the only option that it names; "Perhaps B, but the text ..." does not
        if not all(mention.doubted and mention.index == mentions[0].index for mention in mentions):
            return None
        closing, behind = sentences[-1], mentions[-1].end
        parts = pairwise([*(end for end in closing.clauses if end >= behind), closing.end])
        goes_on = "".join(closing.text[start:end] for start, end in parts if not _between(doubts, start, end))
        return None if any(map(str.isalpha, goes_on)) else mentions[0].index
    (first_at, first), (last_at, last) = claims[0], claims[-1]
    at_start, closes = first_at is sentences[0], last_at.closed_by(last)
    named = {m.index for m in mentions if m.label}
    if len(named) == n - 1 > 1 and (first.index != last.index or not at_start) and not closes:
        return None
    if last_at is sentences[-1] and (last.label or not last_at.text[last_at.end :].strip()):
        if first.index == last.index or not at_start or last_at.concludes or (last.label and closes):
            return last.index
        if not first.label or last.label or closes:
            return None
    return first.index if at_start else None
