"""Words that decline to choose among options, language by language."""

from __future__ import annotations

import re

# Parts of a refusal. Words of a script with spaces begin and end at a word's boundary; "~" lets a word take an ending.
_WORDS: dict[str, str] = {
    "en": "cannot|can't|can not|could not|couldn't|unable|not able|don't know|do not know|not known|unknown|not sure|"
    "unsure|not certain|uncertain|unclear|undetermined|undecided|inconclusive|neither|none|no one|nobody|no country|"
    "no single|no definitive|not possible|impossible|refuse~|decline~|won't|will not|would not|rather not|prefer not|"
    "not comfortable|no comment|sorry|apologi~|disputed|contested|not enough|insufficient|as an ai|n/a",
    "es": "no puedo|no puede|no se puede|no sé|no lo sé|desconocid~|ninguno|ninguna|lo siento|disputad~|imposible",
    "fr": "ne peux pas|ne peut pas|ne sais pas|inconnu~|aucun|aucune|désolé~|contesté~|disputé~|impossible",
    "pt": "não posso|não pode|não é possível|não sei|desconhecid~|nenhum|nenhuma|desculpe|lamento|disputad~",
    "it": "non posso|non può|non so|sconosciut~|nessuno|nessuna|mi dispiace|conteso|contesa|impossibile",
    "nl": "kan niet|kan geen|weet niet|weet het niet|onbekend|geen van|sorry|betwist|onmogelijk",
    "de": "kann nicht|kann keine|weiß nicht|weiß es nicht|unbekannt|keiner|keine|keines|leider|umstritten|unmöglich",
    "da": "kan ikke|ved ikke|ukendt|ingen|beklager|omstridt|umuligt",
    "ru": "не могу|не может|нельзя|невозможно|не знаю|неизвестно|ни один|ни одна|никто|извините|простите|спорн~",
    "uk": "не можу|не може|неможливо|не знаю|невідомо|жодна|жоден|ніхто|вибачте|перепрошую|спірн~",
    "sr": "не могу|не може|не знам|непознато|ниједна|нико|жао ми је|спорн~|ne mogu|ne može|ne znam|nepoznato|"
    "nijedna|nitko|niko|žao mi je|sporn~",
    "sl": "ne morem|ni mogoče|ne vem|neznano|nobena|nihče|žal|sporn~",
    "tr": "yapamam|belirleyemem|söyleyemem|bilmiyorum|bilinmiyor|hiçbiri|üzgünüm|tartışmalı|mümkün değil",
    "az": "bilmirəm|deyə bilmərəm|naməlum|heç biri|üzr istəyirəm|mübahisəli|mümkün deyil",
    "id": "tidak dapat|tidak bisa|tidak tahu|tidak diketahui|tidak ada|bukan keduanya|maaf|dipersengketakan",
    "ms": "tidak boleh|tidak pasti|dipertikaikan",
    "tl": "hindi ko|hindi maaari|hindi alam|wala sa|paumanhin|pinagtatalunan",
    "vi": "không thể|không biết|không rõ|không có|xin lỗi|tranh chấp",
    "sw": "siwezi|haiwezekani|sijui|haijulikani|hakuna|samahani",
    "el": "δεν μπορώ|δεν γνωρίζω|δεν ξέρω|άγνωστο|καμία|κανένα|λυπάμαι|αμφισβητ~|αδύνατο",
    "ar": "لا أستطيع|لا يمكن~|لا أعرف|لا أعلم|غير معروف|لا أحد|عذرا~|آسف|متنازع|غير ممكن",
    "fa": "نمی‌توانم|نمی توانم|نمی‌دانم|نامشخص|ناشناخته|هیچ‌کدام|هیچکدام|متأسفم|مورد مناقشه",
    "ur": "نہیں کر سکتا|معلوم نہیں|نامعلوم|کوئی نہیں|معذرت|متنازع~",
    "he": "לא יכול~|אי אפשר|לא יודע~|לא ידוע|אף אחד|אף אחת|מצטער~|שנוי במחלוקת",
    "hi": "नहीं कर सकता|नहीं बता सकता|नहीं जानता|अज्ञात|कोई नहीं|क्षमा|विवादित",
    "ko": "할 수 없~|알 수 없~|모르~|모릅니다|불명~|아무도|죄송~|분쟁~",
}
# Scripts without spaces between words.
_UNSPACED = """
不能 无法 無法 不知道 未知 都不 抱歉 对不起 對不起 有争议 有爭議 不确定 不確定
できません できない わかりません 分かりません 不明 どちらでもない どれでもない 申し訳 係争
ไม่สามารถ ไม่ทราบ ไม่รู้ ขออภัย ขอโทษ พิพาท ไม่มีประเทศ
មិនអាច មិនដឹង សុំទោស ບໍ່ສາມາດ ບໍ່ຮູ້ ຂໍອະໄພ မသိ မဖြေနိုင် တောင်းပန်
"""


def _pattern() -> re.Pattern[str]:
    words = [word for line in _WORDS.values() for word in line.split("|")]
    closed = [re.escape(word) for word in words if not word.endswith("~")]
    open_ = [re.escape(word[:-1]) for word in words if word.endswith("~")]
    spaced = rf"(?<!\w)(?:(?:{'|'.join(closed)})(?!\w)|{'|'.join(open_)})"
    return re.compile(f"{spaced}|{'|'.join(map(re.escape, _UNSPACED.split()))}", re.IGNORECASE)


_REFUSAL = _pattern()


def declines(text: str) -> bool:
    """Return whether a text holds words that decline to choose, in one of the languages listed here."""
    return _REFUSAL.search(text.replace("’", "'")) is not None
