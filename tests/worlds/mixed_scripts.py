"""Random texts of mixed scripts with everything that cutting has got wrong before."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

_LETTERS = (
    *("abcdeXYZ", "éñüßøıİ", "жцфЯё", "αβγώΣ", "حبتثيآ", "אבגד", "हिनमा", "বাংলা", "தமிழ்", "తెలు", "മലയാ", "සිංහ"),
    *(
        "ไทยเก่าน้ำ",
        "ລາວນ້ຳ",
        "ខ្មែរ",
        "မြန်မာ",
        "བོད་ཡིག",
        "አማርኛ",
        "ქართ",
        "Հայոց",
        "漢字語",
        "かなカナー",
        "한국어각",
        "ꦗꦮ",
        "ߒߞߏ",
        "𞤀𞤣",
    ),
)
_ENDS = (
    *(".", "!", "?", "...", "…", "?!", "。", "！", "？", "．", "｡", "।", "॥", "።", "፡፡", "፧", "։", "۔", "؟", "။", "၊"),
    *("។", "៕", "།", "༎", "᠃", "꧉", "߹", "‼", "⁇", ";", "\u037e", ":"),
)
_OTHERS = (
    *(
        ",",
        "، ",
        "、",
        "“",
        "”",
        "»",
        "(",
        ")",
        "」",
        "-",
        "'",
        "/",
        "@",
        "_",
        "#",
        "🙂",
        "👩\u200d🔬",
        "\u200b",
        "\u200d",
        "\u200c",
    ),
    *("\u00ad", "\ufeff", "\u0301", "\u0e34", "\u093e", "\u064b", "\u20dd", "\ufe0f"),
)
_NUMBERS = ("3.14", "３．１４", "1,000", "٣٫١٤", "१२", "2020", "v1.2.3", "10:30", "§5")
_TOKENS = (
    *("a.b.c.d.e.f", "https://example.org/a?b=c&d=e#f", "www.x.y.z", "me@example.org", "x" * 37, "字" * 23, "ก" * 19),
    *("Dr.", "U.S.A.", "e.g.", "Ｕ．Ｓ．", "a" + "\u0301" * 9, "\u0301\u0301\u0301", "!?!?!?!?!?", "-" * 15),
)
_SPACES = (" ", " ", " ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\x85", "\x1f", " \n \n ")

LANGUAGES = ("en", "zh", "ja", "ko", "th", "lo", "km", "my", "bo", "hi", "am", "ar", "el", "hy", "ur", "yue")


def mixed_texts(count: int, seed: int) -> Iterator[tuple[random.Random, str]]:
    """Yield ``count`` texts of up to 40 parts, each with the generator that made it, for further choices."""
    for number in range(count):
        draw = random.Random(f"{seed}:{number}")
        scripts = draw.choices(_LETTERS, k=draw.randint(1, 3))
        parts = []
        for _ in range(draw.randint(0, 40)):
            chance = draw.random()
            if chance < 0.40:
                parts.append("".join(draw.choices(draw.choice(scripts), k=draw.randint(1, 6))))
            elif chance < 0.65:
                parts.append(draw.choice(_SPACES))
            else:
                parts.append(draw.choice(draw.choice((_ENDS, _OTHERS, _NUMBERS, _TOKENS))))
        yield draw, "".join(parts)


def cutting_fault(text: str, pieces: Iterable[str]) -> str | None:
    """Return how the pieces differ from the text cut in order, with only white space between them; None: not at all."""
    position = 0
    for piece in pieces:
        found = text.find(piece, position)
        if found < 0:
            return f"{piece!r} is not in the rest of the text"
        if text[position:found].strip():
            return f"lost {text[position:found]!r}"
        position = found + len(piece)
    return f"lost {text[position:]!r}" if text[position:].strip() else None
