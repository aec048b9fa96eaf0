"""Words around an answer in the 13 languages of CORAL and BLEnD."""

from __future__ import annotations

from collections.abc import Mapping

from mrag_eval.metrics._wording import Wording

CORAL: Mapping[str, Wording] = {
    "en": Wording(
        answer="answer|answers|chosen option|selected option|correct option|correct choice|right choice|"
        "final choice|correct one is|right one is|i choose|i pick|i select|i'd choose|i'd pick|i'd go with|"
        "i would choose|i would pick|i would go with|i'll go with|go with|opt for",
        filler="is|are|was|the|would|should|be|have|to|must|most|likely|correctly|correct|right|final|best|my|"
        "option|choice|letter|number|answer|it's|it|in|fact|actually",
        option="option|choice|letter|answer|number|alternative",
        option_after="option",
        right="is correct|is right|is the correct~|is the right|is the best|is the answer|is my answer|"
        "is the most likely|is the one|must be right|must be correct",
        wrong="is wrong|is incorrect|is not|isn't|is false|are wrong|are incorrect|are not|aren't|are both wrong|"
        "cannot be|can't be|was wrong|is out|does not fit|doesn't fit|can be ruled out|can be excluded|"
        "can be eliminated|is ruled out|is excluded|is unlikely",
        not_="not|isn't|wasn't|aren't|doesn't|no|rather than|instead of|neither|nor|can't be|cannot be|never|than|"
        "except|don't|wouldn't|won't|not choose|not pick|not select|don't choose|don't pick|don't select|"
        "wouldn't choose|wouldn't pick|wouldn't select|cannot possibly be|can't possibly be|anything but|rule out|"
        "ruling out|ruled out|i doubt it is|i doubt it's|i doubt that it is|unlikely to be",
        corrects="no|wait|actually|sorry|correction|i meant|i mean|scratch that|or rather|pardon|hmm",
        joins="and|or|and/or|nor|or possibly|or maybe|or perhaps|or even|as well as|versus|vs",
        refuses="cannot|can't|can not|could not|couldn't|unable|not able|don't know|do not know|not known|unknown|"
        "not sure|unsure|not certain|uncertain|unclear|undetermined|undecided|inconclusive|neither|none|no one|"
        "nobody|no country|no single|no definitive|no idea|no answer|no correct|not possible|impossible|refuse~|"
        "decline~|won't|will not|would not|rather not|prefer not|not comfortable|no comment|sorry|apologi~|disputed|"
        "contested|not enough|isn't enough|insufficient|as an ai|n/a|not mention~|doesn't mention|not state|"
        "not stated|doesn't state|not say anything|does not say|do not say|doesn't say|not specif~|doesn't specify|"
        "not indicate~|not provided|not provide info~|not provide any info~|not provide an answer|"
        "not provide the answer|doesn't provide info~|doesn't provide any info~|doesn't provide an answer|"
        "doesn't provide the answer|not contain info~|not contain any info~|not contain an answer|"
        "not contain the answer|doesn't contain info~|doesn't contain any info~|doesn't contain an answer|"
        "doesn't contain the answer|not answer|doesn't answer|not address~|doesn't address|no mention|no information",
        yes="yes|yeah|yep|indeed|correct|true|right",
        no="no|nope|incorrect|false|not really|not at all",
        unsettled="no idea|no doubt|no one|no answer|no comment|no country|right now|true or false",
    ),
    "es": Wording(
        answer="respuesta|opción correcta|opcion correcta|opción elegida|correcta es|correcto es|elijo|elegiría|"
        "escojo|escogería|me quedo con|selecciono|optaría por|opto por|se trata de",
        filler="es|la|el|los|las|opción|opcion|correcta|correcto|letra|alternativa|final|mi|respuesta|sería|seria",
        option="opción|opcion|letra|alternativa|inciso|respuesta",
        right="es correcta|es la correcta|es correcto|es el correcto|es la respuesta|es la opción correcta|"
        "es la buena|sería correcta",
        wrong="es incorrect~|es fals~|no es corr~|no es la|no es el|no lo es|está mal|están mal|son incorrect~|"
        "no son corr~|es erróne~|queda descartad~|quedan descartad~|se descarta|no puede ser",
        not_="no|no es|ni|ni es|en lugar de|en vez de|nunca|que no|tampoco|menos|no puede ser|no podría ser|"
        "no creo que sea|descarto|descartando|descartar",
        corrects="no|perdón|perdona|mejor dicho|digo|quiero decir|espera|disculpa|bueno|más bien",
        joins="y|o|e|u|o bien|o quizás|o tal vez|y también|como|ni",
        refuses="no puedo|no puede|no se puede|no sé|no lo sé|no se sabe|desconozco|desconocid~|ninguno|ninguna|"
        "lo siento|disputad~|imposible|no tengo|no hay|no estoy segur~|no es posible|no cuento con|sin respuesta|"
        "no menciona~|no se menciona~|no lo menciona|no indica|no lo indica|no se indica|no especifica|"
        "no lo especifica|no se especifica|no responde a la pregunta|no responde a esta pregunta|"
        "no contiene información|no contiene la respuesta|no proporciona información|no proporciona la respuesta|"
        "no dispongo",
        yes="sí|si|así es|correcto|es cierto|verdadero|claro|por supuesto|efectivamente|afirmativo",
        no="no|incorrecto|falso|para nada|tampoco|negativo",
    ),
    "id": Wording(
        answer="jawab~|pilihan yang benar|pilihan yang tepat|saya memilih|saya pilih|memilih|benar adalah|"
        "benar ialah|benar yaitu|tepat adalah|tepat ialah|tepat yaitu",
        filler="adalah|ialah|yaitu|yakni|yang|benar|tepat|paling|opsi|pilihan|huruf|jawaban|nomor|saya|itu",
        option="opsi|pilihan|huruf|jawaban|butir|nomor",
        right="benar|adalah jawaban~|adalah benar|adalah yang|merupakan jawaban~|itu benar|yang benar|paling tepat|"
        "adalah pilihan",
        wrong="salah|tidak benar|tidak tepat|bukan jawaban~|bukan yang|keliru|bukanlah|kurang tepat|tidak mungkin",
        not_="bukan|bukanlah|bukannya|tidak|tak|daripada|alih-alih|selain|tidak mungkin|mustahil",
        corrects="eh|eh bukan|bukan|maaf|maksud saya|tunggu|ralat|salah|tepatnya",
        joins="dan|atau|serta|ataupun|maupun|atau mungkin|dan juga",
        refuses="tidak dapat|tidak bisa|tidak tahu|tidak diketahui|tidak ada|bukan keduanya|maaf|dipersengketakan|"
        "tidak yakin|kurang tahu|kurang yakin|tidak cukup|belum tahu|tidak memiliki|tidak mengetahui|entah~|"
        "tidak menyebut~|tidak disebut~|tidak menjawab pertanyaan|tidak menjelaskan|tidak dijelaskan|"
        "tidak tercantum|tidak memuat informasi~|tidak satu pun",
        yes="ya|iya|betul|benar|tentu",
        no="tidak|bukan|salah|tak|enggak|nggak|belum",
    ),
    "su": Wording(
        answer="waler~|jawab~|abdi milih|kuring milih|milih|bener mah|bener nyaéta|bener téh|pangbenerna nyaéta|"
        "leres nyaéta",
        filler="nyaéta|nyaeta|téh|teh|nu|anu|bener|leres|mah|pilihan|opsi|jawaban|waleran|pangbenerna|nyéta",
        option="pilihan|opsi|aksara|jawaban|waleran",
        particle="téh|mah",
        right="nu bener|anu bener|bener|leres|jawaban~|nu leres|anu leres",
        wrong="salah|sanés jawaban~|lain jawaban~|henteu bener|teu bener|teu leres|moal",
        not_="lain|sanés|sanes|henteu|teu|tinimbang|iwal|moal|mustahil",
        corrects="eh|eh lain|eh sanés|lain|sanés|punten|hapunten|maksud abdi",
        joins="jeung|sareng|atawa|sarta|atanapi",
        refuses="teu terang|teu tiasa|teu bisa|teu aya|teu nyaho|teu yakin|hapunten|teu apal|kurang terang|duka|"
        "kurang pikeun|teu cekap|teu cukup|teu disebut~|teu nyebut~|teu ngajawab|teu gaduh informasi~|"
        "teu boga informasi~|euweuh nu bener|euweuh jawaban~",
        yes="muhun|enya|leres|bener|sumuhun|leres pisan",
        no="henteu|sanés|sanes|lain|teu|salah",
    ),
    "el": Wording(
        answer="απάντηση|απαντηση|απάντησή|σωστή επιλογή|σωστό είναι|σωστή είναι|ορθή είναι|ορθό είναι|επιλέγω|"
        "θα επέλεγα|διαλέγω|θα διάλεγα",
        filler="είναι|η|το|την|τη|τον|ο|οι|τα|τις|τους|του|σωστή|σωστό|ορθή|τελική|επιλογή|απάντηση|μου|γράμμα",
        option="επιλογή|απάντηση|γράμμα|περίπτωση",
        right="είναι σωστή|είναι σωστό|είναι η σωστή|είναι το σωστό|είναι η απάντηση|είναι η ορθή|είναι ορθή|"
        "είναι ορθό",
        wrong="είναι λάθος|είναι λανθασμένη|είναι λανθασμένο|δεν είναι|είναι εσφαλμένη|αποκλείεται|αποκλείονται|"
        "δεν μπορεί",
        not_="όχι|δεν είναι|ούτε|αντί|αντί για|παρά|εκτός από|και όχι|δεν|δεν μπορεί να είναι|αποκλείω",
        corrects="όχι|συγγνώμη|μάλλον|λάθος|ή μάλλον|διορθώνω|εννοώ",
        joins="και|ή|ή ίσως|ή και|είτε|μαζί με|ούτε|και το|και η",
        refuses="δεν μπορώ|δεν μπορεί|δεν γνωρίζω|δεν ξέρω|άγνωστο|καμία|κανένα|κανένας|λυπάμαι|αμφισβητ~|αδύνατο|"
        "δεν υπάρχ~|δεν είμαι σίγουρ~|δεν είναι δυνατ~|συγγνώμη|δεν διαθέτω|δεν έχω|δεν αναφέρ~|δεν το αναφέρ~|"
        "δεν απαντ~|δεν περιέχ~|δεν προσδιορίζ~|δεν διευκρινίζ~",
        yes="ναι|μάλιστα|σωστά|ισχύει|αληθεύει|βεβαίως|βέβαια",
        no="όχι|λάθος|δεν ισχύει|δεν αληθεύει",
        letters="Α Β Γ Δ Ε|α β γ δ ε",
    ),
    "zh": Wording(
        answer="答案|正解|答|故选|故選|应选|應選|选择|選擇|选项|選項|选|選|正确的是|正確的是|应为|應為|应该是|應該是",
        filler="最终|正确|正確|应该|應該|应|應|就|是|为|為|选|選|选项|選項|选择|選擇|项|項|第|我|的|会|會",
        option="选项|選項|第|选|選",
        option_after="选项|選項|项|項|个选项|个|選",
        particle="是|才是|选项|選項|项|項|都|均|才|应该是|應該是",
        right="正确|正確|对|對|是对的|正确答案|正確答案|是正确~|是正確~|符合",
        wrong="不对|不對|错误|錯誤|错|錯|不正确|不正確|不是正|不是答案|不符合|是错~|是錯~|有误|並非正|并非正|不可能|并不|並不|可以排除",
        not_="不是|并非|並非|而非|而不是|非|既不是|也不是|不选|不選|除了|除|不|不可能是|排除",
        corrects="不对|不對|不|不是|抱歉|更正|哦不|错了|錯了|等等|应该是|應該是",
        joins="和|或|或者|与|與|及|以及|还是|還是|跟|或是|、",
        refuses="不能|无法|無法|不知道|未知|都不|抱歉|对不起|對不起|有争议|有爭議|不确定|不確定|没有正确|沒有正確|"
        "不清楚|信息不足|資訊不足|没有答案|無從|无从|都错|都錯|难以|難以|不详|不詳|没有足够|沒有足夠|没有提到|沒有提到|未提到|没有提及|沒有提及|未提及|没有说明|未说明|没有回答|沒有回答|未回答|"
        "没有给出|未给出|没有相关|沒有相關",
        yes="是|是的|对|對|对的|對的|没错|沒錯|正确|正確|肯定的|肯定|会|會|有|可以|当然|當然",
        no="不|不是|不是的|否|没有|沒有|错|錯|不对|不對|否定的|否定|不会|不會|并非|並非|错误|錯誤|并不|並不",
        letters="甲 乙 丙 丁 戊",
    ),
    "ko": Wording(
        answer="정답~|최종 답~|답변~|답|답은|답이|정답률|선택~|옳은 것은|맞는 것은|올바른 것은|적절한 것은|"
        "제 생각에는|제 답은",
        filler="선택지|선지|보기|번호|옳은|맞는|가장|적절한|바로",
        option="보기|선택지|선지|옵션",
        option_after="번|안|항",
        particle="번이|번은|번을|번|이|가|은|는|을|를|만|도",
        right="정답|맞|옳|답이|답입|적절|올바|정확|정답이|선택하|고르|고릅|택하",
        wrong="아니|아닌|아닙|틀렸|틀린|틀리|오답|정답이 아니|정답이 아닌|답이 아니|맞지 않|옳지 않|말고|대신|"
        "보다는|제외|적절하지 않|올바르지 않|정확하지 않|선택하지 않|고르지 않|일 수 없|될 수 없",
        corrects="아니|아니요|아니다|아니지|정정|죄송|다시",
        joins="나|이나|와|과|또는|혹은|및|하고|이랑|랑|아니면|그리고",
        refuses="할 수 없~|알 수 없~|모르~|모릅니다|불명~|아무도|죄송~|분쟁~|어렵습니다|수 없습니다|답이 없~|"
        "정답이 없~|없습니다|답변할 수~|확실하지 않~|불확실~|부족하~|판단하기 어렵~|언급되어 있지 않~|"
        "언급되지 않~|언급이 없~|언급하지 않~|나와 있지 않~|알지 못~|제시되지 않~|답하기 어렵~",
        yes="네|예|그렇습니다|맞습니다|그래요|맞아요|넵|응|그렇다|맞다|참",
        no="아니요|아니오|아뇨|아닙니다|아니|그렇지 않습니다|틀립니다|틀렸습니다|아니다|그렇지 않다|거짓",
        unsettled="네 명~|네 개~|네 번~|네 가지~|네 살~|네 사람~|네 시~|예를 들~",
        letters="가 나 다 라 마 바 사 아|ㄱ ㄴ ㄷ ㄹ ㅁ",
    ),
    "ar": Wording(
        answer="الإجابة|الاجابة|إجابة|اجابة|إجابتي|الجواب|جواب|الخيار الصحيح|الاختيار|أختار|اختار|اخترت|الصحيح هو|"
        "الصحيحة هي|الصواب هو|الأصح هو",
        filler="هي|هو|الصحيحة|الصحيح|الصحيحه|النهائية|النهائي|الخيار|خيار|الحرف|حرف|رقم|الإجابة|الجواب|الأنسب",
        option="الخيار|خيار|الحرف|حرف|الاختيار|الإجابة|رقم|البند",
        right="صحيح|صحيحة|هو الصحيح|هي الصحيحة|هو الجواب|هي الإجابة|هو الإجابة|هو الخيار الصحيح|هو الأصح|هو الصواب",
        wrong="خاطئ|خاطئة|خطأ|غير صحيح|غير صحيحة|ليس صحيح~|ليست صحيحة|ليس الجواب|ليس الإجابة|ليست الإجابة|خاطئان|"
        "ليسا صحيحين|ليس هو|ليست هي|مستبعد|مستبعدة|لا يمكن",
        not_="ليس|ليست|وليس|وليست|لا|ولا|بدلا من|بدلاً من|عوضا عن|ليس الجواب|غير|ما عدا|لا يمكن أن تكون|"
        "لا يمكن أن يكون|أستبعد|نستبعد",
        corrects="لا|بل|لا بل|عفوا|عفوًا|عذرا|أقصد|أعني|تصحيح|كلا",
        joins="أو|و|ولا|أم|وأيضا|أو ربما|وكذلك|إما",
        refuses="لا أستطيع|لا يمكن~|لا أعرف|لا أعلم|غير معروف|لا أحد|عذرا~|عذرًا|آسف|متنازع|غير ممكن|لا توجد|لا يوجد|"
        "لست متأكد~|لا أملك|لا أدري|ليس لدي|لست أدري|غير كافية|أعتذر|ولا واحد~|لا يذكر|لم يذكر|لم يُذكر|لا تذكر|"
        "لا يتضمن السياق|لا يتضمن النص|لا تتضمن الوثائق|لا يحتوي السياق|لا يحتوي النص|لا يحتوي على معلومات|لا يجيب|"
        "لا يشير|غير مذكور",
        yes="نعم|أجل|بلى|صحيح|بالتأكيد|بالطبع",
        no="لا|كلا|ليس كذلك|خطأ|غير صحيح",
        letters="أ ب ج د ه|ا ب ج د",
    ),
    "fa": Wording(
        answer="پاسخ|جواب|گزینه صحیح|گزینه درست|انتخاب من",
        filler="صحیح|درست|نهایی|گزینه|گزینهٔ|گزینۀ|گزینه‌ی|گزینهی|من|برابر|شماره|همان",
        option="گزینه|گزینهٔ|گزینۀ|گزینه‌ی|گزینهی|مورد|شماره",
        particle="را",
        right="است|درست است|صحیح است|پاسخ صحیح~|پاسخ درست~|جواب درست~|جواب صحیح~|پاسخ است|انتخاب می‌کنم|"
        "انتخاب میکنم|می‌باشد|صحیح می‌باشد|درست می‌باشد",
        wrong="نیست|غلط است|نادرست است|اشتباه است|درست نیست|صحیح نیست|نیستند|غلط|نادرست|اشتباه|انتخاب نمی‌کنم|"
        "انتخاب نمیکنم|انتخاب نمی کنم|نمی‌تواند باشد|نمی‌باشد|صحیح نمی‌باشد|درست نمی‌باشد",
        not_="نه|و نه|به جای|بجای|به‌جای|نه گزینه|غیر از|به جز",
        corrects="نه|ببخشید|یعنی|منظورم|اصلاح می‌کنم|خیر|بلکه",
        joins="یا|و|و هم|هم|یا شاید|و یا|و نیز",
        refuses="نمی‌توانم|نمی توانم|نمیتوانم|نمی‌دانم|نمی دانم|نمیدانم|نامشخص|ناشناخته|هیچ‌کدام|هیچکدام|هیچ کدام|"
        "متأسفم|متاسفم|مورد مناقشه|مطمئن نیستم|وجود ندارد|نمی‌توان|نمی توان|کافی نیست|اطلاعی ندارم|معلوم نیست|"
        "مشخص نیست|هیچ یک|هیچ‌یک|اشاره نشده|ذکر نشده|اشاره‌ای نشده|بیان نشده|متن نیامده|پاسخ نمی‌دهد|پاسخی نمی‌دهد|"
        "پرسش را نمی‌دهد|سؤال را نمی‌دهد|سوال را نمی‌دهد|اشاره نمی‌کند",
        yes="بله|آری|بلی|آره|درست است|صحیح است|همین‌طور است",
        no="خیر|نه|نخیر|نادرست است|غلط است|درست نیست",
        letters="الف ب ج د ه",
    ),
    "az": Wording(
        answer="cavab~|düzgün variant|doğru variant|seçirəm|seçərdim|düzgün olan|doğru olan|düzgünü|doğrusu",
        filler="düzgün|doğru|variant|variantı|seçim|hərf|cavab|mənim|isə",
        option="variant|bənd|hərf|cavab|seçim",
        option_after="variant~|bənd~|hərf~",
        particle="-dır|-dir|-dur|-dür|-nı|-ni|isə",
        right="doğrudur|düzgündür|düzgün cavab~|doğru cavab~|seçirəm|düzdür|düzgün variant~|doğru variant~",
        wrong="deyil|yanlışdır|səhvdir|doğru deyil|düzgün deyil|yanlış|səhv|seçmirəm|seçməzdim|ola bilməz",
        not_="nə|nə də|yox|əvəzinə",
        corrects="yox|xeyr|bağışlayın|daha doğrusu|yəni|üzr istəyirəm|düzəliş",
        joins="və|ya|və ya|yaxud|həm də|və yaxud|həm|ya da|ilə|ya da ki",
        refuses="bilmirəm|deyə bilmərəm|naməlum|heç biri|heç bir|üzr istəyirəm|mübahisəli|mümkün deyil|bilmərəm|"
        "yoxdur|əmin deyiləm|məlum deyil|kifayət etmir|məlumatım yoxdur|qeyd olunmur|qeyd olunmayıb|qeyd edilmir|"
        "qeyd edilməyib|göstərilmir|göstərilməyib|məlumat verilmir|cavab vermir|bəhs edilmir|bəhs olunmur",
        yes="bəli|hə|bəlidir|doğrudur|düzdür|əlbəttə",
        no="xeyr|yox|xeyrdir|deyil|yanlışdır|səhvdir",
    ),
    "ha": Wording(
        answer="amsa~|na zaɓi|na zabi|ina zaɓar|ina zabar|zan zaɓi|zan zabi|daidai ita ce|daidai shi ne",
        filler="ita|ce|shi|shine|ne|daidai|zaɓi|zaɓin|zabi|na|da|ta|dace|ya|amsar|amsa|harafin|lamba|mafi",
        option="zaɓi na|zaɓin|zaɓi|zabi na|zabin|zabi|harafi|harafin|amsa",
        right="ne daidai|ce daidai|shi ne daidai|ita ce daidai|daidai ne|daidai ce|ita ce amsa~|ce amsa~|ne amsa~|"
        "shi ne amsa~|ita ce amsar|shine amsar|shine daidai",
        wrong="kuskure ne|kuskure ce|ba daidai ba|ba haka ba|ba ne|ba ce|kuskure|ba shi ba|ba ita ba",
        not_="ba|ba shi ne|maimakon|ban da|ba wai|ba kuma|ba zan|ba na",
        corrects="a'a|yi haƙuri|yi hakuri|ina nufin|wato|gafara",
        joins="ko|da|da kuma|ko kuma|ko kuwa|kuma|ko ma",
        refuses="ban sani~|ba zan iya|yi haƙuri|yi hakuri|babu|ba ni da|ba a san~|ba a sani~|ban tabbata~|"
        "ba zai yiwu~|ba na iya|ba na da|bai isa~|bai ambaci~|bai ambata~|ba a ambaci~|ba a ambata~|bai faɗi~|"
        "bai amsa~|ba ta ambaci~|bai ba da",
        yes="eh|ee|i|haka ne|na'am|gaskiya ne|tabbas",
        no="a'a|aa|ba haka ba|ba haka ba ne|ba gaskiya ba ne|ba gaskiya ba",
    ),
    "am": Wording(
        answer="መልስ~|መልሱ|ትክክለኛው|ትክክለኛ ምርጫ|ምርጫዬ|የምመርጠው",
        filler="ትክክለኛው|ትክክለኛ|ምርጫ|ምርጫው|ነው|መልስ|መልሱ|የመጨረሻ|እኔ|ፊደል",
        option="ምርጫ|ፊደል|አማራጭ|መልስ",
        particle="ን|ም|ው|ነው",
        right="ነው|ትክክል ነው|ትክክለኛው መልስ~|ትክክለኛ መልስ~|መልሱ ነው|እመርጣለሁ|ን እመርጣለሁ|ትክክለኛው ነው|ትክክለኛው ምርጫ~|መልስ ነው",
        wrong="ሳይሆን|አይደለም|ስህተት~|ትክክል አይደለም|ይልቅ|አይደሉም|ስሕተት~|ልክ አይደለም|በስተቀር|ፈንታ|ብቻ አይደለም|አልመርጥም|ን አልመርጥም|ሊሆን አይችልም|የተሳሳተ",
        not_="እንጂ",
        corrects="አይ|ይቅርታ|አይደለም|ማለቴ|ማለትም",
        joins="እና|ወይም|ወይ|ወይንም|ም|እንዲሁም",
        refuses="አላውቅም|አልችልም|ይቅርታ|የለም|አይታወቅም|እርግጠኛ አይደለሁም|መመለስ አልችልም|አይቻልም|በቂ መረጃ|አላውቀውም|አልተገለጸም|መልስ የለ~|ማወቅ አይቻልም|"
        "አልተጠቀሰም|አልተጠቀሰ~|አይገልጽም|አይጠቅስም|መልስ አይሰጥም|መረጃ የለኝም|አይመልስም",
        yes="አዎ|አዎን|ትክክል ነው|እውነት ነው|እንዴታ",
        no="አይ|አይደለም|የለም|አይሆንም|ትክክል አይደለም|እውነት አይደለም|ስህተት ነው",
        letters="ሀ ለ ሐ መ ሠ",
    ),
    "as": Wording(
        answer="উত্তৰ~|উত্তর~|শুদ্ধ বিকল্প~|বাছনি কৰিছোঁ|সঠিক বিকল্প~",
        filler="হ'ল|হল|হৈছে|শুদ্ধ|সঠিক|বিকল্প|মই|চূড়ান্ত|মোৰ|আখৰ|নম্বৰ",
        option="বিকল্প|বিকল্পটো|আখৰ|নম্বৰ|উত্তৰ",
        particle="টো|টোৱে|ৰ|-ৰ|নং|ক|-ক",
        right="শুদ্ধ|সঠিক|হয়|শুদ্ধ উত্তৰ~|সঠিক উত্তৰ~|বাছনি কৰিছোঁ|বাছনি কৰিলোঁ|হ'ব",
        wrong="নহয়|ভুল|সলনি|অশুদ্ধ|হ'ব নোৱাৰে|শুদ্ধ নহয়|সঠিক নহয়|বাদে|বাহিৰে|নাই|বাছনি নকৰোঁ|বাছনি কৰা নাই",
        corrects="নহয়|দুঃখিত|ক্ষমা কৰিব|মাফ কৰিব|ওহো|নাই",
        joins="আৰু|বা|অথবা|নাইবা|কিম্বা|লগতে",
        refuses="নাজানো|নোৱাৰোঁ|নোৱাৰো|দুঃখিত|কোনোটোৱেই|তথ্য নাই|নিশ্চিত নহয়|উত্তৰ নাই|অজ্ঞাত|জনা নাই|জনা নাযায়|"
        "ক্ষমা কৰিব|সম্ভৱ নহয়|কোনো এটাও|একোৱেই|যথেষ্ট নহয়|উল্লেখ নাই|উল্লেখ কৰা নাই|উল্লেখ কৰা হোৱা নাই|পোৱা নগ'ল|"
        "পোৱা নাযায়|নিশ্চিত নহওঁ|নোৱাৰি",
        yes="হয়|সঁচা|শুদ্ধ|অৱশ্যে|নিশ্চয়",
        no="নহয়|নাই|ভুল|মিছা|অশুদ্ধ|ওহোঁ",
        letters="ক খ গ ঘ ঙ",
    ),
}
