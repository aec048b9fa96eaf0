"""Options that a reply names, and what the words around each of them say of it."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mrag_eval.metrics._choice_labels import Mention, found_labels
from mrag_eval.metrics._choice_texts import occurrences
from mrag_eval.metrics._choice_words import Span, fold, lexicon

_SENTENCE_END: Final = re.compile(r"[。！？।॥።۔\n]|[.!?؟…]+(?=[\"'”»)*_\]]*(?:\s|$))")
# Thai separates clauses by spaces.
_THAI: Final = re.compile(r"(?<=[\u0e00-\u0e7f]{2}) (?=[\u0e00-\u0e7f]{2})")
_CLAUSE_END: Final = re.compile(r"[,،、፣;；؛፤—–]|\s-\s")
# A short word between two labels, such as "or", in any language.
_SHORT_WORD: Final = re.compile(r"\W?[^\W\d_]{1,4}[\s(]+\W?|[^\W\d_]{1,3}")
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

    def opens(self, mention: Mention) -> bool:
        """Return whether a mention opens its sentence, marks aside."""
        number = self.sentence(mention.start)
        start = self.sentences[number - 1] if number else 0
        return mention.start - start <= 12 and not any(map(str.isalnum, self.text[start : mention.start]))

    def around(self, at: int) -> list[Mention]:
        """Return the mentions of the sentence at a position, those near to it if there are very many."""
        named = self.named.get(self.sentence(at), [])
        if len(named) <= _MANY:
            return named
        middle = bisect_left(named, at, key=lambda mention: mention.start)
        return named[max(0, middle - _MANY // 2) : middle + _MANY // 2]


def read(text: str, n: int, texts: Sequence[str], lang: str | None) -> Reply:
    """Return a reply in NFKC with the options that it names, in their order."""
    words = lexicon(lang)
    folded = fold(text)
    sentences = sorted(match.end() for pattern in (_SENTENCE_END, _THAI) for match in pattern.finditer(text))
    clauses = sorted([*sentences, *(match.end() for match in _CLAUSE_END.finditer(text))])
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
    _rule_out(reply, _denied_praise(reply, denials), wrong, rejects, spans["tentative"])
    for mention in reply.mentions:
        reply.named.setdefault(reply.sentence(mention.start), []).append(mention)
    return reply


def inside(spans: Sequence[Span], at: int) -> bool:
    """Return whether a position is inside one of some spans, which are in their order."""
    before = bisect_right(spans, at, key=lambda span: span[0]) - 1
    return before >= 0 and at < spans[before][1]


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
                elif (
                    _SENTENCE_END.search(gap) is None
                    and _THAI.search(gap) is None
                    and not _between(blocked, last.end, mention.start)
                ):
                    first = bisect_left(starts, last.end)
                    within = [span for span in joins[first : first + 3] if span[1] <= mention.start]
                    mention.joined = _joins(gap, bare, within)
                    mention.beside = last.label and mention.label and _SHORT_WORD.fullmatch(gap) is not None
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


def _rule_out(
    reply: Reply,
    praise: Sequence[Span],
    wrong: Sequence[Span],
    rejects: Sequence[Span],
    tentative: Sequence[Span],
) -> None:
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
            and not _between(reply.answers, end, mentions[at].start)
        ):
            mentions[at].out = True
            used.add(start)
    for at in range(1, len(mentions)):
        mentions[at].out |= mentions[at].joined and mentions[at - 1].out
    behind = [False] * len(mentions)
    for start, denial in sorted([*praise, *((start, start) for start, _ in wrong)]):
        at = bisect_left(starts, start) - 1
        if at < 0:
            continue
        mention = mentions[at]
        clause = reply.clause(mention.start)
        if (
            start - mention.end <= (3 if _announced(reply, at) else _BEHIND)
            and start >= mention.end
            and (reply.clause(start) == clause or re.fullmatch(r"\s*[—–-]\s*", reply.text[mention.end : start]))
        ):
            behind[at] = True
            used.add(denial)
    for at in range(len(mentions) - 2, -1, -1):
        behind[at] |= mentions[at + 1].joined and behind[at + 1] and not _announced(reply, at)
    for mention, denied in zip(mentions, behind, strict=True):
        mention.out |= denied or reply.clause(mention.start) in tried
    reply.denied.update(reply.clause(start) for start, _ in (*wrong, *rejects) if start not in used)


def _denied_praise(reply: Reply, denials: Sequence[Span]) -> list[Span]:
    """Return where words call something right and deny it behind, "correct … cannot be": they announce nothing."""
    starts = [mention.start for mention in reply.mentions]
    found, kept = [], []
    for start, end in reply.answers:
        at = bisect_left(denials, (end, 0))
        denial = denials[at] if at < len(denials) and denials[at][0] - end <= _BEHIND else None
        if (
            denial
            and reply.clause(denial[0]) == reply.clause(start)
            and bisect_left(starts, end) == bisect_left(starts, denial[0])
        ):
            found.append((start, denial[0]))
        else:
            kept.append((start, end))
    reply.answers = kept
    return found


def _announced(reply: Reply, at: int) -> bool:
    """Return whether an announcing word stands before a mention in its clause, and no other mention between them."""
    start = reply.mentions[at].start
    before = bisect_left(reply.answers, (start, 0)) - 1
    if before < 0 or (at and reply.mentions[at - 1].end > reply.answers[before][0]):
        return False
    return reply.clause(reply.answers[before][0]) == reply.clause(start)


def _between(spans: Sequence[Span], start: int, end: int) -> bool:
    """Return whether a span begins between two positions."""
    return bisect_left(spans, (start, 0)) < bisect_left(spans, (end, 0))
