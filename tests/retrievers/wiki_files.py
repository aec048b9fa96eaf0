"""Small files in the formats of Wikipedia and KILT, written for these tests."""

from __future__ import annotations

import bz2
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

# id, title, namespace, redirect, markup
Page = tuple[int, str, int, bool, str]

VARN = """{{Infobox harbour
| name = Varn {{nested|x}}
}}
'''Varn''' is a [[harbour|port town]] on the [[Olm]].<ref name="a">A book, p. {{cite|3}}.</ref>
It has {{convert|3|km}} of quay, 2&nbsp;km of it paved.<br>Ferries leave at noon.
[[File:Varn.jpg|thumb|The quay of [[Varn]] at night]] [[Image:x.png]] [[Bild:Turm.svg|mini|Der Turm]]

== History ==
Founded in 1841.<!-- checked -->
* a lighthouse
* a ''bakery''
{| class="wikitable"
! Year !! Ships
|-
| 1841 || 3
|}

=== Maps ===
<gallery>
File:Map.jpg|A map
</gallery>

== References ==
<references />
{{Reflist}}

== See also ==
[[:Category:Harbours|Harbours]], [https://example.org a page] and [https://example.org]
__NOTOC__ [[Category:Towns]]
[[de:Varn]]
"""
VARN_SHOWN = """Varn is a port town on the Olm.
It has of quay, 2 km of it paved.
Ferries leave at noon.
History
Founded in 1841.
a lighthouse
a bakery
See also
Harbours, a page and"""

PAGES: list[Page] = [
    (12, "Varn", 0, False, VARN),
    (13, "Warn", 0, True, "#REDIRECT [[Varn]]"),
    (14, "Talk:Varn", 1, False, "A question on the quay."),
    (15, "Empty", 0, False, "{{stub}}"),
    (20, "Olm", 0, False, "The '''Olm''' is a river. " + "It flows. " * 120),
]
KOREAN: list[Page] = [
    (12, "바른", 0, False, "'''바른'''은 항구 도시이다. [[파일:x.jpg|섬네일]] 등대는 1841년에 세워졌다."),
]

_SPACES = {"en": {6: "File", 14: "Category"}, "ko": {6: "파일", 14: "분류"}}


def write_dump(folder: Path, lang: str, pages: Sequence[Page], *, date: str = "20251020", streams: int = 1) -> Path:
    """Write ``<lang>wiki-<date>-pages-articles.xml.bz2``; with several ``streams``, like the multistream dumps."""
    named = _SPACES[lang].items()
    spaces = "".join(f'<namespace key="{key}" case="first-letter">{name}</namespace>' for key, name in named)
    head = (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="{lang}">\n'
        f"<siteinfo><sitename>Wikipedia</sitename><dbname>{lang}wiki</dbname><namespaces>{spaces}"
        '<namespace key="0" case="first-letter" /></namespaces></siteinfo>\n'
    )
    body = [
        f"<page><title>{escape(title)}</title><ns>{space}</ns><id>{number}</id>"
        + ('<redirect title="Varn" />' if redirect else "")
        + f"<revision><id>{number}00</id><model>wikitext</model><format>text/x-wiki</format>"
        f'<text bytes="1" xml:space="preserve">{escape(markup)}</text></revision></page>\n'
        for number, title, space, redirect, markup in pages
    ]
    whole = [head, *body, "</mediawiki>\n"]
    parts = [whole] if streams == 1 else [[line] for line in whole]
    path = folder / f"{lang}wiki-{date}-pages-articles.xml.bz2"
    path.write_bytes(b"".join(bz2.compress("".join(part).encode()) for part in parts))
    return path


def write_copy(folder: Path, config: str, articles: Sequence[Mapping[str, str]]) -> Path:
    """Write a copy of one configuration of the hub's dataset, in two files."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    home = folder / config
    home.mkdir(parents=True)
    half = len(articles) // 2
    for number, rows in enumerate((articles[:half], articles[half:])):
        columns = {name: [row[name] for row in rows] for name in ("id", "url", "title", "text")}
        schema = pa.schema([(name, pa.string()) for name in columns])
        pq.write_table(pa.table(columns, schema=schema), home / f"train-0000{number}-of-00002.parquet")
    return home


def article(number: int, title: str, text: str) -> dict[str, str]:
    return {"id": str(number), "url": f"https://example.org/{number}", "title": title, "text": text}


KILT_LINES = [
    {
        "_id": "12",
        "wikipedia_id": "12",
        "wikipedia_title": "Varn",
        "text": [
            "Varn\n",
            "Varn is a port town.\n",
            "Section::::History.\n",
            "Founded in 1841.\n",
            "BULLET::::- a lighthouse\n",
            "Section::::History.:Ships.\n",
            "Three ships.\n",
        ],
        "anchors": [],
        "categories": "Towns",
    },
    {"wikipedia_id": "20", "wikipedia_title": "Olm", "text": {"paragraph": ["Olm\n", "The Olm is a river.\n"]}},
]


def write_kilt(folder: Path, lines: Sequence[object] = KILT_LINES) -> Path:
    path = folder / "kilt_knowledgesource.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
