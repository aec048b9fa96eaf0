"""Presets of starter corpora: a part of Wikipedia that a laptop indexes in an hour, for a first number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from mrag_eval.core import normalize_language
from mrag_eval.platform import ConfigError
from mrag_eval.retrievers.corpora._starter_words import Words, words_of
from mrag_eval.retrievers.corpora._topics import Topics, topics

# Another version chooses other pages.
VERSION = 1


@dataclass(frozen=True)
class Starter:
    """A preset: the most passages of each language, and the topics by which pages are chosen.

    ``passages`` maps a language to its budget, None for the whole edition. ``places`` are pairs as in ``topics``.
    ``about`` names the words in ``starter_words.yaml``. ``size`` is that of a passage: words, or characters in
    languages written without spaces.
    """

    name: str
    benchmarks: str
    passages: Mapping[str, int | None]
    places: tuple[tuple[str, str], ...]
    about: str
    kind: str = "bm25"
    size: int = 100

    @property
    def subjects(self) -> Words:
        """Return the words of the subjects, by language."""
        return words_of(self.about)

    def languages(self, some: Sequence[str] = ()) -> list[str]:
        """Return the codes of some of the languages, or of all; raise ConfigError for one that the preset lacks."""
        wanted = list(dict.fromkeys(normalize_language(lang) for lang in some)) or list(self.passages)
        for lang in wanted:
            if lang not in self.passages:
                raise ConfigError(f"'{self.name}' has no '{lang}'", f"it has {' '.join(self.passages)}")
        return wanted

    def topics(self, lang: str) -> Topics:
        """Return the names and words to look for in a language."""
        return topics(lang, self.places, self.subjects)


def _budgets(others: int, languages: str, **own: int | None) -> Mapping[str, int | None]:
    return MappingProxyType({lang: own.get(lang, others) for lang in languages.split()})


# BLEnD's 16 countries and regions, each with the language of its community; CLIcK asks about South Korea.
_BLEND = (
    ("KR", "ko"), ("KP", ""), ("West Java", "su"), ("Assam", "as"), ("DZ", ""), ("ET", "am"), ("AZ", "az"),
    ("NG", "ha"), ("IR", "fa"), ("GR", "el"), ("ID", "id"), ("MX", ""), ("ES", "es"), ("CN", "zh"),
    ("GB", "en"), ("US", ""),
)  # fmt: skip
# Claimants of BorderLines' territories, and territories that have a code of their own.
_CLAIMANTS = (
    "AF DZ AR AM AU AZ BH BD BZ BJ BT BO BA BR BN BF KH CM CL CO KM HR CD DK DJ EG SV GQ ER SZ FJ FR GA GE GR GT GN GY "
    "HT HN IS IN ID IR IQ IE IL IT CI JM JP KZ KE KW KG LA LB LY MG MW MY MV MH MU MD MN ME MA MM NP NC NI NG KP OM PK "
    "PS CN PH PT QA TW CY XK CG RU RW SA RS SC SG SI SO ZA KR SS ES SD SR SY TJ TZ TH TK TO TR UG UA AE GB US UY UZ VU "
    "VE VN YE ZM ZW EH FK GI EA GS IO TF YT AQ"
)

STARTERS: Mapping[str, Starter] = MappingProxyType(
    {
        preset.name: preset
        for preset in (
            Starter(
                "coral-small",
                "CORAL's comparison on BLEnD and CLIcK (blend_*, blend_saq_*, click_*)",
                _budgets(
                    450_000,
                    "id am su ar ha en zh ko as el fa es az",
                    **dict.fromkeys(("am", "as", "ha", "su", "az")),
                    en=800_000,
                ),
                _BLEND,
                "everyday_life",
            ),
            Starter(
                "mkqa-small",
                "MKQA in 13 languages (mkqa_*)",
                _budgets(350_000, "en ar de es fi fr it ja ko pt ru th zh", en=800_000),
                (),
                "general_knowledge",
            ),
            Starter(
                "bordirlines-small",
                "BordIRlines (bordirlines_*_own) with retrieval.candidates=all",
                _budgets(
                    80_000,
                    "ar az bn bs da el en es fa fr he hi hr ht hy id is it ja ka km ko ky lo mg mn ms my ne nl pt ru "
                    "sl sn so sq sr sw tg th ti fil tr uk ur uz vi zh",
                    en=400_000,
                ),
                tuple((code, "") for code in _CLAIMANTS.split()),
                "borders",
            ),
        )
    }
)
