"""Sentences of a reply that name options, the last one first, and what their words say of each option."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mrag_eval.metrics._choice_labels import Mention, candidates, found_labels
from mrag_eval.metrics._choice_texts import occurrences
from mrag_eval.metrics._choice_words import Lexicon, Span, fold, inside

SEVERAL: Final = -1
# The end of a sentence; Thai separates sentences by a space, and a label with a dot opens the text of its option. The
# mark itself is consumed first, so that the search leaps to it.
_SENTENCE_END: Final = re.compile(
    r"[。！？।॥።۔\n.!?؟… ]"
    r"(?:(?<=[。！？।॥።۔\n])|(?<=[.!?؟…])(?<!^\w\.)(?<!^[-*•] \w\.)(?<!^\*\*\w\.)[.!?؟…]*(?=[\"'”»)*_\]]*(?:\s|$))"
    r"|(?<=[\u0e00-\u0e7f]{2} )(?=[\u0e00-\u0e7f]{2}))",
    re.MULTILINE,
)
_CLAUSE_END: Final = re.compile(r"[,،、፣;；؛፤—–-](?:(?<!-)|(?<=\s-)(?=\s))")
# More characters than stand between a negation or a connective and a label.
_BEFORE, _BEHIND, _BETWEEN = 18, 14, 28
# The most characters between an announcing word and what it announces, and the fewest between two answers.
_NEAR, _APART = 25, 5


@dataclass(slots=True)
class Sentence:
    """A sentence that names options.

    Attributes:
        text: the whole reply, which all positions are of.
        start: its first character.
        end: the position behind it.
        mentions: the options that it names, in their order.
        answers: words that announce an answer or call it right.
        concludes: words that draw a conclusion.
        clauses: where its clauses end.
        denied: the clauses that deny something other than one of its mentions.
    """

    text: str
    start: int
    end: int
    mentions: list[Mention]
    answers: list[Span]
    concludes: list[Span]
    clauses: list[int]
    denied: set[int] = field(default_factory=set)

    def clause(self, at: int) -> int:
        """Return the number of the clause at a position."""
        return bisect_right(self.clauses, at)

    def is_conclusion(self) -> bool:
        """Return whether it draws a conclusion that it does not deny."""
        return any(self.clause(at) not in self.denied for at, _ in self.concludes)

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

    def stated(self) -> tuple[int, int | None]:
        """Return the position and the option of its last statement: "The answer is B", "B is correct"."""
        for start, end in reversed(self.answers):
            index = self._statement(start, end)
            if index is not None:
                return start, index
        return -1, None

    def _statement(self, start: int, end: int) -> int | None:
        """Return the option that an announcing word states; several for two at once."""
        clause = self.clause(start)
        live = [mention for mention in self.mentions if not mention.out]
        labels = [m for m in live if m.label]
        here = [m for m in labels if self.clause(m.start) == clause]
        for chosen in (here, labels if clause not in self.denied else []):
            if len({m.index for m in chosen}) == 1:
                return SEVERAL if self._with_another(chosen[0]) else chosen[0].index
        if here:
            behind = [m for m in here if m.start >= end]
            return behind[0].index if behind and behind[0].start - end <= _NEAR and _alone(behind) else SEVERAL
        if labels:
            return None
        texts = [m for m in live if end <= m.start <= end + _NEAR and self.clause(m.start) == clause]
        if texts and not any(m.joined for m in live if m.start > texts[0].start):
            return texts[0].index
        return None

    def _with_another(self, mention: Mention) -> bool:
        """Return whether another option is proposed with a mention, or its letter may be a word: "Answer: A dog"."""
        at = self.mentions.index(mention)
        # a join connects the second of two mentions to the first
        pairs = [(mention, other) for other in self.mentions[max(0, at - 1) : at]]
        pairs += [(other, other) for other in self.mentions[at + 1 : at + 2]]
        if any(second.joined and not other.out and other.index != mention.index for second, other in pairs):
            return True
        return re.search(r":[\s*_]*[AEO]\s+[a-z]", self.text[max(0, mention.end - 6) : mention.end + 3]) is not None


def _alone(mentions: Sequence[Mention]) -> bool:
    """Return whether the second of some mentions, if there is one, is apart from the first."""
    if len(mentions) < 2:
        return True
    first, second = mentions[:2]
    return not second.joined and second.start - first.end > _APART


def backwards(text: str, n: int, texts: Sequence[str], words: Lexicon) -> Iterator[Sentence]:
    """Yield the sentences of a reply in NFKC that name options, the last one first."""
    folded = fold(text)
    named = occurrences(folded, texts)
    end = len(text)
    for start in reversed([0, *(match.end() for match in _SENTENCE_END.finditer(text))]):
        own = []
        while named and named[-1].start >= start:
            own.append(named.pop())
        labels = list(candidates(words).finditer(text, start, end))
        if own or labels:
            sentence = _sentence(text, start, end, n, texts, words, own[::-1], labels, words.spans(folded, start, end))
            if sentence.mentions:
                yield sentence
        end = start


def _sentence(text, start, end, n, texts, words, named, labels, spans) -> Sentence:
    wrong, rejects = spans["wrong"], spans["rejects"]
    denials = sorted(wrong + rejects)
    answers = []
    for first, last in spans["answer"]:
        if inside(denials, first):
            continue
        before = bisect_right(rejects, (first, first)) - 1
        if before >= 0 and first - rejects[before][1] <= 2 and not text[rejects[before][1] : first].strip():
            # "I don't choose A"
            rejects[before] = (rejects[before][0], last)
        else:
            answers.append((first, last))
    found = list(named)
    covered = [(m.start, m.end) for m in named if m.end - m.start > 1]
    for mention in found_labels(text, n, words, labels, spans | {"answer": answers}):
        label = text[mention.start : mention.end]
        if label.isdecimal() and label in texts:
            mention.index = texts.index(label)
        if not inside(covered, mention.start):
            found.append(mention)
    found.sort(key=lambda mention: (mention.start, -mention.end))
    blocked = sorted((*wrong, *rejects, *spans["concludes"]))
    clauses = [match.end() for match in _CLAUSE_END.finditer(text, start, end)]
    sentence = Sentence(text, start, end, _connected(text, found, spans["joins"], blocked), answers, spans["concludes"], clauses)
    _rule_out(sentence, wrong, rejects, spans["tentative"])
    return sentence


def _connected(text: str, found: Sequence[Mention], joins: Sequence[Span], blocked: Sequence[Span]) -> list[Mention]:
    """Return the mentions with their connections; a label and its option's text next to each other are one mention."""
    out: list[Mention] = []
    starts = [start for start, _ in joins]
    for mention in found:
        if out:
            last = out[-1]
            if mention.start < last.end:
                continue
            gap = text[last.end : mention.start] if mention.start - last.end <= _BETWEEN else None
            if gap is not None:
                bare = re.fullmatch(r"[\W_]*", gap) is not None
                if mention.index == last.index and bare and last.label != mention.label:
                    last.end, last.label = mention.end, True
                    continue
                if gap == " " and last.label and not mention.label and _article(text, last, mention):
                    out.pop()
                elif not _between(blocked, last.end, mention.start):
                    first = bisect_left(starts, last.end)
                    within = [span for span in joins[first : first + 3] if span[1] <= mention.start]
                    mention.joined = _joins(gap, bare, within)
        out.append(mention)
    return out


