"""Countries of the Travel benchmark: each page is about one, and most questions name it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from mrag_eval.core import Passage, RagDoc, base_language

# ISO 3166 codes of the countries in the authors' corpus, in its order.
_CODES = """
CH BA IR MR IT PL TR CZ TN DZ SK SY FR KG LB GR YE VA HU JO BE SA GB MA US MX JP AD LI MC AG UA IE BB BN BZ BF TW TV JM
SB CK MM AZ AM EE CF AF AR UY AL BR PT DO SV SN SD SO CN IQ GA KM CM CD CG MV DE AT NE IN ID AO UZ UG IS PY PK PW BG BD
PA BJ BW BI PE BY TT TD CL TZ TG MH ZA SS DJ RW ZM ZW ST SM LK SI SG SR SL SC MK RS TJ GM GH GT GY GN GW GQ VU VE FI VN
FJ CY KZ HR CU CI KR KP XK CO KE LV LA LR LT MT ML MG EG MW MU MZ MD NA NR NP NG NI HT HN GE LU ER IL KW PG BO WS PS QA
LY RU RO VC KN LC OM GD BS DM CA AU MO MY ES BH DK SE NO BT TH TO KH LS NL MN ME NZ NU FM CR
"""
# Names in titles and questions besides those that CLDR gives in English and Arabic.
_ALSO: Mapping[str, tuple[str, ...]] = {
    "AG": ("Antigua", "انتيغوا"),
    "AR": ("Argentine",),
    "BA": ("Bosnia", "البوسنة"),
    "BY": ("بيلاروسيا",),
    "CD": ("Democratic Republic of Congo", "Democratic Republic of the Congo", "الكونغو الديمقراطية"),
    "CG": ("Republic of Congo", "الكونغو برازافيل", "برازفيل"),
    "CH": ("Swiss",),
    "CI": ("Ivory Coast", "Cote dIvoire", "كوت ديفوار"),
    "CZ": ("Czech", "التشيك"),
    "DK": ("الدانمارك", "الدنمارك"),
    "FR": ("الفرنسية",),
    "GB": ("بريطانيا", "المملكة المتحدة لبريطانيا العظمى وأيرلندا الشمالية"),
    "HU": ("المجر",),
    "IR": ("الإيرانية",),
    "IT": ("الإيطالية",),
    "JO": ("الأردنية",),
    "KG": ("القيرغيزية", "قرغيزستان"),
    "KN": ("Saint Kitts", "سانت كيتس"),
    "KP": ("Democratic Peoples Republic of Korea",),
    "KR": ("جمهورية كوريا",),
    "LA": ("Lao",),
    "LB": ("اللبنانية",),
    "LC": ("Saint Lucia",),
    "LI": ("ليشتنشتاين",),
    "LU": ("لوكسمبروغ",),
    "ME": ("مونتينيغرو",),
    "MK": ("مقدونيا",),
    "MM": ("Myanmar", "ميانمار"),
    "MO": ("Macao Special Administrative Region of the Peoples Republic of China", "Macao", "Macau", "ماكاو"),
    "MR": ("الموريتانية",),
    "MV": ("المالديف",),
    "MX": ("الولايات المتحدة المكسيكية",),
    "MW": ("مالاوي",),
    "PS": ("Palestine", "فلسطين"),
    "RU": ("Russian",),
    "SA": ("السعودية",),
    "SK": ("Slovak",),
    "ST": ("سان تومي",),
    "SY": ("السورية",),
    "TR": ("Turkey", "التركية"),
    "TT": ("Trinidad", "ترينيداد"),
    "VA": ("Vatican", "الفاتيكان"),
    "VC": ("Saint Vincent", "سانت فنسنت"),
    "ZW": ("زمبابوي",),
}
_LETTERS = str.maketrans({"ى": "ي", "ة": "ه"})
# Arabic particles written together with the next word, and its article.
_PARTICLES = ("", "ل", "ب", "و", "لل", "بال", "وال")


def country_pages(docs: Sequence[RagDoc], passages: Iterable[Passage]) -> dict[str, str]:
    """Return row id -> id of the document on the country that the row asks about.

    That is the one country, among those with a document in the row's ``gold_doc_lang``, that the question names; if it
    names none, the answer. Rows that name no such country or several are absent.
    """
    pages: dict[tuple[str, str], str] = {}
    for passage in passages:
        for code in _named(passage.title):
            pages.setdefault((code, base_language(passage.lang)), str(passage.doc_id))
    found = {}
    for doc in docs:
        lang = base_language(str(doc.gold_doc_lang))
        for text in (doc.query, *doc.answers):
            named = [pages[code, lang] for code in _named(text) if (code, lang) in pages]
            if len(named) == 1:
                found[doc.id] = named[0]
            if named:
                break
    return found


@cache
def _named(text: str) -> frozenset[str]:
    """Return the codes of the countries that a text names; a name within a longer one does not count."""
    spaced = f" {_key(text)} "
    spans = []
    for name, code in _names().items():
        at = max(spaced.find(f" {particle}{name} ") for particle in _PARTICLES)
        if at >= 0:
            spans.append((at, spaced.index(" ", at + 1 + len(name)), code))
    return frozenset(
        code
        for start, end, code in spans
        if not any(a <= start and end <= b and b - a > end - start for a, b, _ in spans)
    )


@cache
def _names() -> Mapping[str, str]:
    """Return name -> code."""
    from langcodes import Language

    names = {}
    for code in _CODES.split():
        territory = Language.make(territory=code)
        for name in (*(territory.territory_name(lang) for lang in ("en", "ar")), *_ALSO.get(code, ())):
            names[_key(name)] = code
    return names


def _key(text: str) -> str:
    """Return the words of a text without case, accents, hamza and the Arabic article."""
    letters = unicodedata.normalize("NFKD", text.casefold().replace("&", " and ").replace("st. ", "saint "))
    plain = "".join(c for c in letters if not unicodedata.combining(c)).translate(_LETTERS)
    words = re.findall(r"\w+", plain)
    return " ".join(word[2:] if word.startswith("ال") and len(word) > 4 else word for word in words)
