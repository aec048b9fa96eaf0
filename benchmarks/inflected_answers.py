"""Measure what metrics make of right answers in other forms, from tables that neither metric reads.

pip install pymorphy3 pymorphy3-dicts-ru pymorphy3-dicts-uk morfeusz2
python benchmarks/inflected_answers.py

Nouns of everyday answers are inflected by pymorphy3 (Russian, Ukrainian) and Morfeusz (Polish), and put into the plain
sentence of their language. Near misses are the forms of every other noun of the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from mrag_eval.languages import in_sentence
from mrag_eval.metrics import lemma_match, match

NOUNS = {
    "ru": "Москва Россия Франция Германия Байкал Волга Пушкин Толстой Киев Лондон Париж Берлин Украина Польша Варшава "
    "Италия Испания Рим Мадрид город река озеро гора церковь король учитель врач лев медведь хлеб соль железо золото "
    "мост дом море остров весна зима жена отец мать дочь",
    "uk": "Київ Україна Франція Німеччина Дніпро Львів Одеса Харків Шевченко Лондон Париж Берлін Польща Варшава Італія "
    "Іспанія Рим Мадрид місто річка озеро гора церква король учитель лікар лев ведмідь хліб сіль залізо золото міст "
    "дім море острів весна зима жінка батько мати дочка ніч",
    "pl": "Polska Warszawa Francja Niemcy Wisła Kraków Gdańsk Łódź Mickiewicz Londyn Paryż Berlin Rosja Moskwa Włochy "
    "Hiszpania Rzym Madryt miasto rzeka jezioro góra kościół król nauczyciel lekarz lew niedźwiedź chleb sól żelazo "
    "złoto most dom morze wyspa wiosna zima żona ojciec matka córka noc",
}


def forms(lang: str) -> Iterator[tuple[str, str]]:
    """Yield the nouns of a language with each of their other forms in the singular, or of a name in the plural."""
    if lang == "pl":
        import morfeusz2

        known = morfeusz2.Morfeusz(generate=True)
        for noun in NOUNS[lang].split():
            for form, _, tag, *_ in known.generate(noun):
                number, cases = (*tag.split(":"), "", "")[1:3]
                singular = number == "sg" or noun in ("Niemcy", "Włochy")
                if tag.startswith("subst") and singular and {*cases.split(".")} & {"gen", "dat", "acc", "inst", "loc"}:
                    yield noun, form
        return
    import pymorphy3

    found = pymorphy3.MorphAnalyzer(lang=lang)
    for noun in NOUNS[lang].split():
        parsed = [p for p in found.parse(noun) if {"NOUN", "nomn"} in p.tag and p.normal_form == noun.lower()]
        for case in ("gent", "datv", "accs", "ablt", "loct") if parsed else ():
            if form := parsed[0].inflect({case}):
                yield noun, form.word.capitalize() if noun[0].isupper() else form.word


def main() -> None:
    """Print, by language, the share of right answers that each metric finds, and the near misses that it accepts."""
    print("language  nouns  forms  match_unicode  match_lemmas  near misses  match_unicode  match_lemmas")
    for lang, nouns in NOUNS.items():
        own = [pair for pair in dict.fromkeys(forms(lang)) if pair[0].lower() != pair[1].lower()]
        near = [(noun, form) for noun in nouns.split() for other, form in own if other != noun]
        shown = [
            [match(text, [noun], normalize="unicode", lang=lang), lemma_match(text, [noun], lang=lang)]
            for pairs in (own, near)
            for noun, form in pairs
            if (text := in_sentence(form, lang))
        ]
        right, wrong = shown[: len(own)], shown[len(own) :]
        shares = [sum(column) / len(own) for column in zip(*right, strict=True)]
        accepted = [round(sum(column)) for column in zip(*wrong, strict=True)]
        print(
            f"{lang}  {len(nouns.split())}  {len(own)}  {shares[0]:.3f}  {shares[1]:.3f}  {len(near)}",
            *accepted,
            sep="  ",
        )


if __name__ == "__main__":
    main()
