"""Thinking in a reply: the marks in which models write it, and the answer without it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

# What opens thinking, and what closes it.
Marks = tuple[str, str]
# Marks that stand anywhere, in any case.
MARKS: Final[tuple[Marks, ...]] = (
    # Qwen, DeepSeek, GLM, MiniMax, Phi, SmolLM, Nemotron, ...
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    # EXAONE Deep, Marco
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<antthinking>", "</antthinking>"),
    # Seed
    ("<seed:think>", "</seed:think>"),
    # Magistral
    ("[THINK]", "[/THINK]"),
    ("[thinking]", "[/thinking]"),
    # Kimi
    ("◁think▷", "◁/think▷"),
    # Sky-T1, OpenThinker
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    # Command A
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    # Apertus
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    # Solar
    ("<|think|>", "<|content|>"),
    # Gemma, MedGemma
    ("<|channel>thought", "<channel|>"),
    ("<unused94>thought", "<unused95>"),
    # LongCat, Pangu, s1
    ("<longcat_think>", "</longcat_think>"),
    ("[unused16]", "[unused17]"),
    ("<|im_start|>think\n", "<|im_start|>answer\n"),
    # Harmony (gpt-oss): all up to the channel of the answer
    ("<|channel|>analysis<|message|>", "<|channel|>final<|message|>"),
    ("<|channel|>commentary<|message|>", "<|channel|>final<|message|>"),
)
# Words that a text may hold, too: they open thinking at the start of a reply alone, in this case. Harmony's stand there
# without its special tokens, next to the thought; Granite's count where they are closed, Apriel's say what they open.
_AT_START: Final = (
    ("analysis", "assistantfinal", r"(?=[A-Z])"),
    ("Here is my thought process:", "Here is my response:", r"(?=[\s\S]*Here is my response:)"),
    ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", ""),
)
# Marks around the answer behind the thinking, and tokens that end a turn.
_BEFORE: Final = re.compile(
    r"(?:<\|(?:start|begin)\|>assistant|<\|end\|>|<\|START_RESPONSE\|>|<\|begin_of_(?:solution|box)\|>|<(?:response|output)>|\s)*",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"(?:</(?:response|output)>|<\|(?:return|end|im_end|END_RESPONSE|end_of_(?:solution|box))\|>"
    r"|\[END FINAL RESPONSE\]|\s)*",
    re.IGNORECASE,
)
# A text that may hold marks: any other is not searched.
_POSSIBLE: Final = re.compile(r"[<\[◁][/|◁A-Za-z]|\A\s*(?:analysis[A-Z]|Here (?:is my thought|are my reasoning))")


class Thought(NamedTuple):
    """A reply in parts.

    Attributes:
        answer: what stands outside the thinking; empty if the reply ends within it.
        thinking: the thinking, without its marks.
        cut: whether the thinking is not closed.
    """

    answer: str
    thinking: str = ""
    cut: bool = False


class _Patterns(NamedTuple):
    """Patterns of the marks: any opening one, all closing ones, and what closes each opening one."""

    opens: re.Pattern[str]
    closes: re.Pattern[str]
    bare: re.Pattern[str]
    closing: dict[str, re.Pattern[str]]


@lru_cache(maxsize=8)
def _patterns(own: tuple[Marks, ...]) -> _Patterns:
    marks = (*MARKS, *own)
    closing = {opens.lower(): re.compile(re.escape(closes), re.IGNORECASE) for opens, closes in marks}
    closing |= {opens.lower(): re.compile(re.escape(closes)) for opens, closes, _ in _AT_START}
    opens = "|".join(re.escape(each) for each, _ in marks)
    first = "|".join(rf"(?-i:\A\s*({re.escape(each)}){behind})" for each, _, behind in _AT_START)
    closes = "|".join(dict.fromkeys(re.escape(each) for _, each in marks))
    return _Patterns(
        re.compile(f"({opens})|{first}", re.IGNORECASE),
        re.compile(closes, re.IGNORECASE),
        re.compile(rf"(?:{closes})[ \t]*(?:\r?\n|$)", re.IGNORECASE),
        closing,
    )


def split_thinking(text: str, own: Sequence[Marks] = (), *, quotes: bool = False) -> Thought:
    """Return the answer and the thinking of a reply.

    Thinking that is not closed reaches to the end. A template may open the thinking itself, so that only its end is in
    the reply: what stands before that is thinking.

    Args:
        text: the reply.
        own: marks of a model beside :data:`MARKS`: what opens thinking, and what closes it.
        quotes: the reply may quote marks, as that of a judge does: thinking counts only before the answer, and an end
            without a beginning only at the end of a line, in a text that is no object, code or tag.
    """
    if not own and _POSSIBLE.search(text) is None:
        return Thought(text)
    known = _patterns(tuple(own))
    thoughts: list[str] = []
    answer: list[str] = []
    at, opened = 0, known.opens.search(text)
    if quotes and opened is not None and not _is_head(text[: opened.start()]):
        return Thought(text)
    while opened is not None:
        answer.append(text[at : opened.start()])
        closed = known.closing[next(filter(None, opened.groups())).lower()].search(text, opened.end())
        if closed is None:
            said = "".join(answer)
            return Thought(
                "" if _is_head(said) else said, "\n".join([*thoughts, text[opened.end() :].strip()]), cut=True
            )
        thoughts.append(text[opened.end() : closed.start()].strip())
        at = closed.end()
        opened = None if quotes else known.opens.search(text, at)
    rest = "".join([*answer, text[at:]])
    if not (quotes and (thoughts or text.lstrip().startswith(("{", "[", "`", "<")))):
        ends = [*(known.bare if quotes else known.closes).finditer(rest)]
        if ends:
            end = ends[0 if quotes else -1]
            thoughts.append(rest[: end.start()].strip())
            rest = rest[end.end() :]
    return Thought(_unwrapped(rest), "\n".join(thoughts)) if thoughts else Thought(text)


def _is_head(text: str) -> bool:
    return _BEFORE.fullmatch(text) is not None


def _unwrapped(answer: str) -> str:
    """Return an answer behind thinking without the marks around it."""
    start, end = _BEFORE.match(answer), len(answer)
    tail = next((found for found in _BEHIND.finditer(answer, max(0, end - 80)) if found.end() == end), None)
    return answer[start.end() if start else 0 : tail.start() if tail else end]
