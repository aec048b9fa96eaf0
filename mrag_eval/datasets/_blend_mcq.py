"""BLEnD multiple choice made from the raw annotations, by the rules of its authors' generator (Myung et al., 2024).

Each question was asked in 16 countries and answered by people there, with votes. A country's right answers are those
with the most votes; wrong options are other countries' answers. There are two differences from the published file. No
language model fills up missing options or checks for synonyms, so a question may have fewer than four options, and a
wrong option may have the meaning of a right one. And one version is drawn with a seed instead of listing every
combination.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy.random import Generator

Annotations = Mapping[str, Mapping[str, Any]]

_MAX_WRONG = 3
_MIN_VOTES = 2
_MAX_IDK = 2
# A question that asks for a format keeps only the answers in that format.
_FORMATS = (
    (re.compile(r"HH:MM"), re.compile(r"\d{1,2}:\d{2}")),
    (re.compile(r"MM/DD"), re.compile(r"\d{1,2}/\d{1,2}")),
    (re.compile(r"Arabic numeral"), re.compile(r"\d+(?:\.\d+)?")),
)


@dataclass(frozen=True)
class GeneratedQuestion:
    """A generated question. ``countries[i]`` is the country in which ``choices[i]`` is an answer; ``gold`` indexes
    both.
    """

    country: str
    question_id: str
    question: str
    choices: tuple[str, ...]
    countries: tuple[str, ...]
    gold: int


def generate(
    annotations: Mapping[str, Annotations],
    rng_for: Any,
    *,
    validity: Literal["any_country", "own_country"] = "any_country",
) -> list[GeneratedQuestion]:
    """Return one multiple-choice question per (country, question id) that passes the filter and has a wrong option.

    Args:
        annotations: country -> question id -> record with ``en_question``, ``annotations`` and ``idks``.
        rng_for: (country, question id) -> the Generator that draws the version.
        validity: ``any_country`` drops a question everywhere if it fails in one country, as the authors' generator
            does; ``own_country`` drops it only there (closer to the published file, which has 249 to 366 per country).
    """
    made = []
    for question_id in sorted(set().union(*annotations.values())):
        records = {country: rows[question_id] for country, rows in annotations.items() if question_id in rows}
        votes = {country: _votes(record) for country, record in records.items()}
        valid = {country: is_valid(record) for country, record in records.items()}
        if validity == "any_country" and not all(valid.values()):
            continue
        asked = [country for country in records if valid[country] and votes[country]]
        wrong = {country: _wrong_options(country, votes) for country in asked}
        # every country gets as many wrong options as the one with the fewest can have
        scope = list(wrong.values()) if validity == "any_country" else []
        common = min([_MAX_WRONG, *map(len, scope)])
        for country in asked:
            count = min(common, len(wrong[country]))
            if count == 0:
                continue
            rng = rng_for(country, question_id)
            made.append(_version(country, question_id, records[country], votes[country], wrong[country], count, rng))
    return made


def _votes(record: Mapping[str, Any]) -> list[tuple[str, int, frozenset[str]]]:
    """Return (English form, votes, words of all English forms), most votes first.

    The form is the first one, or the first in the format that the question asks for; answers without one are left out.
    """
    pattern = next((answer for asks, answer in _FORMATS if asks.search(record["en_question"])), None)
    found = []
    for entry in record["annotations"]:
        forms = [str(form).strip() for form in entry["en_answers"] if str(form).strip()]
        shown = next((form for form in forms if pattern is None or pattern.fullmatch(form)), None)
        if shown is not None:
            words = frozenset(word for form in forms for word in form.lower().split())
            found.append((shown, int(entry["count"]), words))
    return sorted(found, key=lambda answer: -answer[1])


def is_valid(record: Mapping[str, Any]) -> bool:
    """Return whether a question is valid: applicable to all, at most two without an answer, two votes for the top
    answer.
    """
    idks = record["idks"]
    if idks.get("not-applicable", 0) > 0 or sum(idks.values()) > _MAX_IDK:
        return False
    return max((int(entry["count"]) for entry in record["annotations"]), default=0) >= _MIN_VOTES


def _wrong_options(
    country: str, votes: Mapping[str, Sequence[tuple[str, int, frozenset[str]]]]
) -> list[tuple[str, str]]:
    """Return (text, country) of other countries' answers, at most one per country, most votes first, sharing no
    word.
    """
    taken = set().union(*(words for _, _, words in votes[country]))
    pool = sorted(
        (-count, text, other, words)
        for other, answers in votes.items()
        if other != country
        for text, count, words in answers
        if count >= _MIN_VOTES
    )
    chosen: dict[str, str] = {}
    for _, text, other, words in pool:
        if other not in chosen and not words & taken:
            chosen[other] = text
            taken |= words
    return [(text, other) for other, text in chosen.items()]


def _version(
    country: str,
    question_id: str,
    record: Mapping[str, Any],
    votes: Sequence[tuple[str, int, frozenset[str]]],
    wrong: Sequence[tuple[str, str]],
    count: int,
    rng: Generator,
) -> GeneratedQuestion:
    right = [text for text, votes_for, _ in votes if votes_for == votes[0][1]]
    answer = right[int(rng.integers(len(right)))]
    picked = [wrong[int(index)] for index in rng.choice(len(wrong), size=count, replace=False)]
    options = sorted([(answer, country), *picked])
    return GeneratedQuestion(
        country,
        question_id,
        record["en_question"].strip(),
        tuple(text for text, _ in options),
        tuple(where for _, where in options),
        options.index((answer, country)),
    )
