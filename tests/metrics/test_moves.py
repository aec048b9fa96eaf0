"""What a reply does, in every language that has words: the same move, in each language's own words, is read alike."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mrag_eval.languages import Language, known_languages, language
from mrag_eval.metrics import declines, extract_choice, read_yes_no

OPTIONS = ["Oslo", "Praha", "Berlin", "Roma"]
D = 3
# A move's name, a reply, the option that it chooses, and whether it declines.
Move = tuple[str, str, int | None, bool]


def _known() -> list[str]:
    found = {code: language(code) for code in known_languages() if code != "zh-Hant"}
    return [code for code, known in found.items() if known and known.words.answer and known.words.wrong]


def moves(known: Language) -> Iterator[Move]:
    """Yield every move in the words of a language; words that take endings are stems, and stand in no reply."""
    words = known.words

    def says(answer: str) -> str:
        return known.sentence.replace("{answer}", answer)

    def behind(answer: str) -> str:
        return says(answer)[0].lower() + says(answer)[1:]

    yield "announces", says("D"), D, False
    yield "echoes the options", "A) Oslo\nB) Praha\nC) Berlin\nD) Roma\n\n" + says("D"), D, False
    yield "corrects itself", f"{says('A')} {says('D')}", D, False
    for word in words.corrects:
        if not word.endswith("~"):
            yield "corrects itself", f"{says('A')} {word}, D.", D, False
            yield "corrects itself", f"A. {word}, D", D, False
            yield "corrects itself", f"A, {word}, D.", D, False
    yield "thinks", f"[THINK]{says('A')}[/THINK]{says('D')}", D, False
    yield "thinks", f"{says('A')}</think>{says('D')}", D, False
    for word in words.hedges:
        if not word.endswith("~"):
            yield "doubts", f"{word} D.", D, False
            yield "doubts", f"D {word}", D, False
            yield "names two", f"{word} A. {word} D.", None, False
        for doubt in words.refuses_if_alone:
            yield "doubts", f"{doubt}. {word} D.", D, False
    for word in words.wrong:
        if not word.endswith("~"):
            yield "rules out", f"B {word}.", None, False
    for word in words.rejects:
        yield "rules out", f"{word} B.", None, False
    for word in set(words.joins) - set(words.rejects):
        yield "names two", f"A {word} B.", None, False
        yield "names two", says(f"A {word} B"), None, False
    for refusal in words.refuses:
        # Korean words are joined to what follows
        if refusal.endswith(("~", "아")):
            continue
        yield "refuses", f"{refusal}.", None, True
        yield "quotes a refusal", f"“{refusal}.” {says('D')}", D, False
        for turn in words.turns:
            yield "hedges", f"{refusal}, {turn} {behind('D')}", D, False
            yield "hedges", f"{refusal} {turn} D.", D, False


@pytest.mark.parametrize("code", _known())
def test_a_move_is_read_alike_in_every_language(code: str) -> None:
    known = language(code)
    assert known is not None
    assert all(
        (
            known.words.turns,
            known.words.corrects,
            known.words.passage,
            known.words.refuses,
            known.words.refuses_if_own,
            known.words.refuses_if_alone,
            known.words.own,
            known.words.although,
            known.words.joins,
            known.sentence,
        )
    )
    differ = []
    for move, reply, option, refused in moves(known):
        # a word that rules out may also be one of a refusal: "neither"
        told = move in ("rules out", "names two") or declines(reply, code, OPTIONS) is refused
        if extract_choice(reply, 4, OPTIONS, code) != option or not told:
            differ.append((move, reply))
    assert differ == []


@pytest.mark.parametrize(
    ("code", "reply", "option"),
    [
        ("en", "Not sure. Could be D.", D),
        ("ja", "よくわかりませんが、Dかもしれません。", D),
        ("en", "It could be D, but I'm not sure.", D),
        ("tr", "Belki D, ama emin değilim.", D),
        ("en", "It could be D, but that would be too easy.", None),
        ("en", "At first it might seem to be D.", None),
        ("en", "Many people would say it could be D.", None),
        ("en", "If it could be D.", None),
        ("de", "Es könnte D sein, aber das stimmt nicht.", None),
        ("de", "Man könnte an D denken.", None),
        ("es", "A primera vista parece D.", None),
        ("en", "I don't know whether it could be D.", None),
    ],
)
def test_a_doubted_option_is_chosen_where_it_is_the_replys_own_and_nothing_follows(
    code: str, reply: str, option: int | None
) -> None:
    assert extract_choice(reply, 4, OPTIONS, code) == option


@pytest.mark.parametrize(
    ("reply", "option"),
    [
        ("The answer is A. Actually, B was built earlier.", 0),
        ("A is right, actually B is older.", 0),
        ("The answer is A. Actually, B is wrong.", 0),
        ("The answer is A. I mean the north.", 0),
        ("The answer is A. No, B.", None),
        ("I said A, but I meant D.", D),
    ],
)
def test_what_is_added_corrects_nothing(reply: str, option: int | None) -> None:
    assert extract_choice(reply, 4, OPTIONS, "en") == option


@pytest.mark.parametrize("code", _known())
def test_of_a_reply_that_was_cut_off_only_what_it_announces_is_read(code: str) -> None:
    known = language(code)
    assert known is not None
    announced = known.sentence.replace("{answer}", "D")
    assert extract_choice(f"{announced} Xyz abc", 4, OPTIONS, code, cut_off=True) == D
    assert extract_choice("D) Roma. Xyz abc", 4, OPTIONS, code, cut_off=True) == D
    for reply in ("Xyz abc A xyz", "Oslo xyz abc, xyz", "A) Oslo xyz. B) Praha xyz", "Xyz Oslo abc. Xyz Praha abc"):
        assert extract_choice(reply, 4, OPTIONS, code, cut_off=True) is None, reply


@pytest.mark.parametrize("code", _known())
def test_yes_no_and_neither_are_read_alike_in_every_language(code: str) -> None:
    known = language(code)
    assert known is not None
    for says, words in ((True, known.words.yes), (False, known.words.no), (None, known.words.unsettled)):
        assert [word for word in words if read_yes_no(f"{word.rstrip('~')}.", code) is not says] == [], says


@pytest.mark.parametrize(
    ("code", "reply"),
    [("ta", "A, B இரண்டும் சரியாக இருக்கலாம்."), ("en", "A, B could be right."), ("ro", "Oscilez între A și B.")],
)
def test_two_options_that_are_weighed_together_choose_none(code: str, reply: str) -> None:
    assert extract_choice(reply, 4, OPTIONS, code) is None


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("en", "Option A describes the north, which"),
        ("de", "Option A beschreibt den Norden, der"),
        ("ru", "Вариант A описывает север, который"),
        ("zh", "选项A描述的是北方，那里"),
        ("ko", "선택지 A는 북쪽을 설명하는데"),
        ("sw", "Chaguo A linaeleza kaskazini, ambayo"),
    ],
)
def test_a_reply_that_was_cut_off_while_it_describes_an_option_chooses_none(code: str, reply: str) -> None:
    assert extract_choice(reply, 4, OPTIONS, code, cut_off=True) is None


WITHOUT = ["eu", "sk", "ml", "ig", "is", "sl", "km"]


@pytest.mark.parametrize("code", WITHOUT)
@pytest.mark.parametrize(
    ("reply", "option"),
    [
        ("B", 1),
        ("**B**", 1),
        ("(B)", 1),
        ("B) Praha", 1),
        ("Praha.", 1),
        ("Ukupu: B", 1),
        ("Xyz abc je.\n\nB", 1),
        ("B\n\nXyz abc A def.", 1),
        ('{"answer": "B"}', 1),
        ("\\boxed{B}", 1),
        ("The answer is B.", 1),
        # what these say is not known
        ("B xyz abc.", None),
        ("B) xyz abc.", None),
        ("Xyz abc B.", None),
        ("Praha xyz abc.", None),
        ("A xyz B.", None),
        ("A) Oslo xyz, B) Praha abc.", None),
    ],
)
def test_without_words_a_label_or_a_text_is_read_alone(code: str, reply: str, option: int | None) -> None:
    assert extract_choice(reply, 4, OPTIONS, code) == option


@pytest.mark.parametrize("code", _known())
def test_what_others_do_not_know_is_no_refusal_in_any_language(code: str) -> None:
    known = language(code)
    assert known is not None
    words, name = known.words, "Xqzw"
    own = next(word.rstrip("~") for word in words.own if len(word) > 2)
    gap = "" if code in ("th", "ja", "zh") else " "
    filler = f"{name} {name} {name} {name} {name}"
    for refusal in words.refuses_if_own:
        # a longer phrase may say of nobody what a part of it says of a person; Korean words are joined to what follows
        if any(refusal.rstrip("~") in other for other in words.refuses) or refusal.endswith("~"):
            continue
        assert not declines(f"{filler} {refusal} {filler}.", code), refusal
        assert declines(f"{own}{gap}{refusal} {filler}.", code), refusal
    for refusal in words.refuses:
        if refusal.endswith("~"):
            continue
        assert not declines(f"{name} {name}: “{refusal}.” {filler}.", code), refusal
        assert not declines(f"{filler}, {words.although[0]}{gap}{refusal}.", code), refusal
        assert not declines(f"{words.although[0]}{gap}{refusal}, {filler}.", code), refusal


@pytest.mark.parametrize(
    ("reply", "refused"),
    [
        ("The text does not say who built it.", True),
        ("The passages describe a mill. The year is not mentioned.", True),
        ("There is no information about that in the documents.", True),
        ("Unknown.", True),
        ("Sorry, I can't help with that.", True),
        ("He said he was sorry and left the mill to his son in 1802.", False),
        ("I'm sorry, but I cannot answer this.", True),
        ("He could not say where the letter was.", False),
        ("The miller did not know who had come.", False),
        ("It was painted by an unknown painter.", False),
        ("It was built in 1802. The text does not say by whom.", False),
        ("I am not sure, but I think it was 1802.", False),
        ("Although the text does not mention the year, it was 1802.", False),
        ("– I do not know, – said the boy. The ring was in the well.", False),
        ("The miller said: 'I do not know.' The ring was in the well.", False),
    ],
)
def test_a_reply_to_an_open_question_declines_for_itself(reply: str, refused: bool) -> None:
    assert declines(reply, "en") is refused


# A request that is declined, as chat models do it: an apology is no doubt that "but" would turn to an answer.
DECLINED = {
    "en": [
        "I'm sorry, but I can't help with that.",
        "I am sorry, but I cannot assist with that request.",
        "I apologize, but I can't provide that information.",
        "Sorry, but I'm unable to help with this.",
        "I can't help with that.",
        "I must decline to answer.",
        "I won't help with that.",
    ],
    "fr": ["Je suis désolé, mais je ne peux pas vous aider.", "Désolé, mais je ne peux pas vous aider avec cela."],
    "de": [
        "Es tut mir leid, aber ich kann dir dabei nicht helfen.",
        "Entschuldigung, aber dabei kann ich nicht helfen.",
    ],
    "es": [
        "Lo siento, pero no puedo ayudarte con eso.",
        "Lo siento, pero no puedo proporcionar esa información.",
        "Lamento no poder ayudarte.",
    ],
    "it": ["Mi dispiace, ma non posso aiutarti con questo."],
    "pt": ["Desculpe, mas não posso ajudar com isso.", "Sinto muito, mas não posso ajudar."],
    "ru": ["Извините, но я не могу помочь с этим.", "К сожалению, я не могу помочь с этим."],
    "uk": ["Вибачте, але я не можу допомогти з цим."],
    "pl": ["Przykro mi, ale nie mogę w tym pomóc.", "Przepraszam, ale nie mogę pomóc."],
    "cs": ["Omlouvám se, ale s tím nemohu pomoci."],
    "nl": ["Het spijt me, maar daar kan ik niet mee helpen.", "Sorry, maar daar kan ik je niet mee helpen."],
    "sv": ["Jag är ledsen, men jag kan inte hjälpa till med det."],
    "da": ["Beklager, men det kan jeg ikke hjælpe med."],
    "fi": ["Olen pahoillani, mutta en voi auttaa siinä."],
    "hu": ["Sajnálom, de ebben nem tudok segíteni."],
    "ro": ["Îmi pare rău, dar nu te pot ajuta cu asta."],
    "el": ["Λυπάμαι, αλλά δεν μπορώ να βοηθήσω με αυτό."],
    "tr": ["Üzgünüm ama bu konuda yardımcı olamam."],
    "ar": ["أنا آسف، لكن لا أستطيع مساعدتك في ذلك.", "عذراً، لا يمكنني المساعدة في هذا."],
    "he": ["אני מצטער, אבל אני לא יכול לעזור בזה."],
    "fa": ["متأسفم، اما نمی‌توانم در این مورد کمک کنم."],
    "hi": ["मुझे खेद है, लेकिन मैं इसमें मदद नहीं कर सकता।"],
    "bn": ["দুঃখিত, কিন্তু আমি এতে সাহায্য করতে পারব না।"],
    "ja": [
        "申し訳ありませんが、お手伝いできません。",
        "すみませんが、それにはお答えできません。",
        "申し訳ございませんが、その件についてはお手伝いできません。",
    ],
    "ko": ["죄송하지만 도와드릴 수 없습니다.", "죄송하지만 그 질문에는 답할 수 없습니다."],
    "zh": ["抱歉，但我无法提供帮助。", "很抱歉，我不能协助你。", "对不起，但我不能回答。"],
    "vi": ["Xin lỗi, nhưng tôi không thể giúp việc đó."],
    "th": ["ขอโทษ แต่ฉันไม่สามารถช่วยได้"],
    "id": ["Maaf, tetapi saya tidak bisa membantu dengan itu."],
    "ms": ["Maaf, tetapi saya tidak boleh membantu."],
    "sw": ["Samahani, lakini siwezi kukusaidia."],
    "ta": ["மன்னிக்கவும், ஆனால் என்னால் உதவ முடியாது."],
    "te": ["క్షమించండి, కానీ నేను సహాయం చేయలేను."],
    "ur": ["معذرت، لیکن میں اس میں مدد نہیں کر سکتا۔"],
    "sr": ["Жао ми је, али не могу да помогнем."],
    "lt": ["Atsiprašau, bet negaliu padėti."],
    "ka": ["ბოდიში, მაგრამ ვერ დაგეხმარებით."],
}


@pytest.mark.parametrize(("code", "reply"), [(code, reply) for code, replies in DECLINED.items() for reply in replies])
def test_a_request_is_declined_with_an_apology_and_without(code: str, reply: str) -> None:
    assert declines(reply, code)
    if code == "en":
        assert not declines("I'm not sure, but it was 1890.", code)
        assert not declines(f"The miller said: “{reply}” He left in 1890.", code)


# "That's not something I can help with."
BEYOND = {
    "en": ["That's not something I can help with.", "This isn't something I can discuss."],
    "fr": ["Ce n'est pas quelque chose que je peux faire."],
    "de": ["Das ist nichts, wobei ich helfen kann."],
    "es": ["No es algo en lo que pueda ayudar."],
    "it": ["Non è qualcosa in cui posso aiutare."],
    "pt": ["Isso não é algo em que eu possa ajudar."],
    "nl": ["Dat is niet iets waar ik bij kan helpen."],
    "pl": ["To nie jest coś, w czym mogę pomóc."],
    "ru": ["Это не то, с чем я могу помочь."],
    "uk": ["Це не те, з чим я можу допомогти."],
    "cs": ["To není něco, s čím mohu pomoci."],
    "sv": ["Det är inte något jag kan hjälpa till med."],
    "da": ["Det er ikke noget, jeg kan hjælpe med."],
    "fi": ["Se ei ole asia, jossa voin auttaa."],
    "hu": ["Ez nem olyasmi, amiben segíteni tudok."],
    "ro": ["Nu este ceva cu care pot ajuta."],
    "el": ["Δεν είναι κάτι με το οποίο μπορώ να βοηθήσω."],
    "tr": ["Bu, yardımcı olabileceğim bir konu değil."],
    "ar": ["هذا ليس شيئًا يمكنني المساعدة فيه."],
    "he": ["זה לא משהו שאני יכול לעזור בו."],
    "fa": ["این چیزی نیست که بتوانم در آن کمک کنم."],
    "hi": ["यह ऐसी चीज़ नहीं है जिसमें मैं मदद कर सकूँ।"],
    "bn": ["এটা এমন কিছু নয় যাতে আমি সাহায্য করতে পারি।"],
    "ja": ["それは私がお手伝いできることではありません。"],
    "ko": ["그것은 제가 도와드릴 수 있는 일이 아닙니다."],
    "zh": ["这不是我能帮忙的事。", "这件事我帮不上忙。"],
    "vi": ["Đó không phải là điều tôi có thể giúp."],
    "th": ["นี่ไม่ใช่สิ่งที่ฉันช่วยได้"],
    "id": ["Itu bukan sesuatu yang bisa saya bantu."],
    "ms": ["Itu bukan sesuatu yang boleh saya bantu."],
    "sw": ["Hilo si jambo ninaloweza kusaidia."],
    "ta": ["அது நான் உதவக்கூடிய விஷயம் அல்ல."],
    "te": ["అది నేను సహాయం చేయగల విషయం కాదు."],
    "ur": ["یہ ایسی چیز نہیں جس میں میں مدد کر سکوں۔"],
    "sr": ["То није нешто са чим могу да помогнем.", "To nije nešto s čim mogu da pomognem."],
    "sl": ["To ni nekaj, pri čemer lahko pomagam."],
    "lt": ["Tai ne tai, kuo galiu padėti."],
    "ka": ["ეს არ არის ის, რაშიც შემიძლია დაგეხმაროთ."],
}


@pytest.mark.parametrize(("code", "reply"), [(code, reply) for code, replies in BEYOND.items() for reply in replies])
def test_what_is_beyond_the_model_is_declined(code: str, reply: str) -> None:
    assert declines(reply, code)


# A reply that offers more help, behind its answer or before it.
OFFERS = {
    "de": [
        "Es war 1890. Falls es noch etwas gibt, womit ich helfen kann, lass es mich wissen.",
        "1890. Wenn es noch etwas gibt, wobei ich helfen kann, sagen Sie Bescheid.",
        "Das ist etwas, wobei ich helfen kann. Es war 1890.",
    ],
    "cs": [
        "Bylo to v roce 1890. Pokud je ještě něco, s čím mohu pomoci, dejte vědět.",
        "1890. Dejte mi vědět, s čím mohu pomoci.",
        "To je něco, s čím mohu pomoci: 1890.",
    ],
    "da": [
        "Det var 1890. Sig til, hvis der er andet, jeg kan hjælpe med.",
        "1890. Hvis der er mere jeg kan hjælpe med, så spørg endelig.",
        "Ja, det er noget jeg kan hjælpe med. Svaret er 1890.",
        "Jeg kan hjælpe med det. Det var i 1890.",
    ],
    "fi": ["Se oli vuonna 1890. Jos on jotain muuta, jossa voin auttaa, kerro toki."],
    "hu": [
        "1890-ben volt. Ha van még valami, amiben segíthetek, szóljon.",
        "1890-ben. Ha bármi másban, amiben segíteni tudok, írjon.",
    ],
    "ka": ["ეს იყო 1890 წელს. თუ არის კიდევ რამე, რაშიც შემიძლია დაგეხმაროთ, მითხარით."],
    "lt": ["Tai buvo 1890 m. Jei yra dar kas nors, kuo galiu padėti, praneškite."],
    "pl": [
        "To był rok 1890. Jeśli jest coś jeszcze, w czym mogę pomóc, daj znać.",
        "1890. Daj znać, w czym mogę ci pomóc.",
    ],
    "ru": [
        "Это было в 1890 году. Если есть что-то ещё, с чем я могу помочь, дайте знать.",
        "В 1890 году. Скажите, в чём я могу помочь ещё.",
    ],
    "uk": ["Це було 1890 року. Якщо є ще щось, з чим я можу допомогти, дайте знати."],
    "sl": ["Bilo je leta 1890. Če je še kaj, pri čemer lahko pomagam, povejte."],
    "en": ["It was 1890. If there is anything else I can help with, let me know."],
}


@pytest.mark.parametrize(("code", "reply"), [(code, reply) for code, replies in OFFERS.items() for reply in replies])
def test_an_offer_of_help_declines_nothing(code: str, reply: str) -> None:
    assert not declines(reply, code)


@pytest.mark.parametrize("code", _known())
def test_an_apology_or_a_doubt_declines_only_where_no_answer_stands_behind_it(code: str) -> None:
    known = language(code)
    assert known is not None
    words, wrong = known.words, []
    answer = known.sentence.replace("{answer}", "1890")
    for word in words.refuses_if_alone:
        # Korean words are joined to what follows
        said = word.rstrip("~") + ("합니다" if word == "죄송" else "")
        replies = {said + ".": True, f"{said}. {answer}": False, f"{said}, {answer}": False, f"{said}. 1890.": False}
        replies[f"{said}. {words.refuses[0].rstrip('~')}."] = True
        for turn in words.turns:
            replies[f"{said}, {turn} {answer}"] = False
        wrong += [reply for reply, declined in replies.items() if declines(reply, code) is not declined]
        chosen = f"{said}. {known.sentence.replace('{answer}', 'D')}"
        if declines(chosen, code, OPTIONS) or extract_choice(chosen, 4, OPTIONS, code) != D:
            wrong.append(chosen)
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "reply", "refused"),
    [
        ("en", "Sorry for the confusion. It was 1890.", False),
        ("en", "Sorry, it was Madrid.", False),
        ("en", "My apologies, it was not 1890 but 1891.", False),
        ("en", "I'm sorry to say that it burned down in 1890.", False),
        ("en", "I'm not sure. Perhaps the miller built it.", False),
        ("en", "Sorry for the confusion.", True),
        ("en", "I'm sorry. The documents speak of other mills.", True),
        ("en", "I'm sorry, I have no access to records after 1890.", True),
        ("en", "I'm not sure. I don't know.", True),
        ("fr", "Désolé pour la confusion. C'était en 1890.", False),
        ("fr", "Désolé, c'était Lyon.", False),
        ("de", "Es tut mir leid für die Verwirrung. Es war 1890.", False),
        ("de", "Ich bin nicht sicher. Vielleicht war es der Müller.", False),
        ("ru", "Извините за путаницу. Это было в 1890 году.", False),
        ("ru", "Извините, это Казань.", False),
        ("zh", "抱歉造成混淆。是1890年。", False),
        ("zh", "对不起，我之前说错了。应该是1890年。", False),
        ("zh", "抱歉，是罗马。", False),
        ("ja", "混乱させて申し訳ありません。1890年でした。", False),
        ("ko", "혼란을 드려 죄송합니다. 1890년입니다.", False),
        ("ar", "أعتذر عن الالتباس. كان ذلك عام 1890.", False),
        ("hi", "भ्रम के लिए खेद है। वह 1890 था।", False),
        ("th", "ขออภัยในความสับสน คำตอบคือปี 1890", False),
    ],
)
def test_an_answer_behind_an_apology_is_none(code: str, reply: str, refused: bool) -> None:
    assert declines(reply, code) is refused
