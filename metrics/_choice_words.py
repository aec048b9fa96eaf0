"""Vocabulary of extract_choice: words that announce an answer, and option labels, language by language."""

from __future__ import annotations

import re
import unicodedata

# Words that announce an answer. A trailing "~" lets the word take suffixes (jawabannya, cavabı, 정답은). The 13
# languages of CORAL come first.
_MARKERS: dict[str, str] = {
    "en": "answer|answers|chosen option|selected option|correct option|correct choice|chosen answer|final choice",
    "ko": "정답~|최종 답~|답변~|답|답은|답이|정답률|선택~",
    "zh": "答案|正解|答|故选|故選|应选|應選|选择|選擇|选项|選項|选|選",
    "ar": "الإجابة|الاجابة|إجابة|اجابة|إجابتي|الجواب|جواب|الخيار الصحيح|الاختيار",
    "fa": "پاسخ|جواب|گزینه صحیح|گزینه درست",
    "es": "respuesta|opción correcta|opcion correcta|opción elegida",
    "id": "jawab~|pilihan yang benar",
    "su": "waler~|jawab~",
    "el": "απάντηση|απαντηση|απάντησή|σωστή επιλογή",
    "az": "cavab~|düzgün variant",
    "ha": "amsa~",
    "am": "መልስ~|መልሱ",
    "as": "উত্তৰ~|উত্তর~",
    "de": "antwort~|lösung",
    "fr": "réponse|reponse",
    "it": "risposta",
    "pt": "resposta",
    "nl": "antwoord",
    "ru": "ответ",
    "uk": "відповідь",
    "pl": "odpowiedź",
    "fi": "vastau~",
    "tr": "cevap|cevab~|yanıt|doğru seçenek",
    "vi": "đáp án|trả lời|câu trả lời",
    "ja": "答え|解答|回答",
    "th": "คำตอบ|เฉลย",
    "hi": "उत्तर|जवाब",
    "he": "תשובה|התשובה",
    "ur": "جواب",
    "sw": "jibu",
    "ms": "jawapan",
}

# Words that may occur between the announcement and the label: "is", "the", "option", "correct", ...
_FILLERS = """
is are was the would should be most likely correctly correct right final best my option choice letter number
es la el los opción opcion correcta correcto letra alternativa
adalah ialah yaitu nyaéta nyaeta téh teh yang benar opsi pilihan huruf
هي هو الصحيحة الصحيح الصحيحه النهائية النهائي الخيار الحرف حرف رقم
صحیح درست نهایی گزینه گزینهٔ
είναι η το ή σωστή τελική επιλογή
düzgün doğru variant variantı seçim hərf
ita ce shine shi ne daidai zaɓi
ትክክለኛው ትክክለኛ ምርጫ ነው
হ'ল হল হৈছে শুদ্ধ সঠিক বিকল্প
ist lautet die der das richtige est bonne correcte è corretta é correta правильный вариант là सही विकल्प है היא הנכונה
"""
_FILLERS_UNSPACED = """
最终 正确 正確 应该 應該 应 應 就 是 为 為 选 選 选项 選項 选择 選擇 项 項 は が 선택지 선지 보기 번호 คือ ข้อ ตัวเลือก
"""

# Labels other than Latin letters, in order. Omitted if two orders compete: the third letter of the Arabic alphabet
# (abjad or modern), Cyrillic В (third, or a Latin B in disguise).
_LABEL_ROWS = """
가 나 다 라 마 바 사 아|ㄱ ㄴ ㄷ ㄹ ㅁ|甲 乙 丙 丁 戊|ア イ ウ エ オ|ก ข ค ง|א ב ג ד ה|أ ب ج د ه|ا|الف
ሀ ለ ሐ መ ሠ|ক খ গ ঘ ঙ|क ख ग घ ङ|Α Β Γ Δ Ε|α β γ δ ε|А Б - Г Д
"""


def _nfkc(text: str) -> str:
    # responses are compared in NFKC, which decomposes some Thai and Bengali letters
    return unicodedata.normalize("NFKC", text)


LOCAL_LABELS: dict[str, int] = {
    label: index
    for row in _nfkc(_LABEL_ROWS).replace("\n", "|").split("|")
    for index, label in enumerate(row.split())
    if label != "-"
}

# Words before a label that is being ruled out.
NEGATIONS = re.compile(
    r"(?:\bnot|n['’ ]t|\bno|\brather than|\binstead of|\bnicht|\bpas|\bnon|\bnunca|\bbukan|\bsanés|\bdeyil|不是|非|"
    r"\bليس|\bليست|\bنه|\bόχι|아니라)[\s\W]{0,4}$",
    re.IGNORECASE,
)
# Words between two labels that are both proposed.
_CONNECTIVES = (
    r"/|&|\+|\band\b|\bor\b|\by\b|\bo\b|\bu\b|\bund\b|\boder\b|\bet\b|\bou\b|\bdan\b|\batau\b|\bvə\b|\bya\b|\bko\b|\bda\b|"
    r"και|\bή\b|和|或|与|與|及|또는|와|과|や|または|\bو\b|\bأو\b|\bیا\b|እና|ወይም|আৰু|বা"
)
JOINED = re.compile(rf"^[\s)\].*_]*(?:,|;|、|،|{_CONNECTIVES})[\s(\[*_]*", re.IGNORECASE)
JOINED_BEFORE = re.compile(rf"(?:{_CONNECTIVES})[\s(\[*_]*$", re.IGNORECASE)


def _marker_pattern() -> re.Pattern[str]:
    words = {_nfkc(word) for row in _MARKERS.values() for word in row.split("|")}
    parts = []
    for word in sorted(words, key=len, reverse=True):
        stem = re.escape(word.rstrip("~"))
        unspaced = re.match(r"[぀-ヿ㐀-鿿฀-๿]", word) is not None
        if unspaced:
            parts.append(stem)
        elif word.endswith("~"):
            parts.append(rf"(?<!\w){stem}\w*")
        else:
            # letters of another script may follow directly ("답B"), letters of the word's own may not
            parts.append(rf"(?<!\w){stem}(?![^\W\d_A-H])" if ord(word[0]) > 0x2FF else rf"(?<!\w){stem}(?!\w)")
    return re.compile("|".join(parts), re.IGNORECASE)


def _filler_pattern() -> re.Pattern[str]:
    spaced, unspaced = (
        "|".join(re.escape(word) for word in sorted(set(_nfkc(words).split()), key=len, reverse=True))
        for words in (_FILLERS, _FILLERS_UNSPACED)
    )
    return re.compile(rf"(?:(?:{spaced})(?!\w)|(?:{unspaced}))", re.IGNORECASE)


MARKER = _marker_pattern()
FILLER = _filler_pattern()
