"""Hand-written XRAG rows in the published schema: twelve questions per set, four languages, all four question types."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LANGS = ("de", "es", "zh", "ar")
Q_TYPES = ("multihop", "aggregation", "comparison", "set")
# Places of the articles in the question's language, in the multilingual set.
FOREIGN = (1, 5, 6, 7)
TOWNS = ("Lindholm", "Varga", "Port Ellis", "Tarnow", "Miravel", "Kestrel Bay")

# One short article per language; {town} and {n} make each unique.
ARTICLES = {
    "en": "The town council of {town} said on Monday that {n} new trees will be planted along the old canal. "
    "Residents had asked for more shade since the summer, and the work is expected to take three months.",
    "de": "Der Stadtrat von {town} teilte am Montag mit, dass am alten Kanal {n} neue Bäume gepflanzt werden. "
    "Die Anwohner hatten seit dem Sommer um mehr Schatten gebeten, und die Arbeiten sollen drei Monate dauern.",
    "es": "El ayuntamiento de {town} anunció el lunes que se plantarán {n} árboles nuevos junto al antiguo canal. "
    "Los vecinos pedían más sombra desde el verano y se espera que las obras duren tres meses.",
    "zh": "{town}市议会星期一表示,将在旧运河沿岸种植{n}棵新树。自夏天以来,居民一直要求增加树荫,预计工程将持续三个月。",
    "ar": "أعلن مجلس مدينة {town} يوم الاثنين أنه سيتم زرع {n} شجرة جديدة على طول القناة القديمة. "
    "وكان السكان قد طالبوا بالمزيد من الظل منذ الصيف، ومن المتوقع أن تستغرق الأعمال ثلاثة أشهر.",
}
QUESTIONS = {
    "en": "Which town plants more trees, {a} or {b}?",
    "de": "Welche Stadt pflanzt mehr Bäume, {a} oder {b}?",
    "es": "¿Qué ciudad planta más árboles, {a} o {b}?",
    "zh": "{a}和{b},哪个城市种的树更多?",
    "ar": "أي مدينة تزرع أشجارًا أكثر، {a} أم {b}؟",
}


def row(language: str, setting: str, number: int) -> dict[str, Any]:
    """Return question ``number`` (0..11) of a set; supporting articles come first, as a set might store them."""
    pair = (TOWNS[number % 6], TOWNS[(number + 1 + number // 6) % 6])
    other = language if setting == "multi" else "en"
    # multilingual: one supporting and three distracting articles in each of the two languages
    langs = ["en", other, "en", "en", "en", other, other, other]
    articles = [
        ARTICLES[code].format(town=pair[i] if i < 2 else TOWNS[(number + i) % 6], n=100 + 10 * i + number)
        for i, code in enumerate(langs)
    ]
    prefix = "mono" if setting == "mono" else f"multi-{language}"
    en_question = QUESTIONS["en"].format(a=pair[0], b=pair[1]) + ("" if setting == "mono" else f" ({language})")
    return {
        "id": f"{prefix}-{number}",
        "question": QUESTIONS[language].format(a=pair[0], b=pair[1]),
        "answer": pair[1],
        "en_question": en_question,
        "en_answer": pair[1],
        "language": language,
        "q_type": Q_TYPES[number % 4],
        "a_type": "corrected" if number % 5 == 0 else "original",
        "crossdoc_type": str(number % 3) if number % 2 else number % 3,
        "articles": articles,
        "dates": [f"2024-07-{day:02d}" for day in range(1, 9)],
        "urls": [f"https://news.example/{prefix}/{number}/{i}" for i in range(8)],
        "is_support": ["1", "1", 0, 0, 0, 0, "0", 0],
        "article_order": [5, 2, 7, 0, 3, 1, 6, 4],
    }


def rows() -> list[dict[str, Any]]:
    """Return both settings in all four languages, 96 rows."""
    return [row(language, setting, n) for setting in ("mono", "multi") for language in LANGS for n in range(12)]


def write(folder: Path, made: list[dict[str, Any]] | None = None, split: str = "test") -> Path:
    """Write the rows as ``xrag.<split>.jsonl`` to ``folder``; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(item, ensure_ascii=False) for item in (rows() if made is None else made))
    (folder / f"xrag.{split}.jsonl").write_text(text + "\n", encoding="utf-8")
    return folder


def translations() -> list[dict[str, Any]]:
    """Return English versions of every article that is not in English, as a translator would write them."""
    return [
        {"id": item["id"], "article": index, "text": f"Translated. {_english(item, index)}"}
        for item in rows()
        if item["id"].startswith("multi")
        for index in FOREIGN
    ]


def _english(item: dict[str, Any], index: int) -> str:
    """Return the English wording of an article: that of the same row in the monolingual set."""
    number = int(item["id"].rpartition("-")[2])
    text: str = row("de", "mono", number)["articles"][index]
    return text


def write_translations(path: Path, made: list[dict[str, Any]] | None = None) -> Path:
    """Write the translations as JSON Lines; return the path."""
    lines = [json.dumps(line, ensure_ascii=False) for line in (translations() if made is None else made)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path
