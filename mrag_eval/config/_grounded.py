"""The ``judge.grounded`` block: what tells whether passages support an answer, a classifier or the panel."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from mrag_eval.config._block import Device, Kind, refused
from mrag_eval.platform import Template


class _Grounded(Kind):
    tag = "by"
    recorded = ""

    by: str


class GroundedByPanel(_Grounded):
    """The judges of the panel: each is asked about each claim, by ``prompt``, a built-in one or a path."""

    _no_scale = refused(
        "scale",
        "a claim is supported, contradicted or not_found, on no other scale: "
        "judge.prompt and judge.scale can grade whole answers beside their passages",
    )

    by: Literal["panel"] = "panel"
    prompt: str = "support"


class Grounded(_Grounded):
    """The classifier of ``grounded`` and the metrics beside it: ``model``, a hub name or a folder.

    It is a transformers model that labels the tokens of an answer (of the kind of LettuceDetect) as
    supported or hallucinated, by these or similar names, or by LABEL_0 and LABEL_1; or one of entailment, with the
    labels entailment, contradiction and neutral. ``max_length`` bounds, in tokens, a window of a passage with what is
    read beside it. ``batch_size`` pairs are read at once.

    For tokens alone: one is unsupported from the probability ``threshold`` on, and ``template`` is what is read beside
    the answer, with ``{question}`` and ``{passage}``. Give a model the prompt that it was trained with.
    """

    by: Literal["classifier"] = "classifier"
    model: str = Field(min_length=1, description="a hub name or a folder")
    revision: str | None = None
    max_length: int = Field(default=512, ge=32)
    batch_size: int = Field(default=32, ge=1)
    device: Device = "cpu"
    threshold: float = Field(default=0.5, gt=0, lt=1)
    template: str = "{question} {passage}"

    @field_validator("template")
    @classmethod
    def _shows_the_passage(cls, value: str) -> str:
        places = Template.of(value, ("question", "passage")).places
        if "passage" not in places or value.count("{passage}") != 1:
            raise ValueError("it must hold {passage} once, which is where the text of a passage goes")
        return value

    def around(self, question: str) -> tuple[str, str]:
        """Return what is read before the passage, and after it."""
        parts = self.template.partition("{passage}")
        before, after = (Template.of(part, ("question",)).filled({"question": question}) for part in parts[::2])
        return before, after


GroundedBy = Annotated[Grounded | GroundedByPanel, Field(discriminator="by")]
