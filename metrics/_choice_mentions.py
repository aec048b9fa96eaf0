"""Options that a reply names, and what the words around each of them say of it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mrag_eval.metrics._choice_labels import Mention, found_labels
from mrag_eval.metrics._choice_texts import occurrences
from mrag_eval.metrics._choice_words import Lexicon, Span, fold, inside

# The end of a sentence, the first group, or of a clause; Thai separates either by a space. The mark itself is consumed
# first, so that the search leaps to it.
_END: Final = re.compile(
    r"[。！？।॥።۔\n.!?؟… ,،、፣;；؛፤—–-]"
    r"(?:((?<=[。！？।॥።۔\n])|(?<=[.!?؟…])[.!?؟…]*(?=[\"'”»)*_\]]*(?:\s|$))"
    r"|(?<=[\u0e00-\u0e7f]{2} )(?=[\u0e00-\u0e7f]{2}))"
    r"|(?<=[,،、፣;；؛፤—–])|(?<=\s-)\s)"
)
# More mentions than a sentence of a sound reply has.
_MANY: Final = 32
# More characters than stand between a negation or a connective and a label.
_BEFORE, _BEHIND, _BETWEEN = 18, 14, 28


@dataclass(slots=True)
class Reply:
    """A prepared reply with the options that it names and the words that tell what it says of them."""

    text: str
    sentences: list[int]
    clauses: list[int]
    answers: list[Span]
    concludes: list[Span]
    refusals: list[Span]
    denied: set[int] = field(default_factory=set)
    mentions: list[Mention] = field(default_factory=list)
    named: dict[int, list[Mention]] = field(default_factory=dict)

    def sentence(self, at: int) -> int:
        """Return the number of the sentence at a position."""
        return bisect_right(self.sentences, at)

    def clause(self, at: int) -> int:
        """Return the number of the clause at a position."""
        return bisect_right(self.clauses, at)

    def clauses_of(self, sentence: int) -> range:
        """Return the numbers of the clauses of a sentence."""
        start = self.sentences[sentence - 1] if sentence else 0
        end = self.sentences[sentence] if sentence < len(self.sentences) else len(self.text)
        return range(self.clause(start), self.clause(max(start, end - 1)) + 1)

    def concludes_in(self, sentence: int) -> bool:
        """Return whether a sentence draws a conclusion that it does not deny."""
        clauses = self.clauses_of(sentence)
        return any(self.clause(at) in clauses and self.clause(at) not in self.denied for at, _ in self.concludes)

    def around(self, at: int) -> list[Mention]:
        """Return the mentions of the sentence at a position, those near to it if there are very many."""
        named = self.named.get(self.sentence(at), [])
        if len(named) <= _MANY:
            return named
        middle = bisect_left(named, at, key=lambda mention: mention.start)
        return named[max(0, middle - _MANY // 2) : middle + _MANY // 2]


def read(text: str, n: int, texts: Sequence[str], words: Lexicon) -> Reply:
    """Return a reply in NFKC with the options that it names, in their order."""
    folded = fold(text)
    ends = [(match.end(), match[1]) for match in _END.finditer(text)]
    clauses, sentences = [end for end, _ in ends], [end for end, sentence in ends if sentence is not None]
    spans = words.spans(folded)
    wrong, rejects = spans["wrong"], spans["rejects"]
    reply = Reply(text, sentences, clauses, [], spans["concludes"], spans["refuses"])
    denials = sorted(wrong + rejects)
    for start, end in spans["answer"]:
        if inside(denials, start):
            continue
        before = bisect_right(rejects, (start, start)) - 1
        if before >= 0 and start - rejects[before][1] <= 2 and not text[rejects[before][1] : start].strip():
            # "I don't choose A"
            rejects[before] = (rejects[before][0], end)
        else:
            reply.answers.append((start, end))
    labels = list(found_labels(text, n, words, spans | {"answer": reply.answers}))
    named = occurrences(folded, texts)
    found = [Mention(i, start, end, label=False) for i, start, end in named]
    covered = sorted((start, end) for _, start, end in named if end - start > 1)
    for mention in labels:
        if text[mention.start : mention.end] in texts and text[mention.start].isdecimal():
            mention.index = texts.index(text[mention.start : mention.end])
    found += [mention for mention in labels if not inside(covered, mention.start)]
    found.sort(key=lambda mention: (mention.start, -mention.end))
    blocked = sorted((*wrong, *rejects, *reply.concludes))
    reply.mentions = _connected(text, found, spans["joins"], blocked)
    _rule_out(reply, wrong, rejects, spans["tentative"])
    for mention in reply.mentions:
        reply.named.setdefault(reply.sentence(mention.start), []).append(mention)
    return reply


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
                elif all(match[1] is None for match in _END.finditer(text, last.end, mention.start)) and not _between(
                    blocked, last.end, mention.start
                ):
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


def _rule_out(reply: Reply, wrong: Sequence[Span], rejects: Sequence[Span], tentative: Sequence[Span]) -> None:
    """Mark the mentions that the words around them rule out, those joined to them, and those only tried."""
    mentions = reply.mentions
    concluded = {reply.sentence(start) for start, _ in reply.concludes}
    tried = {reply.clause(start) for start, _ in tentative if reply.sentence(start) not in concluded}
    starts = [mention.start for mention in mentions]
    used: set[int] = set()
    for start, end in rejects:
        at = bisect_left(starts, end)
        if (
            at < len(mentions)
            and mentions[at].start - end <= _BEFORE
            and reply.clause(start) == reply.clause(mentions[at].start)
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
        clause = reply.clause(mention.start)
        if 0 <= start - mention.end <= _BEHIND and (
            reply.clause(start) == clause or re.fullmatch(r"\s*[—–-]\s*", reply.text[mention.end : start])
        ):
            behind[at] = True
            used.add(start)
    for at in range(len(mentions) - 2, -1, -1):
        behind[at] |= mentions[at + 1].joined and behind[at + 1]
    for mention, denied in zip(mentions, behind, strict=True):
        mention.out |= denied or reply.clause(mention.start) in tried
    reply.denied.update(reply.clause(start) for start, _ in (*wrong, *rejects) if start not in used)


def _between(spans: Sequence[Span], start: int, end: int) -> bool:
    """Return whether a span begins between two positions."""
    return bisect_left(spans, (start, 0)) < bisect_left(spans, (end, 0))
