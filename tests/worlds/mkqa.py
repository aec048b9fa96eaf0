"""Hand-written rows in the schemas of MKQA, KILT, XOR-TyDi QA and TyDi QA, and Wikipedia pages that answer them.

Ten invented bridges, asked about in five languages. Every bridge has an English page, which KILT names. Some have pages
in other languages, whose ids are those of other English pages: numbers repeat between Wikipedias.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LANGS = ("en", "fr", "ko", "ru", "ja")

# Town and engineer in the languages above, and the year of the opening.
BRIDGES: tuple[tuple[tuple[str, ...], tuple[str, ...], int], ...] = (
    (
        ("Tarvel", "Tarvel", "타르벨", "Тарвель", "タルベル"),
        ("Odile Brandt", "Odile Brandt", "오딜 브란트", "Одиль Брандт", "オディール・ブラント"),
        1894,
    ),
    (
        ("Kesmar", "Kesmar", "케스마르", "Кесмар", "ケスマル"),
        ("Jonas Ferrin", "Jonas Ferrin", "요나스 페린", "Йонас Феррин", "ヨナス・フェリン"),
        1907,
    ),
    (
        ("Vilkory", "Vilkory", "빌코리", "Вилькори", "ヴィルコリ"),
        ("Mara Solis", "Mara Solis", "마라 솔리스", "Мара Солис", "マラ・ソリス"),
        1921,
    ),
    (
        ("Brennick", "Brennick", "브레닉", "Бренник", "ブレニック"),
        ("Tomas Hale", "Tomas Hale", "토마스 헤일", "Томас Хейл", "トマス・ヘイル"),
        1933,
    ),
    (
        ("Sandova", "Sandova", "산도바", "Сандова", "サンドヴァ"),
        ("Irena Volk", "Irena Volk", "이레나 볼크", "Ирена Волк", "イレナ・ヴォルク"),
        1948,
    ),
    (
        ("Adrel", "Adrel", "아드렐", "Адрель", "アドレル"),
        ("Pavel Orlin", "Pavel Orlin", "파벨 오를린", "Павел Орлин", "パヴェル・オルリン"),
        1956,
    ),
    (
        ("Halmira", "Halmira", "할미라", "Халмира", "ハルミラ"),
        ("Anna Weiler", "Anna Weiler", "안나 바일러", "Анна Вайлер", "アンナ・ヴァイラー"),
        1962,
    ),
    (
        ("Corvane", "Corvane", "코르반", "Корван", "コルヴァン"),
        ("Luc Desmond", "Luc Desmond", "뤽 데스몽", "Люк Десмон", "リュック・デスモン"),
        1975,
    ),
    (
        ("Eskelund", "Eskelund", "에스켈룬드", "Эскелунд", "エスケルンド"),
        ("Nils Aker", "Nils Aker", "닐스 아케르", "Нильс Акер", "ニルス・アケル"),
        1989,
    ),
    (
        ("Myrefal", "Myrefal", "뮈레팔", "Мюрефаль", "ミュレファル"),
        ("Greta Lind", "Greta Lind", "그레타 린드", "Грета Линд", "グレタ・リンド"),
        2003,
    ),
)
WHO = {
    "en": "who designed the {town} bridge",
    "fr": "qui a conçu le pont de {town}",
    "ko": "{town} 다리를 설계한 사람은 누구인가요",
    "ru": "кто спроектировал мост {town}",
    "ja": "{town}橋を設計したのは誰ですか",
}
WHEN = {
    "en": "what year did the {town} bridge open",
    "fr": "en quelle année le pont de {town} a-t-il ouvert",
    "ko": "{town} 다리는 몇 년에 개통되었나요",
    "ru": "в каком году открылся мост {town}",
    "ja": "{town}橋は何年に開通しましたか",
}
TITLES = {"en": "{town} Bridge", "fr": "Pont de {town}", "ko": "{town} 다리", "ru": "Мост {town}", "ja": "{town}橋"}
# Two paragraphs: the first answers the questions.
PAGES = {
    "en": (
        "The {town} Bridge is a stone arch bridge across the river. It was designed by the engineer {person} and "
        "opened to traffic in {year}.",
        "Trams crossed the {town} Bridge for many years until the rails were taken up and the lamps were replaced.",
    ),
    "fr": (
        "Le pont de {town} est un pont en pierre qui franchit la rivière. Il a été conçu par l'ingénieur {person} et "
        "ouvert à la circulation en {year}.",
        "Des tramways ont traversé le pont de {town} pendant des années, jusqu'au remplacement des rails.",
    ),
    "ko": (
        "{town} 다리는 강을 가로지르는 돌다리이다. 기술자 {person}이(가) 설계하였고 {year}년에 개통되었다.",
        "오랫동안 전차가 {town} 다리를 건너다녔으나 그 뒤 선로가 철거되고 가로등이 교체되었다.",
    ),
    "ru": (
        "Мост {town} — каменный арочный мост через реку. Его спроектировал инженер {person}, движение открылось в "
        "{year} году.",
        "Много лет по мосту {town} ходили трамваи, затем рельсы сняли и заменили фонари.",
    ),
    "ja": (
        "{town}橋は川に架かる石造りのアーチ橋である。技師の{person}が設計し、{year}年に開通した。",
        "長年にわたり路面電車が{town}橋を渡っていたが、その後レールは撤去され、街灯も取り替えられた。",
    ),
}
# The languages in which each bridge has a page.
PAGES_IN = {"en": range(10), "fr": range(7), "ko": range(5), "ru": range(3, 10), "ja": range(5, 10)}


def example_id(number: int) -> int:
    """Return the id of a question; some of MKQA's ids are negative."""
    return (7_000_000_000_000_000_000 + number) * (-1 if number % 3 == 0 else 1)


