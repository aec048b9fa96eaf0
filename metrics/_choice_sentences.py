"""Sentences of a reply that name options, the last one first, and what their words say of each option."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mrag_eval.metrics._choice_options import (
    Lexicon,
    Mention,
    Occurrence,
    Span,
    Spans,
    candidates,
    fold,
    found_labels,
    inside,
    occurrences,
    opens_line,
    sought_options,
)

# A sentence before it is read: its start and end, texts of options, what may be a label, and words by field.
_Part = tuple[int, int, tuple[Occurrence, ...], list[Span], Spans]
SEVERAL: Final = -1
# The end of a sentence; Thai separates sentences by a space, and a label with a dot opens the text of its option. The
# mark itself is consumed first, so that the search leaps to it.
SENTENCE_END: Final = re.compile(
    r"[。！？।॥።۔\n.!?؟…\u0e00-\u0e7f]"
    r"(?:(?<=[。！？।॥።۔\n])|(?<=[.!?؟…])(?<!^\w\.)(?<!^[-*•] \w\.)[.!?؟…]*(?=[\"'”»)*_\]]*(?:\s|$))"
    r"|(?<=[\u0e00-\u0e7f]{2}) (?=[\u0e00-\u0e7f]{2}))",
    re.MULTILINE,
)
CLAUSE_END: Final = re.compile(r"[,،、፣;；؛፤—–-](?:(?<!-)|(?<=\s-)(?=\s))")
BARE: Final = re.compile(r"[\W_]*")
_CLOSED: Final = re.compile(r"[\W_]*[^\W\d_]{0,5}[\W_]*")
_SAID: Final = re.compile(r"[)\]*_\"'»”]*\s*(?:[.,;:!?\n。，！—–-]|$)")
_COMMA: Final = re.compile("[,、،፣/&+·・;]")
# "Answer: A dog"
_ARTICLE: Final = re.compile("[AEO] [a-z]")
_ANNOUNCED_ARTICLE: Final = re.compile(r":[\s*_]*[AEO]\s+[a-z]")
# More characters than stand between a negation or a connective and a label.
_BEFORE, _BEHIND, _BETWEEN = 18, 14, 28
# The most characters between an announcing word and what it announces, and the fewest between two answers.
_NEAR, _APART = 25, 5


@dataclass(slots=True)
class Sentence:
    """A sentence that names options.

    Attributes:
        text: the whole reply, which all positions are of.
        end: the position behind the sentence.
        mentions: the options that it names, in their order.
        answers: words that announce an answer or call it right.
        concludes: it draws a conclusion.
        clauses: where its clauses end.
        denied: the clauses that deny something other than one of its mentions.
        corrects: it takes back what was said before, for a mention of its own.
    """

    text: str
    end: int
    mentions: list[Mention]
    answers: tuple[Span, ...]
    concludes: bool
    clauses: tuple[int, ...]
    denied: frozenset[int] = frozenset()
    corrects: bool = False

    def clause(self, at: int) -> int:
        """Return the number of the clause at a position."""
        return bisect_right(self.clauses, at)

    def claim(self) -> Mention | None:
        """Return the only option that it names and does not deny; a label goes before texts."""
        out = {m.index for m in self.mentions if m.out}
        named = [m for m in self.mentions if not m.out and (m.label or m.index not in out)]
        if len({m.index for m in named}) != 1:
            return None
        labels = [m for m in named if m.label and self.clause(m.start) not in self.denied]
        if labels:
            return labels[-1]
        return None if self.denied else named[-1]

    def closed_by(self, mention: Mention) -> bool:
        """Return whether no more than marks and a short word stand between a mention and the end of the reply."""
        return _CLOSED.fullmatch(self.text[mention.end : mention.end + 40]) is not None

    def ends_on_other(self, index: int) -> int | None:
        """Return the other option on which it ends the reply, unless it is the last line of a list of options.

        It is :data:`SEVERAL` if the sentence does not say that it corrects what was said before.
        """
        claim = self.claim()
        if claim is None or not claim.label or claim.index == index or not self.closed_by(claim):
            return None
        listed = opens_line(self.text, claim.start) and any(map(str.isalpha, self.text[claim.start + 1 :]))
        return None if listed else claim.index if self.corrects else SEVERAL

    def stated(self) -> tuple[int, int | None]:
        """Return the position and the option of its last statement, which may be several options: "The answer is B"."""
        live = [m for m in self.mentions if not m.out]
        labels = [m for m in live if m.label]
        only = len({m.index for m in labels}) == 1
        clauses = [self.clause(m.start) for m in labels]
        for start, end in reversed(self.answers):
            clause = self.clause(start)
            here = labels[bisect_left(clauses, clause) : bisect_right(clauses, clause)]
            if here:
                return start, self._one_of(here, end)
            if only and clause not in self.denied:
                return start, self._one_of(labels, end)
            if not labels and (index := self._text_behind(live, end, clause)) is not None:
                return start, index
        return -1, None

    def _one_of(self, labels: Sequence[Mention], at: int) -> int:
        """Return the option that one or several labels state, for an announcement that ends at a position."""
        if len({m.index for m in labels}) == 1:
            return SEVERAL if self._with_another(labels[0]) else labels[0].index
        behind = [m for m in labels if m.start >= at][:2]
        near = bool(behind) and behind[0].start - at <= _NEAR
        crowded = any(m.joined or m.start - behind[0].end <= _APART for m in behind[1:])
        return behind[0].index if near and not crowded else SEVERAL

    def _text_behind(self, live: Sequence[Mention], at: int, clause: int) -> int | None:
        """Return the option whose text is behind an announcement, if it is not joined to another."""
        behind = live[bisect_left(live, at, key=lambda m: m.start) :][:2]
        if not behind or behind[0].start > at + _NEAR or self.clause(behind[0].start) != clause:
            return None
        return None if any(m.joined for m in behind[1:]) else behind[0].index

    def _with_another(self, mention: Mention) -> bool:
        """Return whether another option is proposed with a mention, or its letter may be an article."""
        at = self.mentions.index(mention)
        # a join connects the second of two mentions to the first
        joined = [m for m in self.mentions[at + 1 : at + 2] if m.joined]
        joined += self.mentions[at - 1 : at] if mention.joined else []
        if any(not other.out and other.index != mention.index for other in joined):
            return True
        return _ANNOUNCED_ARTICLE.search(self.text, max(0, mention.end - 6), mention.end + 3) is not None


class PreparedReply:
    """A reply in NFKC, to a question with ``n`` options of these texts, in the words of its language."""

    def __init__(self, text: str, n: int, texts: Sequence[str], words: Lexicon) -> None:
        self.text, self.n, self.texts, self.words = text, n, tuple(texts), words
        self.folded = fold(text)
        self._found: list[_Part] = []
        self._backwards = self._parts()

    def stated(self) -> tuple[int, int | None]:
        """Return where the last statement of an answer stands, and its option; -1 and None without one.

        The sentences before it are not read.
        """
        for part in self._backwards:
            self._found.append(part)
            if part[-1]["answer"]:
                position, index = self._sentence(*part).stated()
                if index is not None:
                    return position, index
        return -1, None

    def end_behind(self, position: int, index: int) -> int:
        """Return the option stated at a position, or what a sentence that ends the reply on another makes of it."""
        later = self._found and self._found[0][0] > position
        other = self._sentence(*self._found[0]).ends_on_other(index) if later else None
        return index if other is None else other

    def sentences(self) -> list[Sentence]:
        """Return the sentences that name options, in their order."""
        self._found += self._backwards
        read = (self._sentence(*self._found.pop()) for _ in range(len(self._found)))
        return [sentence for sentence in read if sentence.mentions]

    def _parts(self) -> Iterator[_Part]:
        """Yield the sentences that may name options, the last one first."""
        end, sought, possible = len(self.text), sought_options(self.texts), candidates(self.words)
        for start in reversed([0, *map(re.Match.end, SENTENCE_END.finditer(self.text))]):
            labels = [match.span(1) for match in possible.finditer(self.text, start, end)]
            texts = occurrences(self.folded, start, end, sought)
            if texts or labels:
                yield start, end, texts, labels, self.words.spans(self.folded, start, end)
            end = start

    def _sentence(
        self, start: int, end: int, texts: Sequence[Occurrence], labels: Sequence[Span], spans: Spans
    ) -> Sentence:
        """Return a sentence with what its words say of the options that it names."""
        text = self.text
        denials = sorted(spans["wrong"] + spans["rejects"])
        # neither "not correct" nor "I don't choose A", nor the word for a choice in that for an option
        names = sorted({*spans["option"]} - {*spans["answer"]})
        apart = (at for at in spans["answer"] if not (inside(denials, at[0]) or inside(denials, at[0] - 2)))
        answers = tuple(at for at in apart if not (inside(names, at[0]) and inside(names, at[1] - 1)))
        found = [Mention(*each, label=False) for each in texts]
        for mention in found_labels(text, self.n, self.words, labels, answers, spans):
            label = text[mention.start : mention.end]
            if label.isdecimal() and label in self.texts:
                mention.index = self.texts.index(label)
            found.append(mention)
        found.sort(key=lambda mention: (mention.start, -mention.end))
        ends = [*map(re.Match.end, CLAUSE_END.finditer(text, start, end)), *(at for at, _ in spans["turns"])]
        clauses = tuple(sorted(ends)) if spans["turns"] else tuple(ends)
        mentions = _connected(text, found, spans["joins"])
        # Indonesian "bisa jadi" (perhaps) holds "jadi" (so)
        concludes = any(not inside(spans["hedges"], at) for at, _ in spans["concludes"])
        sentence = Sentence(text, end, mentions, answers, concludes, clauses)
        _rule_out(sentence, spans)
        starts = [mention.start for mention in mentions]
        for _, last in spans["corrects"]:
            at = bisect_left(starts, last)
            # "A, no wait, B.", and not "A, actually B is older"
            if at < len(starts) and starts[at] - last <= _NEAR and not mentions[at].out:
                behind = text[mentions[at].end : end]
                sentence.corrects |= bool(_SAID.match(behind) or _CLOSED.fullmatch(behind))
                for mention in mentions[: at * sentence.corrects]:
                    mention.out |= mention.index != mentions[at].index
        return sentence


def _connected(text: str, found: Sequence[Mention], joins: Sequence[Span]) -> list[Mention]:
    """Return the mentions with their connections; a label and its option's text next to each other are one mention."""
    out: list[Mention] = []
    for mention in found:
        if out:
            last = out[-1]
            if mention.start < last.end:
                continue
            if mention.start - last.end <= _BETWEEN:
                gap = text[last.end : mention.start]
                bare = BARE.fullmatch(gap) is not None
                if mention.index == last.index and bare and last.label != mention.label:
                    last.end, last.label = mention.end, True
                    continue
                between = joins[bisect_left(joins, (last.end, 0)) : bisect_left(joins, (mention.start, 0))]
                if last.label and not mention.label and _ARTICLE.fullmatch(text, last.start, mention.start + 1):
                    out.pop()
                elif bare:
                    mention.joined = _COMMA.search(gap) is not None or not gap.strip()
                else:
                    mention.joined = bool(between)
        out.append(mention)
    return out


