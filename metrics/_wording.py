"""Words of a language around an answer: one record a language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """Words and phrases of one language, separated by ``|``; a trailing ``~`` lets a word take endings.

    Attributes:
        answer: announce an answer: "the answer", "I choose".
        filler: may stand between an announcement or a negation and a label: "is", "the", "correct".
        option: name the label that follows: "option B".
        option_after: name the label that precedes: "B variantı", "2번".
        particle: are attached to a label: "B가", "Bは".
        right: say that the label before them is right.
        wrong: rule out the label before them.
        not_: rule out the label behind them.
        corrects: take back the label before them, in favour of the one behind.
        joins: propose two labels at once: "A or B".
        refuses: decline to answer.
        yes: agree.
        no: disagree.
        unsettled: begin like agreement or disagreement, and are neither.
        letters: labels in their order, other than Latin letters.
    """

    answer: str = ""
    filler: str = ""
    option: str = ""
    option_after: str = ""
    particle: str = ""
    right: str = ""
    wrong: str = ""
    not_: str = ""
    corrects: str = ""
    joins: str = ""
    refuses: str = ""
    yes: str = ""
    no: str = ""
    unsettled: str = ""
    letters: str = ""