def page_id(number: int, code: str = "en") -> str:
    """Return the id of a bridge's page; in another Wikipedia it is the number of a different English page."""
    return str(100 + (number + LANGS.index(code)) % 10)


def asks_who(number: int) -> bool:
    return number % 2 == 0


def answer(number: int, code: str) -> str:
    _, people, year = BRIDGES[number]
    return people[LANGS.index(code)] if asks_who(number) else str(year)


def question(number: int, code: str) -> str:
    return (WHO if asks_who(number) else WHEN)[code].format(town=BRIDGES[number][0][LANGS.index(code)])


def mkqa_row(number: int) -> dict[str, Any]:
    """Return question ``number`` (0..9); the last name of a person is an alias, and one row's alias is exploded."""
    answers: dict[str, list[dict[str, Any]]] = {}
    for code in LANGS:
        text = answer(number, code)
        if asks_who(number):
            last = text.replace("・", " ").split()[-1]
            answers[code] = [{"type": "entity", "entity": f"Q{number}", "text": text, "aliases": [last]}]
        else:
            answers[code] = [{"type": "date", "text": text, "aliases": [text]}]
    if number == 2:
        answers["en"][0]["aliases"] = ["m", "a", "r", " ", "s", "o", "l", "i", "Ms Solis"]
    return {
        "query": question(number, "en"),
        "answers": answers,
        "queries": {code: question(number, code) for code in LANGS},
        "example_id": example_id(number),
    }


def unanswerable_row() -> dict[str, Any]:
    """Return a question without an answer; a third of MKQA's questions have none."""
    return {
        "query": "when does the next bridge open",
        "answers": {code: [{"type": "unanswerable", "text": None}] for code in LANGS},
        "queries": {code: question(0, code) for code in LANGS},
        "example_id": 41,
    }


def foreign_row() -> dict[str, Any]:
    """Return a question that is not in KILT."""
    return {**mkqa_row(1), "example_id": 42}


def mkqa_rows() -> list[dict[str, Any]]:
    return [*(mkqa_row(number) for number in range(len(BRIDGES))), unanswerable_row(), foreign_row()]