def _rule_out(sentence: Sentence, spans: Spans) -> None:
    """Mark the mentions that the words around them rule out, those joined to them, and those only tried or doubted."""
    wrong, rejects, tentative, hedges = (spans[name] for name in ("wrong", "rejects", "tentative", "hedges"))
    if not (wrong or rejects or tentative or hedges):
        return
    mentions, clause = sentence.mentions, sentence.clause
    # Japanese かもしれ (perhaps) holds もし (if)
    tentative = [span for span in tentative if not inside(hedges, span[0])]
    tried, doubted = ({clause(start) for start, _ in of if not sentence.concludes} for of in (tentative, hedges))
    doubted -= tried
    weighed = tried | doubted
    starts = [mention.start for mention in mentions]
    behind, used = [clause(mention.start) in weighed for mention in mentions], set()
    for mention in mentions:
        mention.doubted = clause(mention.start) in doubted
    for start, end in rejects:
        at = bisect_left(starts, end)
        if at < len(starts) and starts[at] - end <= _BEFORE and clause(start) == clause(starts[at]):
            mentions[at].out, mentions[at].doubted = True, False
            used.add(start)
    for start, _ in wrong:
        at = bisect_left(starts, start) - 1
        gap = start - mentions[at].end if at >= 0 else -1
        if 0 <= gap <= _BEHIND and clause(start) == clause(starts[at]):
            behind[at], mentions[at].doubted = True, False
            used.add(start)
    for at in range(1, len(mentions)):
        mentions[at].out |= mentions[at].joined and mentions[at - 1].out
    for at in range(len(mentions) - 2, -1, -1):
        behind[at] |= mentions[at + 1].joined and behind[at + 1]
    for mention, denied in zip(mentions, behind, strict=True):
        mention.out |= denied
    sentence.denied = frozenset(clause(start) for start, _ in (*wrong, *rejects) if start not in used)
