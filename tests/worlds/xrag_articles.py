"""Articles of full length for XRAG rows: eight of them exceed ten thousand tokens, as in the published set."""

from __future__ import annotations

from typing import Any

from tests.worlds.xrag import TOWNS, row

SECTIONS = 9
# Sentences of a section; {town}, {n} and {k} make each unique.
SENTENCES = {
    "en": (
        "In part {k} of its report, the council of {town} describes how {n} trees along the old canal will be planted.",
        "The gardeners begin at the lock house and work their way towards the market, street by street.",
        "Each tree costs about {n} crowns, and a fund that local shops pay into covers roughly half of that sum.",
        "Several residents asked whether the roots could damage the walls of the canal, which date from 1870.",
        "An engineer answered that the species chosen, a small-leaved lime, keeps its roots well away from stone.",
        "Schools have been invited to take part, and {n} children have already signed up for the first weekend.",
        "The tram will stop {k} times a day at a temporary platform while the square is closed to traffic.",
        "If the winter stays mild, the last section should be finished before the spring fair in {town} opens.",
    ),
    "de": (
        "In Teil {k} seines Berichts beschreibt der Rat von {town}, wie {n} Bäume am alten Kanal gepflanzt werden.",
        "Die Gärtner beginnen am Schleusenhaus und arbeiten sich Straße für Straße bis zum Markt vor.",
        "Jeder Baum kostet etwa {n} Kronen, und ein Fonds der örtlichen Geschäfte deckt ungefähr die Hälfte davon.",
        "Mehrere Anwohner fragten, ob die Wurzeln die Kanalmauern beschädigen könnten, die aus dem Jahr 1870 stammen.",
        "Ein Ingenieur antwortete, die gewählte Art, eine Winterlinde, halte ihre Wurzeln vom Mauerwerk fern.",
        "Auch die Schulen sind eingeladen, und {n} Kinder haben sich bereits für das erste Wochenende angemeldet.",
        "Die Straßenbahn hält {k} Mal am Tag an einem vorläufigen Bahnsteig, solange der Platz gesperrt ist.",
        "Bleibt der Winter mild, so ist der letzte Abschnitt fertig, bevor der Frühlingsmarkt in {town} beginnt.",
    ),
    "es": (
        "En la parte {k} de su informe, el consejo de {town} explica cómo se plantarán {n} árboles junto al canal.",
        "Los jardineros empiezan en la casa de la esclusa y avanzan hacia el mercado calle por calle.",
        "Cada árbol cuesta unas {n} coronas, y un fondo de los comercios locales cubre cerca de la mitad.",
        "Varios vecinos preguntaron si las raíces podrían dañar los muros del canal, que datan de 1870.",
        "Un ingeniero respondió que la especie elegida, un tilo de hoja pequeña, aleja sus raíces de la piedra.",
        "Las escuelas están invitadas a participar, y {n} niños ya se han apuntado para el primer fin de semana.",
        "El tranvía parará {k} veces al día en un andén provisional mientras la plaza siga cerrada.",
        "Si el invierno es suave, el último tramo estará listo antes de que abra la feria de primavera de {town}.",
    ),
    "zh": (
        "在报告的第{k}部分中,{town}议会说明了如何在旧运河沿岸种植{n}棵树。",
        "园丁们从船闸小屋开始,一条街一条街地向市场方向推进。",
        "每棵树大约需要{n}克朗,当地商店出资的一项基金承担其中约一半的费用。",
        "有几位居民询问树根是否会损坏运河的石墙,这些石墙建于1870年。",
        "一位工程师回答说,所选的树种是小叶椴树,它的根会远离石头生长。",
        "各所学校也受到邀请,已有{n}名儿童报名参加第一个周末的活动。",
        "广场封闭期间,有轨电车每天会在临时站台停靠{k}次。",
        "如果冬天不太冷,最后一段工程将在{town}春季集市开幕之前完成。",
    ),
    "ar": (
        "في الجزء {k} من تقريره، يشرح مجلس مدينة {town} كيف ستُزرع {n} شجرة على طول القناة القديمة.",
        "يبدأ عمال الحدائق عند بيت الهويس ثم يتقدمون نحو السوق شارعًا بعد شارع.",
        "تبلغ تكلفة كل شجرة نحو {n} كرونة، ويغطي صندوق تموله المتاجر المحلية ما يقارب نصف المبلغ.",
        "سأل عدد من السكان عما إذا كانت الجذور ستضر بجدران القناة التي يعود تاريخها إلى عام 1870.",
        "أجاب أحد المهندسين بأن النوع المختار هو زيزفون صغير الأوراق يبعد جذوره عن الحجارة.",
        "دُعيت المدارس إلى المشاركة، وقد سجل {n} طفلًا أسماءهم بالفعل لعطلة نهاية الأسبوع الأولى.",
        "سيتوقف الترام {k} مرات في اليوم عند رصيف مؤقت ما دام الميدان مغلقًا أمام السيارات.",
        "إذا بقي الشتاء معتدلًا فسيكتمل الجزء الأخير قبل افتتاح معرض الربيع في مدينة {town}.",
    ),
}


def article(language: str, town: str, number: int, sections: int = SECTIONS) -> str:
    """Return an article of ``sections`` paragraphs; English ones have about 1,700 tokens."""
    return "\n\n".join(
        " ".join(s.format(town=town, n=100 + 37 * number + k, k=k) for s in SENTENCES[language])
        for k in range(1, sections + 1)
    )


def long_row(language: str, setting: str, number: int) -> dict[str, Any]:
    """Return a row as in ``xrag_rows`` with eight full-length articles (the last one has a single paragraph)."""
    made = row(language, setting, number)
    other = language if setting == "multi" else "en"
    langs = ["en", other, "en", "en", "en", other, other, other]
    made["id"] = f"long-{made['id']}"
    made["en_question"] += " In full."
    made["articles"] = [
        article(code, TOWNS[(number + i) % 6], number * 8 + i, 1 if i == 7 else SECTIONS + i % 3)
        for i, code in enumerate(langs)
    ]
    return made


def long_rows() -> list[dict[str, Any]]:
    """Return three rows of every language in both settings."""
    return [
        long_row(language, setting, number)
        for setting in ("mono", "multi")
        for language in ("de", "es", "zh", "ar")
        for number in range(3)
    ]