def kilt_rows() -> list[dict[str, Any]]:
    """Return KILT's records of the ten bridges, the unanswerable question, and one that is not in MKQA."""
    rows = [
        {
            "id": str(example_id(number)),
            "input": question(number, "en"),
            "output": [
                {
                    "answer": answer(number, "en"),
                    "provenance": [
                        {"wikipedia_id": page_id(number), "start_paragraph_id": 1, "end_paragraph_id": 1, "title": ""}
                    ],
                },
                {"answer": answer(number, "en"), "provenance": [{"wikipedia_id": page_id(number)}]},
                {"answer": "a spelling"},
            ],
        }
        for number in range(len(BRIDGES))
    ]
    return [*rows, {"id": "41", "input": "x", "output": []}, {"id": "43", "input": "y", "output": []}]


def pages() -> list[dict[str, Any]]:
    """Return the Wikipedia pages: ``id``, ``lang``, ``title``, ``text``; an id is unique only in its language."""
    out = []
    for code, numbers in PAGES_IN.items():
        for number in numbers:
            towns, people, year = BRIDGES[number]
            place = LANGS.index(code)
            values = {"town": towns[place], "person": people[place], "year": year}
            text = "\n\n".join(paragraph.format(**values) for paragraph in PAGES[code])
            page = {"id": page_id(number, code), "lang": code, "title": TITLES[code].format(**values), "text": text}
            out.append(page)
    return out


def kilt_pages() -> list[dict[str, Any]]:
    """The English pages as lines of KILT's knowledge source: the title is paragraph 0."""
    return [
        {
            "wikipedia_id": page["id"],
            "wikipedia_title": page["title"],
            "text": [page["title"] + "\n", *page["text"].split("\n\n")],
        }
        for page in pages()
        if page["lang"] == "en"
    ]


def xor_rows() -> list[dict[str, Any]]:
    """Return six Korean and four Russian questions in XOR-TyDi QA's form, including a yes and a no."""
    rows = [
        {"id": f"xor-ko-{n}", "question": question(n, "ko"), "lang": "ko", "answers": [answer(n, "ko")]}
        for n in range(5)
    ]
    rows.append({"id": "xor-ko-yes", "question": "그 다리는 돌다리인가요?", "lang": "ko", "answers": ["yes"]})
    rows += [
        {"id": f"xor-ru-{n}", "question": question(n, "ru"), "lang": "ru", "answers": [answer(n, "ru")]}
        for n in range(3)
    ]
    rows.append({"id": "xor-ru-no", "question": "Это деревянный мост?", "lang": "ru", "answers": ["No"]})
    return rows


def tydi_file() -> dict[str, Any]:
    """Return TyDi QA's gold passage file: three English questions and a Finnish one."""
    paragraphs = []
    for number in range(3):
        values = {"town": BRIDGES[number][0][0], "person": BRIDGES[number][1][0], "year": BRIDGES[number][2]}
        paragraphs.append(
            {
                "context": PAGES["en"][0].format(**values),
                "qas": [
                    {
                        "id": f"english-{number}-1",
                        "question": question(number, "en"),
                        "answers": [{"text": answer(number, "en"), "answer_start": 0}],
                    }
                ],
            }
        )
    finnish = {"id": "finnish-1-1", "question": "Milloin silta avattiin?", "answers": [{"text": "1894"}]}
    paragraphs.append({"context": "Silta avattiin vuonna 1894.", "qas": [finnish]})
    return {"version": "1.1", "data": [{"title": "Bridges", "paragraphs": paragraphs}]}


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def write_all(folder: Path) -> Path:
    """Write the files of MKQA, KILT and the two TyDi sets, and ``pages.jsonl``, to ``folder``."""
    write_jsonl(folder / "kilt_knowledgesource.json", kilt_pages())
    write_jsonl(folder / "mkqa.jsonl", mkqa_rows())
    write_jsonl(folder / "nq-train-kilt.jsonl", kilt_rows())
    write_jsonl(folder / "pages.jsonl", pages())
    write_jsonl(folder / "xor_dev_full_v1_1.jsonl", xor_rows())
    (folder / "tydiqa-goldp-v1.1-dev.json").write_text(json.dumps(tydi_file()), encoding="utf-8")
    return folder