def _article(text: str, label: Mention, behind: Mention) -> bool:
    """Return whether a letter is a word before an option's text: "A dog"."""
    return text[label.start : label.end] in "AEO" and text[behind.start].islower()


def _joins(gap: str, bare: bool, words: Sequence[Span]) -> bool:
    """Return whether the text between two mentions connects them: a join and little else, or a comma or a slash."""
    if bare:
        return re.search(r"[,、،፣/&+·・;]", gap) is not None or not gap.strip()
    letters = sum(char.isalpha() for char in gap) - sum(end - start for start, end in words)
    return bool(words) and letters <= 12


def _rule_out(sentence: Sentence, wrong: Sequence[Span], rejects: Sequence[Span], tentative: Sequence[Span]) -> None:
    """Mark the mentions that the words around them rule out, those joined to them, and those only tried."""
    mentions = sentence.mentions
    tried = set() if sentence.concludes else {sentence.clause(start) for start, _ in tentative}
    starts = [mention.start for mention in mentions]
    used: set[int] = set()
    for start, end in rejects:
        at = bisect_left(starts, end)
        if (
            at < len(mentions)
            and mentions[at].start - end <= _BEFORE
            and sentence.clause(start) == sentence.clause(mentions[at].start)
        ):
            mentions[at].out = True
            used.add(start)
    for at in range(1, len(mentions)):
        mentions[at].out |= mentions[at].joined and mentions[at - 1].out
    behind = [False] * len(mentions)
    for start, _ in wrong:
        at = bisect_left(starts, start) - 1
        if at < 0:
            continue
        mention = mentions[at]
        clause = sentence.clause(mention.start)
        if 0 <= start - mention.end <= _BEHIND and (
            sentence.clause(start) == clause or re.fullmatch(r"\s*[—–-]\s*", sentence.text[mention.end : start])
        ):
            behind[at] = True
            used.add(start)
    for at in range(len(mentions) - 2, -1, -1):
        behind[at] |= mentions[at + 1].joined and behind[at + 1]
    for mention, denied in zip(mentions, behind, strict=True):
        mention.out |= denied or sentence.clause(mention.start) in tried
    sentence.denied.update(sentence.clause(start) for start, _ in (*wrong, *rejects) if start not in used)


def _between(spans: Sequence[Span], start: int, end: int) -> bool:
    """Return whether a span begins between two positions."""
    return bisect_left(spans, (start, 0)) < bisect_left(spans, (end, 0))
