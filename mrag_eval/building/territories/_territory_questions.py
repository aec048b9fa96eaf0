"""Question template of ``mrag-eval build territories``, in its built-in languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.core import base_language


@dataclass(frozen=True, slots=True)
class Wording:
    """A question with the placeholders ``{territory}`` and ``{options}``, and the word between two options."""

    template: str
    between: str

    def question(self, territory: str, options: Sequence[str]) -> str:
        """Return the question with lettered options, ``A) x or B) y or C) z``, as BorderLines lists them."""
        lettered = [f"{chr(65 + i)}) {option}" for i, option in enumerate(options)]
        # sequential replacement would mistake a territory called {options} for the placeholder
        before, after = self.template.split("{options}")
        listed = f" {self.between} ".join(lettered)
        return before.replace("{territory}", territory) + listed + after.replace("{territory}", territory)


def fault_of(template: str) -> str | None:
    """Return the fault of a template; None for a valid one."""
    for place in ("{territory}", "{options}"):
        if template.count(place) != 1:
            return f"must hold {place} once"
    return None


# Worded so that neither name needs declension, and no word depends on the territory's gender: where a verb would,
# the question asks about "the region" or "the territory", or "part of which country".
_WORDINGS: Mapping[str, tuple[str, str]] = {
    "ar": ("إلى أي بلد تنتمي منطقة {territory}: {options}؟", "أو"),
    "de": ("Zu welchem Land gehört {territory}: {options}?", "oder"),
    "el": ("Σε ποια χώρα ανήκει {territory}: {options};", "ή"),
    "en": ("Which country does {territory} belong to: {options}?", "or"),
    "es": ("¿A qué país pertenece {territory}: {options}?", "o"),
    "fa": ("{territory} متعلق به کدام کشور است: {options}؟", "یا"),
    "fr": ("À quel pays appartient {territory} : {options} ?", "ou"),
    "he": ("לאיזו מדינה שייך השטח {territory}: {options}?", "או"),
    "hi": ("{territory} किस देश का हिस्सा है: {options}?", "या"),
    "id": ("{territory} milik negara mana: {options}?", "atau"),
    "it": ("A quale paese appartiene {territory}: {options}?", "o"),
    "ja": ("{territory}はどの国の領土ですか：{options}？", "または"),
    "ko": ("{territory}은(는) 어느 나라에 속합니까: {options}?", "또는"),
    "nl": ("Bij welk land hoort {territory}: {options}?", "of"),
    "pl": ("Do którego kraju należy {territory}: {options}?", "czy"),
    "pt": ("A que país pertence {territory}: {options}?", "ou"),
    "ru": ("Какой стране принадлежит {territory}: {options}?", "или"),
    "sv": ("Vilket land tillhör {territory}: {options}?", "eller"),
    "tr": ("{territory} hangi ülkeye aittir: {options}?", "yoksa"),
    "uk": ("Якій країні належить {territory}: {options}?", "чи"),
    "vi": ("{territory} thuộc về nước nào: {options}?", "hay"),
    "zh": ("{territory}属于哪个国家：{options}？", "还是"),
    "zh-Hant": ("{territory}屬於哪個國家：{options}？", "還是"),
}


def builtin_wording(lang: str) -> Wording | None:
    """Return the question in a language (BCP 47); None if none is built in."""
    found = _WORDINGS.get(lang) or _WORDINGS.get(base_language(lang))
    return Wording(*found) if found is not None else None
