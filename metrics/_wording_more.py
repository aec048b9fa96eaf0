"""Words around an answer in languages other than those of CORAL."""

from __future__ import annotations

from collections.abc import Mapping

from mrag_eval.metrics._wording import Wording

MORE: Mapping[str, Wording] = {
    "ja": Wording(
        answer="答え|解答|回答|正解|正しいのは|選択",
        filler="は|が|選択肢|最も|適切な|答え|正解",
        option="選択肢|選択肢の|オプション",
        option_after="番|の選択肢",
        particle="番が|番は|番|は|が|も|の方が|のほうが|を",
        right="正解|正しい|正答|が答え|答えです|を選び|を選択|適切",
        wrong="ではな|ではあ|じゃな|でな|間違|誤り|不正解|不適切|違い|違う|正しくな|ではござ|より|正しくあ|答えでは|答えじゃな|とは言え|とはいえ|とは限|選びませ|選ばな|選択しませ|選択しな|除外|"
        "誤答",
        corrects="いや|いえ|失礼|訂正|すみません|やっぱり|もとい|ではなく|じゃなくて|いいえ",
        joins="または|か|と|や|もしくは|あるいは|及び|および|も|並びに",
        refuses="できません|できない|わかりません|分かりません|不明|どちらでもない|どれでもない|申し訳|係争|"
        "がありません|情報はありません|答えはありません|正解はありません|選択肢はありません|分からない|わからない|お答えでき|存じません|断定でき|いずれでもない|書かれていませ|書かれていな|記載されていませ|記載されていな|述べられていませ|述べられていな|言及されていませ|"
        "言及されていな|かねます",
        yes="はい|ええ|そうです|はいそうです|正しいです|その通りです|うん",
        no="いいえ|いや|違います|いいえ違います|そうではありません|ちがいます|正しくありません|いえ",
        letters="ア イ ウ エ オ",
    ),
    "hi": Wording(
        answer="उत्तर|जवाब|सही विकल्प|मैं चुनूँगा|मेरा चुनाव",
        filler="सही|विकल्प|है|उत्तर|जवाब|यह|ही|मेरा|अंतिम",
        option="विकल्प|उत्तर|ऑप्शन|क्रमांक",
        right="सही है|सही उत्तर~|सही जवाब~|सही विकल्प~|है|ही सही है|उचित है|चुनता हूँ|चुनती हूँ",
        wrong="नहीं|गलत~|ग़लत~|सही नहीं|के बजाय|की बजाय|ना होकर",
        not_="न|ना|न तो|न ही|बल्कि नहीं",
        corrects="नहीं|माफ़ कीजिए|माफ कीजिए|क्षमा करें|मेरा मतलब|बल्कि|जी नहीं",
        joins="या|और|अथवा|तथा|एवं|व|या फिर|न ही",
        refuses="नहीं कर सकता|नहीं बता सकता|नहीं जानता|अज्ञात|कोई नहीं|क्षमा|विवादित|नहीं पता|पता नहीं|मालूम नहीं|नहीं दे सकता|"
        "नहीं दे सकती|नहीं जानती|जानकारी नहीं|खेद है|नहीं कर सकती|संभव नहीं|कोई भी नहीं|सुनिश्चित नहीं|उल्लेख नहीं|ज़िक्र नहीं|"
        "जिक्र नहीं|उत्तर नहीं मिलता|जवाब नहीं मिलता|जानकारी नहीं मिलती|उत्तर नहीं मिला|जवाब नहीं मिला|नहीं बताया|यकीन नहीं|"
        "यक़ीन नहीं",
        yes="हाँ|हां|जी हाँ|जी हां|जी|सही|बिल्कुल|सच",
        no="नहीं|जी नहीं|ना|गलत|ग़लत|झूठ|बिल्कुल नहीं",
        letters="क ख ग घ ङ|अ ब स द",
    ),
    "bn": Wording(
        answer="উত্তর~|সঠিক বিকল্প~|আমি বেছে নিচ্ছি",
        filler="হলো|হল|হচ্ছে|সঠিক|বিকল্প|শুদ্ধ|অপশন",
        option="বিকল্প|অপশন|উত্তর|নম্বর",
        particle="টি|টা|নং|নম্বর",
        right="সঠিক~|সঠিক উত্তর~|হবে|ঠিক",
        wrong="নয়|ভুল~|সঠিক নয়|না হয়ে|না|এর বদলে|এর পরিবর্তে|নাই|বেছে নিচ্ছি না|বেছে নেব না|হতে পারে না|বাদ",
        corrects="না|দুঃখিত|মানে|বরং|ভুল হয়েছে",
        joins="অথবা|বা|ও|এবং|কিংবা|আর",
        refuses="জানি না|দুঃখিত|পারছি না|পারব না|অজানা|কোনোটিই|কোনোটাই|নিশ্চিত নই|তথ্য নেই|জানা নেই|উত্তর নেই|সম্ভব নয়|"
        "উল্লেখ নেই|উল্লেখ করা হয়নি|উল্লেখ করা নেই|পাওয়া যায় না|পাওয়া যায়নি",
        yes="হ্যাঁ|হাঁ|জি|জ্বি|ঠিক|সঠিক|অবশ্যই",
        no="না|জি না|নয়|ভুল|মিথ্যা|একদম না",
        letters="ক খ গ ঘ ঙ",
    ),
    "tr": Wording(
        answer="cevap|cevab~|yanıt~|doğru seçenek|doğrusu|doğru olan|seçiyorum|doğru şık",
        filler="doğru|şık|seçenek|harf|benim|kesinlikle|ise",
        option="şık|seçenek|cevap|yanıt",
        option_after="şık~|şıkk~|seçene~",
        particle="'dir|'dır|'tir|'yi|'yı|'nin",
        right="doğru~|doğru cevap~|doğru yanıt~|doğru seçenek~|seçiyorum",
        wrong="değil~|yanlış~|doğru değil~|hatalı~|yerine|seçmiyorum|seçmezdim|olamaz|elen~",
        not_="ne|ne de",
        corrects="hayır|pardon|yok|daha doğrusu|yani|özür dilerim|düzeltiyorum|yoksa",
        joins="veya|ve|ya da|yahut|hem|ile|hem de|veyahut",
        refuses="yapamam|belirleyemem|söyleyemem|bilmiyorum|bilinmiyor|hiçbiri|üzgünüm|tartışmalı|mümkün değil|"
        "yanıtlayam~|cevaplayam~|emin değilim|bilgim yok|yeterli bilgi|bilemiyorum|hiçbir|bahsedilmiyor|"
        "bahsedilmemiş~|belirtilmemiş~|belirtilmiyor|yanıtlamıyor|cevaplamıyor|cevap vermiyor|yanıt vermiyor|"
        "yer almıyor|bahsetmiyor",
        yes="evet|doğru|elbette|tabii|öyle",
        no="hayır|değil|yanlış|yok|öyle değil",
    ),
    "pl": Wording(
        answer="odpowiedź|odpowiedzią jest|prawidłowa to|poprawna to|właściwa to|wybieram|prawidłowa jest",
        filler="to|jest|prawidłowa|poprawna|właściwa|opcja|odpowiedź|moja|ostateczna",
        option="odpowiedź|opcja|wariant|opcję",
        right="jest prawidłow~|jest poprawn~|jest właściw~|jest dobra|to prawidłowa~|to poprawna~",
        wrong="jest błędn~|jest niepoprawn~|jest nieprawidłow~|nie jest|jest zł~|jest fałszyw~|to zła~|odpada|"
        "odpadają|nie może być",
        not_="nie|a nie|zamiast|ani|nie może być|wykluczam",
        corrects="nie|przepraszam|a raczej|to znaczy|czekaj|znaczy",
        joins="lub|albo|i|oraz|jak i|czy|bądź|a także|ani",
        refuses="nie wiem|nie mogę|nie można|nie da się|nie jestem pewn~|przepraszam|żadna|żaden|nieznan~|"
        "brak informacji|nie potrafię|niestety|nie umiem|nie wspomina|nie odpowiada na|nie podaje|"
        "nie zawiera informacji|nie zawiera odpowiedzi|nie podano|nie wspomniano|nie określa|nie jestem pewien|"
        "nie wynika",
        yes="tak|owszem|prawda|zgadza się|oczywiście",
        no="nie|nieprawda|skąd|fałsz",
    ),
    "pt": Wording(
        answer="resposta|correta é|certa é|correto é|escolho|escolheria|alternativa correta|opção correta|fico com",
        filler="é|alternativa|opção|correta|correto|certa|letra|final|minha|seria|resposta",
        option="alternativa|opção|letra|item|resposta",
        right="está corret~|está cert~|é a corret~|é a cert~|é corret~|é a resposta|é a alternativa correta|"
        "é a opção correta",
        wrong="está errad~|está incorret~|é incorret~|é fals~|não é corret~|não é a|não está|estão errad~|"
        "não pode ser|não é",
        not_="não|não é|e não|em vez de|nem|ao invés de|nunca|não pode ser|não acho que seja|descarto|eliminando",
        corrects="não|aliás|ou melhor|desculpe|quer dizer|digo|perdão|espera",
        joins="e|ou|quanto|como|ou então|ou talvez|e também|nem",
        refuses="não posso|não pode|não é possível|não sei|desconhecid~|nenhum|nenhuma|desculpe|lamento|disputad~|"
        "não tenho|não há|não consigo|não se sabe|sinto muito|infelizmente|impossível|não informa|não menciona|"
        "não responde à pergunta|não responde a esta|não responde a essa|não especifica|não indica|não contém info~|"
        "não contém a resposta|não fornece info~|não fornece a resposta|não é mencionad~|não foi mencionad~|"
        "não consta",
        yes="sim|é verdade|correto|certo|claro|com certeza|verdadeiro",
        no="não|falso|incorreto|errado|de jeito nenhum",
    ),
    "th": Wording(
        answer="คำตอบ|เฉลย|ตอบ|เลือก|ที่ถูกคือ|ที่ถูกต้องคือ",
        filler="คือ|ข้อ|ตัวเลือก|ที่ถูกต้อง|ที่ถูก|ที่ดีที่สุด|เป็น|ว่า|ควรเป็น|สุดท้าย|น่าจะเป็น",
        option="ข้อ|ตัวเลือก|ตัวเลือกที่|ข้อที่",
        right="ถูกต้อง|ถูก|เป็นคำตอบ|คือคำตอบ",
        wrong="ไม่ถูก|ผิด|ไม่ใช่คำตอบ",
        not_="ไม่ใช่|มิใช่|ไม่ได้เป็น|แทนที่จะเป็น|ยกเว้น|ไม่ใช่ข้อ|ไม่ใช่ทั้ง|ไม่เลือก|ไม่ตอบ|ไม่ควรเลือก|ไม่น่าจะเป็น|ไม่น่าจะใช่",
        corrects="ไม่ใช่|ขอโทษ|ไม่สิ|ขออภัย|เอ๊ะ|ไม่",
        joins="หรือ|และ|กับ|หรืออาจเป็น|รวมทั้ง",
        refuses="ไม่สามารถ|ไม่ทราบ|ไม่รู้|ขออภัย|ขอโทษ|พิพาท|ไม่มีประเทศ|ไม่แน่ใจ|ไม่มีคำตอบ|ไม่มีข้อใด|ไม่มีข้อมูล|ข้อมูลไม่เพียงพอ|"
        "ไม่ได้กล่าวถึง|ไม่ได้ระบุ|ไม่ได้บอก|ไม่ได้ตอบ|ไม่ปรากฏ",
        yes="ใช่|ใช่แล้ว|ถูกต้อง|ถูก|ใช่ครับ|ใช่ค่ะ|จริง|มี|ได้|ใช่แล้วครับ|ใช่แล้วค่ะ|ครับ|ค่ะ",
        no="ไม่ใช่|ไม่|เปล่า|ไม่ใช่ครับ|ไม่ใช่ค่ะ|ไม่ถูกต้อง|ผิด|ไม่จริง|ไม่มี|ไม่ครับ|ไม่ค่ะ|เปล่าครับ|เปล่าค่ะ",
        letters="ก ข ค ง",
    ),
    "ru": Wording(
        answer="ответ|правильный вариант|верный вариант|выбираю|правильно|верно|я бы выбрал|я бы выбрала",
        filler="правильный|верный|вариант|это|будет|буква|пункт|ответ|мой|окончательный|под буквой",
        option="вариант|пункт|ответ|буква|вариантом",
        right="верный|верно|правильн~|верен|верна|является правильн~|правилен|подходит",
        wrong="неверн~|неправильн~|не подходит|ошибоч~|не является|неверен|не верен|не верно|исключается|не может быть",
        not_="не|а не|вместо|ни|кроме|и не|не выбрал|не выбрала|не выбрал бы|не может быть|исключаю",
        corrects="нет|вернее|точнее|извините|то есть|простите|хотя нет|поправка|ой",
        joins="или|и|либо|а также|или же|или, возможно|ни",
        refuses="не могу|не может|нельзя|невозможно|не знаю|неизвестно|ни один|ни одна|никто|извините|простите|"
        "спорн~|к сожалению|недостаточно|затрудняюсь|не уверен~|нет правильного|не располагаю|нет данных|"
        "не говорится|не упомина~|не упомянут~|не отвечает на|не указан~|не содержит ответа|не содержит информации|"
        "не содержит сведений|нет информации|нет сведений",
        yes="да|верно|правда|конечно|правильно|именно",
        no="нет|неверно|неправда|неправильно|не так|отнюдь",
        letters="А Б - Г Д",
    ),
    "he": Wording(
        answer="תשובה|התשובה|התשובה הנכונה|הנכונה היא|הנכון הוא|אני בוחר|אני בוחרת|אבחר",
        filler="היא|הנכונה|הוא|אפשרות|האפשרות|האות|הסופית|שלי|תשובה|באפשרות",
        option="אפשרות|האפשרות|תשובה|סעיף|באפשרות",
        right="נכונה|היא הנכונה|היא התשובה|נכון|היא התשובה הנכונה|הוא הנכון",
        wrong="שגויה|אינה נכונה|לא נכונה|אינה התשובה|לא נכון|מוטעית|שגוי|אינו נכון|היא לא|הוא לא|לא יכול~",
        not_="לא|ולא|במקום|אינה|אינו|זה לא|איננה|לא בוחר|לא בוחרת|לא אבחר|לא יכול להיות|לא יכולה להיות|לפסול את",
        corrects="לא|סליחה|בעצם|כלומר|אופס|רגע|התכוונתי",
        joins="או|וגם|גם|ו|או אולי",
        refuses="לא יכול~|אי אפשר|לא יודע~|לא ידוע|אף אחד|אף אחת|מצטער~|שנוי במחלוקת|איני יכול~|אין לי|אין תשובה|"
        "איני יודע~|אין מספיק|לא בטוח~|אינני|לא ניתן|אינו מציין|לא מציין|לא צוין|לא מוזכר|אינו עונה על|לא עונה על|"
        "אינו מזכיר|לא מזכיר",
        yes="כן|נכון|אמת|בהחלט|כמובן",
        no="לא|שגוי|לא נכון|ממש לא",
        letters="א ב ג ד ה",
    ),
    "vi": Wording(
        answer="đáp án|trả lời|câu trả lời|chọn|tôi chọn|phương án đúng",
        filler="là|đúng|chính xác|phương án|đáp án|của|tôi|phải|câu|cuối cùng",
        option="phương án|đáp án|lựa chọn|câu|ý",
        right="đúng|là đáp án|là đúng|là câu trả lời|chính xác|là phương án đúng|là chính xác",
        wrong="sai|là sai|không đúng|không phải đáp án|không phải là đáp án|đều sai|không chính xác|không thể|bị loại",
        not_="không phải|không phải là|chứ không phải|thay vì|không|chẳng phải|trừ|không thể là|loại bỏ|loại trừ",
        corrects="không|à không|xin lỗi|nhầm|ý tôi là|khoan|à",
        joins="hoặc|và|hay|cùng với|hoặc là|hoặc có thể là",
        refuses="không thể|không biết|không rõ|không có|xin lỗi|tranh chấp|không chắc|chưa rõ|không đủ|rất tiếc|"
        "chưa biết|không đề cập|không được đề cập|không nhắc|không trả lời câu hỏi|không trả lời được|không nêu|"
        "không cung cấp thông tin|không cho biết",
        yes="có|đúng|đúng vậy|vâng|phải|dạ|đúng thế|ừ",
        no="không|không phải|sai|không đúng|chưa",
        unsettled="có thể|có lẽ|chưa biết|không chắc",
    ),
    "de": Wording(
        answer="antwort~|lösung|richtig ist|korrekt ist|ich wähle|ich entscheide mich für|ich nehme",
        filler="ist|lautet|die|der|das|richtige|option|antwort|möglichkeit|wohl|somit|also|meine|korrekte|auf",
        option="option|antwort|möglichkeit|variante|buchstabe",
        right="ist richtig|ist korrekt|ist die richtige~|ist die antwort|stimmt|ist die korrekte",
        wrong="ist falsch|ist nicht|stimmt nicht|sind falsch|ist inkorrekt|sind nicht|scheidet aus|trifft nicht zu|"
        "treffen nicht zu|kann es nicht|passt nicht|ist ausgeschlossen|scheiden aus",
        not_="nicht|statt|anstatt|und nicht|weder|noch|kein|keine|außer",
        corrects="nein|moment|vielmehr|besser gesagt|entschuldigung|ich meine|ich meinte|halt|pardon|doch",
        joins="und|oder|sowie|als auch|oder vielleicht|oder auch|bzw",
        refuses="kann nicht|kann keine|weiß nicht|weiß es nicht|unbekannt|keiner|keine|keines|leider|umstritten|"
        "unmöglich|nicht sicher|nicht beantworten|unklar|nicht genug|weiß ich nicht|nicht hervor|nicht erwähnt|"
        "nicht genannt|nicht angegeben|steht nicht im|steht nicht in",
        yes="ja|jawohl|stimmt|richtig|genau|korrekt|natürlich",
        no="nein|nee|falsch|stimmt nicht|keineswegs",
    ),
    "fr": Wording(
        answer="réponse|reponse|je choisis|je choisirais|correcte est|bonne est|j'opte pour|il s'agit de|c'est",
        filler="est|la|le|les|bonne|correcte|option|lettre|l'option|finale|ma|réponse|c'est|serait|proposition",
        option="option|l'option|réponse|lettre|proposition|choix",
        right="est correct~|est la bonne|est juste|est la réponse|est la correcte|est exacte|convient",
        wrong="est fauss~|est faux|est incorrect~|n'est pas|sont fauss~|ne convient pas|est erroné~|ne sont pas|"
        "est exclu~|est à exclure|ne peut pas",
        not_="pas|non|et non|n'est pas|plutôt que|au lieu de|ni|sauf|et pas|ce n'est pas|pas être|"
        "ne pense pas que ce soit|j'élimine|j'exclus",
        corrects="non|pardon|plutôt|je veux dire|enfin|désolé|attendez|ou plutôt|en fait",
        joins="et|ou|ou bien|ainsi que|ou peut-être|voire|comme|ni",
        refuses="ne peux pas|ne peut pas|ne sais pas|inconnu~|aucun|aucune|désolé~|contesté~|disputé~|impossible|"
        "pas certain~|pas sûr~|n'ai pas|pas assez|n'y a pas|ignore|insuffisant~|ne le précise pas|ne précise pas|"
        "ne mentionne pas|ne le mentionne pas|n'est pas mentionné~|n'est pas précisé~|ne permet pas de répondre|"
        "ne permet pas de déterminer|ne permet pas de savoir|ne permettent pas de répondre|"
        "ne permettent pas de déterminer|n'indique pas|ne répond pas|ne contient pas d'info~|"
        "ne contient pas la réponse|ne fournit pas d'info~|ne fournit pas la réponse",
        yes="oui|exact|vrai|si|bien sûr|c'est vrai|effectivement|tout à fait",
        no="non|faux|pas du tout|c'est faux|ce n'est pas le cas",
    ),
    "it": Wording(
        answer="risposta|corretta è|giusta è|scelgo|sceglierei|quella giusta è|quella corretta è|opto per",
        filler="è|la|il|lo|corretta|giusta|opzione|l'opzione|lettera|finale|mia|quella|sarebbe|risposta",
        option="opzione|l'opzione|risposta|lettera|alternativa",
        right="è corrett~|è giust~|è la risposta|è quella giusta|è quella corretta|è esatt~|è la corretta",
        wrong="è sbagliat~|è errat~|è fals~|non è corrett~|non è giust~|non è la|è scorrett~|sono sbagliat~|"
        "è da escludere|non può essere",
        not_="non|non è|e non|invece di|né|anziché|tranne|non può essere|non credo che sia|escludo|escludendo",
        corrects="no|anzi|scusa|scusi|cioè|volevo dire|aspetta|piuttosto",
        joins="e|o|oppure|che|o forse|ed|come|né",
        refuses="non posso|non può|non so|non lo so|sconosciut~|nessuno|nessuna|mi dispiace|conteso|contesa|"
        "impossibile|non sono sicur~|non ho|non è possibile|non ci sono|spiacente|non lo specifica|non specifica|"
        "non menziona|non lo menziona|non risponde|non indica|non contiene info~|non contiene la risposta|"
        "non è menzionat~|non viene menzionat~|non è specificat~|non fornisce info~|non fornisce la risposta",
        yes="sì|si|esatto|vero|certo|è vero|corretto",
        no="no|falso|sbagliato|affatto|non è così",
    ),
    "nl": Wording(
        answer="antwoord|juist is|ik kies|ik zou kiezen|juiste is",
        filler="is|het|de|juiste|goede|optie|antwoord|voor|mijn|dus|correcte|letter",
        option="optie|antwoord|letter|keuze",
        right="is juist|is goed|is correct|is het juiste|is het antwoord|klopt|is het goede",
        wrong="is fout|is onjuist|is niet|klopt niet|is verkeerd|zijn fout|zijn niet|valt af|vallen af|kan niet|"
        "kan het niet",
        not_="niet|en niet|in plaats van|noch|geen|behalve",
        corrects="nee|sorry|pardon|of liever|ik bedoel|wacht",
        joins="en|of|als|of misschien|dan wel|evenals|ofwel|hetzij",
        refuses="kan niet|kan geen|weet niet|weet het niet|onbekend|geen van|sorry|betwist|onmogelijk|"
        "niet beantwoorden|niet zeker|helaas|geen idee|onvoldoende|weet ik niet|staat niet in|staat er niet in|"
        "niet vermeld|niet genoemd|geen antwoord|geen informatie",
        yes="ja|klopt|juist|inderdaad|zeker",
        no="nee|neen|onjuist|klopt niet|fout",
    ),
    "sw": Wording(
        answer="jibu|nachagua|ninachagua|jawabu",
        filler="ni|sahihi|chaguo|jibu|langu|la|herufi",
        option="chaguo|jibu|herufi",
        right="ni sahihi|ndiyo jibu|ni jibu|ndilo jibu|ndilo sahihi|ndiyo sahihi",
        wrong="si sahihi|sio sahihi|si jibu|sio jibu|ni makosa|si kweli|siyo sahihi",
        not_="si|sio|siyo|wala|badala ya|na si|sichagui|singechagua|sitachagua|haiwezi kuwa|haliwezi kuwa",
        corrects="hapana|samahani|nilimaanisha|yaani|pole",
        joins="au|na|ama|wala|au labda|na pia",
        refuses="siwezi|haiwezekani|sijui|haijulikani|hakuna|samahani|sina uhakika|sina|hakitaji|haitaji|haijatajwa|"
        "hakijataja|haijibu|hakijibu|hayajibu|hayataji|haielezi",
        yes="ndiyo|ndio|naam|kweli|sahihi",
        no="hapana|la|sivyo|si kweli|siyo",
    ),
    "ur": Wording(
        answer="جواب|صحیح انتخاب|درست انتخاب",
        filler="صحیح|درست|ہے|آپشن|میرا",
        option="آپشن|جواب|انتخاب",
        right="درست ہے|صحیح ہے|صحیح جواب~|درست جواب~|ہے|ہی درست~",
        wrong="نہیں|غلط~|کے بجائے|درست نہیں|صحیح نہیں",
        not_="نہ|نہ ہی|نہ تو",
        corrects="نہیں|معاف کیجیے|معذرت|یعنی|بلکہ",
        joins="یا|اور|یا پھر|نیز|نہ ہی",
        refuses="نہیں کر سکتا|معلوم نہیں|نامعلوم|کوئی نہیں|معذرت|متنازع~|نہیں دے سکتا|پتا نہیں|نہیں جانتا|یقین نہیں|"
        "پتہ نہیں|معلومات نہیں|کوئی بھی نہیں|ذکر نہیں|جواب نہیں دیتا|جواب نہیں ملتا|نہیں بتایا",
        yes="جی ہاں|ہاں|جی|درست|صحیح|بالکل",
        no="نہیں|جی نہیں|غلط|ہرگز نہیں",
        letters="الف ب ج د",
    ),
    "uk": Wording(
        answer="відповідь|правильний варіант|обираю|вибираю|правильно",
        filler="правильна|вірна|варіант|це|буде|літера|відповідь|моя",
        option="варіант|відповідь|пункт|літера",
        right="правильн~|вірн~|є правильн~|є вірн~",
        wrong="неправильн~|невірн~|не є|не підходить|хибн~|не може бути",
        not_="не|а не|замість|ні|крім|не може бути|виключаю",
        corrects="ні|вибачте|точніше|тобто|перепрошую|чекайте",
        joins="або|чи|і|й|та|а також|ні",
        refuses="не можу|не може|неможливо|не знаю|невідомо|жодна|жоден|ніхто|вибачте|перепрошую|спірн~|на жаль|"
        "недостатньо|не впевнен~|не йдеться|не згад~|не відповідає на|не дає відповіді|не вказан~|не зазначен~|"
        "не містить відповіді|не містить інформації|немає інформації|немає даних",
        yes="так|правда|вірно|правильно|звичайно",
        no="ні|неправда|невірно|неправильно",
        letters="А Б - Г Д",
    ),
    "fi": Wording(
        answer="vastau~|oikein on|valitsen|oikea on",
        filler="on|oikea|vaihtoehto|se|lopullinen|vastaus|kohta",
        option="vaihtoehto|vastaus|kohta|vaihtoehtoa|vaihtoehdon",
        right="on oikein|on oikea~|on vastaus|pitää paikkansa",
        wrong="on väärin|on väärä|ei ole oik~|ei ole vastaus|on virheellinen|ovat väärin|ei pidä paikkaansa|"
        "ei voi olla|voidaan sulkea pois",
        not_="ei|eikä|ei ole|eivät|en valitse|en valitsisi|ei voi olla",
        corrects="ei|anteeksi|tai siis|eiku|tarkoitan|siis",
        joins="ja|tai|että|sekä|tai ehkä|vai",
        refuses="en tiedä|en osaa|en voi|ei voida|tuntematon|ei mikään|valitettavasti|mahdotonta|en ole varma|"
        "ei tietoa|anteeksi|ei riittävästi|ei kerrota|ei sanota|ei käy ilmi|ei vastaa kysymykseen|ei ole tietoa|"
        "ei kerro",
        yes="kyllä|joo|juu|totta|pitää paikkansa|niin on",
        no="ei|ei ole|väärin|eipä",
    ),
    "ms": Wording(
        answer="jawapan~|pilihan yang betul|saya memilih|betul ialah|betul adalah",
        filler="ialah|adalah|yang|betul|tepat|pilihan|huruf|jawapan",
        option="pilihan|jawapan|huruf",
        right="betul|adalah betul|ialah jawapan~|adalah jawapan~|yang betul|adalah tepat",
        wrong="tidak betul|adalah salah|adalah tidak",
        not_="bukannya|berbanding|bukan|tidak|tidak mungkin|bukanlah",
        corrects="bukan|maaf|maksud saya|eh",
        joins="atau|dan|serta|mahupun",
        refuses="tidak boleh|tidak pasti|dipertikaikan|tidak dapat|tidak tahu|tiada|maaf|kurang pasti|"
        "tidak diketahui|tidak menyatakan~|tidak dinyatakan|tidak menyebut~|tidak disebut~|tidak menjawab soalan|"
        "tidak terdapat maklumat",
        yes="ya|betul|benar|ha'ah",
        no="tidak|bukan|salah|tak",
    ),
    "da": Wording(
        answer="svaret er|svar",
        filler="er|det|korrekte|rigtige",
        not_="ikke",
        joins="og|eller",
        refuses="kan ikke|ved ikke|ukendt|ingen|beklager|omstridt|umuligt",
        yes="ja|jo",
        no="nej",
    ),
    "sr": Wording(
        answer="одговор|odgovor",
        filler="је|je|тачан|tačan|točan",
        not_="nije|није",
        joins="или|ili",
        refuses="не могу|не може|не знам|непознато|ниједна|нико|жао ми је|спорн~|ne mogu|ne može|ne znam|nepoznato|"
        "nijedna|nitko|niko|žao mi je|sporn~",
        yes="да|da",
        no="не|ne",
    ),
    "sl": Wording(
        answer="odgovor",
        filler="je|pravilen",
        not_="ni",
        joins="ali|in",
        refuses="ne morem|ni mogoče|ne vem|neznano|nobena|nihče|žal|sporn~",
        yes="da|ja",
        no="ne",
    ),
    "tl": Wording(
        answer="sagot",
        filler="ay|ang|tamang",
        not_="hindi",
        joins="o|at",
        refuses="hindi ko|hindi maaari|hindi alam|wala sa|paumanhin|pinagtatalunan",
        yes="oo|opo|tama",
        no="hindi|hindi po",
    ),
    "km": Wording(
        refuses="មិនអាច|មិនដឹង|សុំទោស",
        yes="បាទ|ចាស|ចា៎ស",
        no="ទេ|មិនមែនទេ",
    ),
    "lo": Wording(
        refuses="ບໍ່ສາມາດ|ບໍ່ຮູ້|ຂໍອະໄພ",
        yes="ແມ່ນ|ແມ່ນແລ້ວ|ເຈົ້າ",
        no="ບໍ່|ບໍ່ແມ່ນ",
    ),
    "my": Wording(
        refuses="မသိ|မဖြေနိုင်|တောင်းပန်",
        yes="ဟုတ်ကဲ့|ဟုတ်တယ်|ဟုတ်ပါတယ်",
        no="မဟုတ်ဘူး|မဟုတ်ပါ|ဟင့်အင်း",
    ),
}
