"""The ``judge`` block: judges of answers and passages, and the count of their votes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from mrag_eval.config._block import Block, Languages, Names, refused
from mrag_eval.config._grounded import GroundedBy, GroundedByPanel
from mrag_eval.core import ANY_LANGUAGE, YES_NO, VerdictScale, base_language, is_language, suggestion

# Detectors of languages by name; any other is a file of the user's.
DETECTORS = ("fasttext", "lingua")


class Relevance(Block):
    """The source of relevance labels, if ranking measures need them.

    ``labels``: ``ids`` (the row names its documents), ``judge`` (the panel lists, of everything retrieved, the passages
    that contain the answer; asked by ``prompt``, a built-in one or a path), ``proxy`` (passages with at least
    ``threshold`` of the answer's character 3-grams, in the answer's language), ``translated`` (the same with the answer
    translated into the language of the document), ``page`` (every passage of the page that the row names, which only
    some benchmarks know), ``auto`` (the panel, without one the proxy).
    """

    labels: Literal["ids", "judge", "proxy", "translated", "page", "auto"] = "ids"
    _no_scale = refused(
        "scale",
        "judges list relevant passages, on no scale: judge.relevance.prompt can say from which grade on one is listed",
    )

    prompt: str = "relevance"
    threshold: float = Field(default=0.6, gt=0, le=1)


class Sufficiency(Block):
    """The ``prompt`` of the metric ``context_sufficiency``: a built-in one or a path.

    ``country`` is where the questions are asked, for rows that do not name it.
    """

    _no_scale = refused(
        "scale",
        "judges say yes or no, on no scale: judge.sufficiency.prompt can say from which grade on it is yes",
    )

    prompt: str = "sufficiency"
    country: str | None = None


class CorrectLanguage(Block):
    """The detectors of the metric ``correct_language``.

    ``detector`` is ``fasttext`` (lid.176.ftz, which is installed), ``lingua`` (among the languages of the questions,
    ``languages`` and English), or the path of a fastText model: lid.176.bin, GlotLID's or OpenLID's; or a map with
    detectors of their own for some languages: ``{default: fasttext, yo: lingua}``. A reply of ``min_chars`` code points
    or fewer is not scored; null scores all. Nor is one of whose language the detector is less sure than
    ``min_confidence``; null takes its first guess. ``letters_only`` shows fastText lower-case letters without digits,
    punctuation and markup, as OpenLID is trained; the mRAG paper shows it the reply as it is.

    Nor is a reply scored if the detector recognises less than ``min_recognised`` of texts of that language and length
    (docs/languages.md); null scores all. ``check_script`` tells the scripts of a language apart. The tasks of the mRAG
    paper set neither.
    """

    detector: str | dict[str, str] = "fasttext"
    min_chars: int | None = Field(default=20, ge=0)
    min_confidence: float | None = Field(default=None, gt=0, le=1)
    letters_only: bool = False
    min_recognised: float | None = Field(default=0.8, gt=0, le=1)
    check_script: bool = True

    @field_validator("detector")
    @classmethod
    def _known(cls, value: str | dict[str, str]) -> str | dict[str, str]:
        if isinstance(value, str):
            return _detector(value)
        found: dict[str, str] = {}
        for code, name in value.items():
            if code != ANY_LANGUAGE and not is_language(code):
                raise ValueError(f"unknown language '{code}'; {suggestion(code)}, or {ANY_LANGUAGE}")
            key = code if code == ANY_LANGUAGE else base_language(code)
            if key in found:
                raise ValueError(f"'{code}' is named twice")
            found[key] = _detector(name)
        return found

    @property
    def detectors(self) -> dict[str, str]:
        """Return the detector of each language that has its own, and of the others under :data:`ANY_LANGUAGE`."""
        own = {ANY_LANGUAGE: self.detector} if isinstance(self.detector, str) else self.detector
        return {ANY_LANGUAGE: "fasttext", **own}

    @property
    def files(self) -> dict[str, Path]:
        """Return the detectors that are files of the user's, by language."""
        return {code: Path(name) for code, name in self.detectors.items() if name not in DETECTORS}


def _detector(value: str) -> str:
    if value in DETECTORS:
        return value
    path = Path(value).expanduser().absolute()
    if not path.is_file():
        raise ValueError(f"'{value}' is neither fasttext nor lingua nor a file; name a fastText model, .bin or .ftz")
    return str(path)


def _scale(value: Any) -> VerdictScale:
    return value if isinstance(value, VerdictScale) else YES_NO if value is None else VerdictScale.of(value)


class Judge(Block):
    """The ``judge`` block: the judges of the answers, their prompt, and the count of their votes.

    ``prompt`` is a built-in one (docs/judges.md) or a path; ``reply`` is the form of its verdict (``json``:
    justification and answer; ``tag``: ``<same_meaning>``), by default the one that the prompt asks for.
    ``scale`` are the verdicts that a prompt of your own asks for, by default yes or no: grades, worst first (``[0, 1,
    2]``), read as ``grade``, or ``{labels: [supported, contradicted]}``, read as ``label``; ``yes/no`` is the default.
    ``panel`` names models of the config file, by default its ``judges``; each is asked ``repeats`` times, with a seed
    of its own, and every time is a seat. An even split counts by ``tie``. ``language_check`` is the detector by which
    an answer in another language than the question's is wrong whatever the verdict; it tells ``languages`` apart (by
    default those of the task's questions, and English). ``required`` makes a missing panel an error. ``relevance`` says
    how relevant passages are known, ``sufficiency`` how it is judged whether they suffice, ``correct_language`` how the
    metric of that name detects languages, ``grounded`` which classifier tells whether they support the answer, or that
    the panel does (``{by: panel}``).
    """

    prompt: str = "correctness"
    reply: Literal["json", "tag"] | None = None
    scale: Annotated[VerdictScale, BeforeValidator(_scale), PlainSerializer(lambda scale: scale.setting)] = YES_NO
    panel: Names | None = None
    repeats: int = Field(default=1, ge=1)
    tie: Literal["incorrect", "abstain"] = "incorrect"
    language_check: Literal["none", "fasttext", "lingua"] = "none"
    languages: Languages | None = None
    required: bool = False
    relevance: Relevance = Relevance()
    sufficiency: Sufficiency = Sufficiency()
    correct_language: CorrectLanguage = CorrectLanguage()
    grounded: GroundedBy | None = None

    @field_validator("grounded", mode="before")
    @classmethod
    def _by_a_classifier(cls, value: Any) -> Any:
        return {"by": "classifier", **value} if isinstance(value, Mapping) else value

    @property
    def claims_prompt(self) -> str | None:
        """Return the prompt by which the panel is asked about claims; None if it is not."""
        return self.grounded.prompt if isinstance(self.grounded, GroundedByPanel) else None

    @model_serializer(mode="wrap")
    def _without_yes_or_no(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        found: dict[str, Any] = handler(self)
        return {key: value for key, value in found.items() if key != "scale" or self.scale != YES_NO}

    @field_validator("panel")
    @classmethod
    def _each_once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and not value:
            raise ValueError("a panel needs at least one judge")
        for i, name in enumerate(value or ()):
            if name in (value or ())[:i]:
                raise ValueError(f"'{name}' is named twice; 'repeats' asks every judge more than once")
        return value
