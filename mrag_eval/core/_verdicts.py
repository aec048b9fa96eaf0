"""Scales of verdicts: yes or no, ordered grades, or labels; how votes on them become one verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar
from unicodedata import category, normalize

L = TypeVar("L", bound=Hashable)

# Yes or no, a grade, or a label.
VerdictValue = bool | int | str
Outcome = Literal["unanimous", "majority", "median", "tie", "unjudged", "declined", "empty", "no reference"]
Tie = Literal["incorrect", "abstain"]
# Outcomes of a vote; the others are settled without a call.
VOTED: tuple[Outcome, ...] = ("unanimous", "majority", "median", "tie", "unjudged")
# Before a label in the name of the metric that is its share.
LABEL_SHARE = "judge_label"
_METRICS = {"yes/no": ("judged_accuracy", "judge_correct"), "ordered": ("judge_grade",), "labels": (LABEL_SHARE,)}
# The metrics of verdicts on answers; of labels, the beginning of their names.
VERDICTS = tuple(name for names in _METRICS.values() for name in names)
_KEYS = {"yes/no": "answer", "ordered": "grade", "labels": "label"}
_TRUE_WORDS = frozenset({"true", "yes", "correct"})
_FALSE_WORDS = frozenset({"false", "no", "incorrect"})
_MARKS = ("Mn", "Mc")
_AROUND = " \t\r\n.,;:!*_`'\"“”‘’()[]"


def as_verdict(value: Any) -> bool | None:
    """Return True or False for a boolean or a word for one, whatever its case and punctuation; else None."""
    if isinstance(value, bool):
        return value
    word = _word(value) if isinstance(value, str) else ""
    return True if word in _TRUE_WORDS else False if word in _FALSE_WORDS else None


def majority_of(labels: Sequence[L]) -> L | None:
    """Return the label of more than half of the entries; None without one. A None is an entry without a label."""
    return next((label for label, count in Counter(labels).items() if 2 * count > len(labels)), None)


@dataclass(frozen=True, slots=True)
class VerdictScale:
    """The verdicts that a rubric allows.

    ``levels`` are False and True (``yes/no``), grades from worst to best (``ordered``: whole numbers or words), or
    words without an order (``labels``).
    """

    kind: Literal["yes/no", "ordered", "labels"] = "yes/no"
    levels: tuple[VerdictValue, ...] = (False, True)

    @classmethod
    def of(cls, setting: Any) -> VerdictScale:
        """Return the scale of a setting: ``yes/no``, a list of grades, worst first, or ``{labels: [...]}``.

        Raises ValueError for anything else, and for levels that a reply could not tell apart.
        """
        if setting == YES_NO.kind:
            return YES_NO
        labels = isinstance(setting, Mapping) and setting.keys() == {"labels"}
        levels = setting["labels"] if labels else setting
        if not isinstance(levels, list | tuple) or len(levels) < 2:
            raise ValueError("expected yes/no, a list of grades, worst first, such as [0, 1, 2], or {labels: [...]}")
        numbers = [level for level in levels if type(level) is int]
        if numbers and (labels or len(numbers) < len(levels) or numbers != sorted(numbers)):
            raise ValueError("grades are whole numbers in ascending order, or words; labels are words")
        for level in levels:
            if type(level) is not int and not _is_word(level):
                raise ValueError(f"{level!r} is no word of letters, digits, - and _; write yes and no in quotes")
        if len({_word(str(level)) for level in levels}) < len(levels):
            raise ValueError("two of them are the same word, whatever its case")
        return cls("labels" if labels else "ordered", tuple(levels))

    @property
    def setting(self) -> Any:
        """Return the setting behind :meth:`of`."""
        return {"labels": list(self.levels)} if self.kind == "labels" else list(self.levels)

    @property
    def key(self) -> str:
        """Return the key of a verdict in a judge's JSON."""
        return _KEYS[self.kind]

    @property
    def tag(self) -> str:
        """Return the tag of a verdict in a judge's reply."""
        return "same_meaning" if self.kind == "yes/no" else self.key

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of verdicts on answers; of labels, one for each."""
        names = _METRICS[self.kind]
        return tuple(f"{LABEL_SHARE}.{label}" for label in self.levels) if self.kind == "labels" else names

    @property
    def order(self) -> tuple[VerdictValue, ...] | None:
        """Return the levels by which agreement is weighted; None if all disagreement counts alike."""
        return self.levels if self.kind == "ordered" else None

    @property
    def worst(self) -> VerdictValue | None:
        """Return the verdict on an answer that is not there; None without an order."""
        return None if self.kind == "labels" else self.levels[0]

    @property
    def words(self) -> str:
        """Return the verdicts as people write them."""
        return "correct or incorrect" if self.kind == "yes/no" else ", ".join(map(str, self.levels))

    def read(self, said: Any) -> VerdictValue | None:
        """Return the verdict that a value or a word stands for, whatever its case and punctuation; None: not one."""
        if self.kind == "yes/no":
            return as_verdict(said)
        if type(said) not in (int, str):
            return None
        return next((level for level in self.levels if _word(str(level)) == _word(str(said))), None)

    def text(self, verdict: VerdictValue | None) -> str:
        """Return a verdict as people read it."""
        return ("correct" if verdict else "incorrect") if isinstance(verdict, bool) else str(verdict)

    def value(self, verdict: VerdictValue) -> float | None:
        """Return a verdict between 0 and 1; None for a label.

        Numbers keep their distances, words are equally far apart.
        """
        if self.kind == "labels":
            return None
        numbers = [level if isinstance(level, int) else place for place, level in enumerate(self.levels)]
        return (numbers[self.levels.index(verdict)] - numbers[0]) / (numbers[-1] - numbers[0])

    def vote(
        self, verdicts: Sequence[VerdictValue | None], tie: Tie = "incorrect"
    ) -> tuple[VerdictValue | None, Outcome]:
        """Return the verdict of a panel, None for none, and how it came about, whatever the order of the judges.

        ``verdicts`` has one entry per seat. None, or what is not on the scale, is an abstention, which never shrinks
        the panel. The verdict of more than half of the seats counts; of grades without one the median, if the missing
        votes could not change it. If every seat voted, anything else is a tie: the lower of the two middle verdicts
        counts, or none, by ``tie``; of labels none.
        """
        said = [self.read(verdict) for verdict in verdicts]
        decided = majority_of(said)
        if decided is not None:
            return decided, "unanimous" if len(set(said)) == 1 else "majority"
        places = sorted(self.levels.index(verdict) for verdict in said if verdict is not None)
        if not places:
            return None, "unjudged"
        missing, last = len(said) - len(places), len(self.levels) - 1
        lower = ([0] * missing + places)[(len(said) - 1) // 2]
        upper = (places + [last] * missing)[len(said) // 2]
        if lower == upper and self.kind == "ordered":
            return self.levels[lower], "median"
        if missing:
            return None, "unjudged"
        return (None if tie == "abstain" or self.kind == "labels" else self.levels[lower]), "tie"


YES_NO = VerdictScale()


def _is_word(level: Any) -> bool:
    """Return whether a level is one word in any script: its signs for vowels are marks, not letters."""
    if not isinstance(level, str) or not level[:1].isalnum():
        return False
    return all(one.isalnum() or one in "-_" or category(one) in _MARKS for one in level)


def _word(text: str) -> str:
    # the same letters and marks may be written as one character or as several
    return normalize("NFC", text.strip(_AROUND).casefold())
