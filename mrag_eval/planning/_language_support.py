"""What this installation does for a language, what it does not, and the next step for each lack."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from dataclasses import dataclass, fields
from typing import Final

from mrag_eval.config import CorrectLanguage
from mrag_eval.core import NO_SPACES, base_language, language_scripts, normalize_language
from mrag_eval.languages import (
    BANDS,
    PACKAGE,
    Language,
    Words,
    files_of_languages,
    language,
    name_in_prompts,
    reliability,
)
from mrag_eval.platform import MissingExtraError

_CHOICES: Final = frozenset({"acc", "acc_micro", "choice_parsed", "option_read", "option_unread", "concurrence"})
# Pieces -> the metrics that need them.
_READ_BY: Final = {
    "words of answers": _CHOICES,
    "labels": _CHOICES,
    "words of refusals": frozenset({"option_refused", "option_unread", "concurrence"}),
    "yes and no": frozenset({"yes_no"}),
    "detector": frozenset({"correct_language"}),
}
_SAID_ELSEWHERE: Final = {"code", "name", "written_by", "checked_by", "words", "labels"}
_ADD: Final = "add it to a file of your own: docs/languages.md"
_NAMED: Final = {"fasttext": "lid.176", "lingua": "lingua"}


@dataclass(frozen=True)
class Piece:
    """One thing that a language needs.

    Attributes:
        name: what it is.
        what: what there is.
        ok: whether it is there; None if that was not measured.
        fix: the next step, if it is not.
    """

    name: str
    what: str
    ok: bool | None
    fix: str = ""


def language_support(
    code: str, setting: CorrectLanguage | None = None, pieces: Container[str] | None = None
) -> list[Piece]:
    """Return the pieces of a language, in any spelling; ``setting`` names the detectors, by default lid.176.

    With ``pieces``, those of these names alone: the others cost time to look up.

    Raises:
        ConfigError: an unknown language, or a faulty file.
    """
    code = normalize_language(code)
    known, setting = language(code), setting or CorrectLanguage()
    found = [_file(code, known), *_words(code, known)]
    looked_up: dict[str, Callable[[], Piece]] = {
        "detector": lambda: _detector(code, setting),
        "stems": lambda: _stems(code),
        "segmentation": lambda: _segments(code),
    }
    found += [look() for name, look in looked_up.items() if pieces is None or name in pieces]
    found += [*_rest(code, known), Piece("name in prompts", name_in_prompts(code), True)]
    return [piece for piece in found if pieces is None or piece.name in pieces]


def unsupported(
    codes: Iterable[str], metrics: Collection[str], setting: CorrectLanguage | None = None, *, stems: bool = False
) -> list[str]:
    """Return a line for each piece that metrics, or a search by stems, need and some languages lack."""
    needed = {name for name, own in _READ_BY.items() if own & {*metrics}} | ({"stems"} if stems else set())
    found: dict[tuple[str, str, str], list[str]] = {}
    for code in sorted({normalize_language(code) for code in codes}):
        for piece in language_support(code, setting, needed) if needed else ():
            if piece.ok is not True:
                found.setdefault((piece.name, piece.what, piece.fix), []).append(code)
    told = ((f"{name} for {', '.join(own)}: {what}", fix) for (name, what, fix), own in found.items())
    return ["; ".join(filter(None, line)) for line in told]


def _file(code: str, known: Language | None) -> Piece:
    if known is None:
        return Piece("file", "none", False, f"write {code}.yaml in the folder that mrag.yaml names under languages")
    path = files_of_languages()[known.code][-1]
    whose = "the package's" if path.parent == PACKAGE else str(path)
    checked = f"checked by {known.checked_by}" if known.checked_by else "checked by no speaker"
    return Piece("file", f"{known.code}.yaml, {whose}, written by {known.written_by}, {checked}", True)


def _words(code: str, known: Language | None) -> list[Piece]:
    words = Words() if known is None else known.words
    own = {each.name: len(getattr(words, each.name)) for each in fields(Words)}
    refuses, yes, no = (own.pop(name) for name in ("refuses", "yes", "no"))
    in_places = own.pop("refuses_if_own") + own.pop("refuses_if_alone")
    answers, none = sum(own.values()), "none; replies are read by English words, letters and digits"
    latin = "Latn" in language_scripts(code)
    labels = () if known is None else known.labels
    there = {
        "words of answers": f"{answers} words" if answers else None,
        "words of refusals": f"{refuses + in_places} words" if refuses else None,
        "yes and no": f"{yes} and {no} words" if yes and no else None,
    }
    return [
        *(Piece(name, what or none, what is not None, "" if what else _ADD) for name, what in there.items()),
        Piece("labels", " / ".join(labels), True)
        if labels
        else Piece("labels", "Latin letters and digits", latin, "" if latin else _ADD),
    ]


def _detector(code: str, setting: CorrectLanguage) -> Piece:
    # metrics take long to load
    from mrag_eval.metrics import load_detector, unknown_to

    base = base_language(code)
    name = setting.detectors.get(base) or setting.detectors["default"]
    try:
        detector = load_detector(name, sorted({code, "en", "de"}), setting.min_confidence or 0.0,
                                 letters_only=setting.letters_only)  # fmt: skip
    except MissingExtraError as error:
        return Piece("detector", error.message, False, error.next_step or "")
    reason, bound = unknown_to(detector, code), setting.min_recognised or 0.8
    measured = getattr(detector, "measured_as", None)
    if reason is not None:
        return Piece("detector", reason, False, _other_detector(code, bound))
    shares = {} if measured is None else {start: reliability(measured, base, start) for start in BANDS}
    known = {each.length_from: each for each in shares.values() if each is not None}
    if not known:
        return Piece("detector", f"the reliability of {_NAMED.get(name, name)} is not measured", None)
    lengths = ", ".join(f"{int(100 * each.share)}% of texts of {each.lengths}" for each in known.values())
    # replies too short to be scored need no detector
    least = setting.min_chars or 0
    low = any(each.share < bound for start, each in shares.items() if each is not None and start >= least)
    text = f"{measured} recognises {lengths}"
    if low and setting.min_recognised is None:
        text += " (the others count as wrong: min_recognised is null)"
    return Piece("detector", text, not low, _other_detector(code, bound) if low else "")


def _other_detector(code: str, bound: float) -> str:
    base = base_language(code)
    # of a script that a language is seldom written in nothing was measured
    for name, measured in _NAMED.items() if code == base else ():
        shares = [each.share for start in BANDS[1:] if (each := reliability(measured, base, start)) is not None]
        if shares and min(shares) >= bound:
            return f"judge.correct_language.detector: {{{base}: {name}}} recognises {int(100 * min(shares))}% or more"
    return "name the path of a fastText model that knows it, such as GlotLID's: judge.correct_language.detector"


def _stems(code: str) -> Piece:
    from mrag_eval.text import STEMMED, stemmer

    if stemmer(code) is None:
        return Piece("stems", "Snowball has no algorithm; words are searched as they are", False)
    on = base_language(code) in STEMMED
    return Piece("stems", "Snowball" if on else "Snowball, off by default: not measured (retrieval.stem=true)", True)


def _segments(code: str) -> Piece:
    from mrag_eval.text import segmenters

    base, found = base_language(code), segmenters()
    if base not in NO_SPACES and base != "ko":
        return Piece("segmentation", "not needed: spaces separate words", True)
    lacking = [name for name, version in found.items() if version is None]
    if lacking:
        return Piece(
            "segmentation", f"{' and '.join(lacking)}: not installed", False, 'pip install "mrag-eval[segment]"'
        )
    return Piece("segmentation", " ".join(sorted(found)), True)


def _rest(code: str, known: Language | None) -> list[Piece]:
    """Return the other fields of a file: each that is new is told."""
    out = []
    for each in fields(Language):
        if each.name not in _SAID_ELSEWHERE:
            value = None if known is None else getattr(known, each.name)
            what = value if isinstance(value, str) else ", ".join(value or ())
            name = _TITLES.get(each.name, each.name)
            out.append(Piece(name, what, True) if what else Piece(name, "none", False, _ADD))
    return out


_TITLES: Final = {"prompts": "system prompts", "territory": "question on territories", "sentence": "plain sentence"}
