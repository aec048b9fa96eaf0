"""Words of the subjects that benchmarks ask about, by language, and names of places that CLDR lacks.

A word stands for every word that begins with it: ``econom`` for ``economy`` and ``economic``.
"""

from __future__ import annotations

from collections.abc import Mapping

Words = Mapping[str, tuple[str, ...]]


def _words(**languages: str) -> Words:
    """Return the words of each language, given as one text with commas."""
    return {lang: tuple(word.strip() for word in text.split(",")) for lang, text in languages.items()}


# BLEnD: food, sport, family, education, holidays, celebrations, leisure, work life. CLIcK: society, tradition, history,
# law, politics, economy, geography, popular culture.
EVERYDAY_LIFE = _words(
    en="food, cuisine, dish, drink, bread, sport, football, famil, wedding, marriage, education, school, "
    "universit, holiday, festival, celebration, new year, game, leisure, labor, labour, employment, working, "
    "cultur, tradition, custom, societ, econom, geograph, histor, law, politic, music, television, cinema, "
    "religio, cloth, etiquette",
    es="gastronom, cocina, comida, plato, bebida, deporte, fútbol, familia, boda, matrimonio, educación, "
    "escuela, universidad, fiesta, festival, festivo, celebraci, navidad, juego, ocio, trabajo, empleo, "
    "cultur, tradici, costumbre, sociedad, econom, geograf, historia, derecho, polític, música, televisión, "
    "cine, religi",
    zh="饮食, 飲食, 菜, 料理, 食品, 小吃, 体育, 體育, 运动, 運動, 足球, 家庭, 婚, 教育, 学校, 學校, 大学, 大學, "
    "节日, 節日, 春节, 春節, 假日, 游戏, 遊戲, 休闲, 休閒, 劳动, 勞動, 文化, 传统, 傳統, 习俗, 習俗, 社会, "
    "社會, 经济, 經濟, 地理, 历史, 歷史, 法律, 政治, 音乐, 音樂, 电视, 電視, 电影, 電影, 宗教",
    ko="음식, 요리, 식품, 스포츠, 축구, 체육, 가족, 결혼, 교육, 학교, 대학, 명절, 축제, 공휴일, 놀이, 여가, 노동, "
    "직업, 문화, 전통, 풍습, 사회, 경제, 지리, 역사, 법률, 정치, 음악, 텔레비전, 드라마, 영화, 종교",
    ar="مطبخ, طعام, أطباق, رياضة, كرة القدم, عائلة, أسرة, زواج, زفاف, تعليم, مدارس, جامعة, جامعات, أعياد, عيد, "
    "مهرجان, عطل, احتفال, ألعاب, ترفيه, عمالة, ثقافة, تقاليد, عادات, مجتمع, اقتصاد, جغرافيا, تاريخ, قانون, "
    "سياسة, موسيقى, تلفزيون, سينما, دين",
    fa="آشپزی, غذا, خوراک, ورزش, فوتبال, خانواده, ازدواج, آموزش, مدرسه, دانشگاه, جشن, عید, تعطیلات, نوروز, بازی, "
    "تفریح, فرهنگ, سنت, آیین, جامعه, اقتصاد, جغرافیا, تاریخ, حقوق, سیاست, موسیقی, تلویزیون, سینما, دین",
    id="masakan, makanan, kuliner, minuman, hidangan, olahraga, sepak bola, keluarga, pernikahan, perkawinan, "
    "pendidikan, sekolah, universitas, hari raya, hari libur, festival, perayaan, permainan, pekerjaan, "
    "tenaga kerja, budaya, kebudayaan, tradisi, adat, masyarakat, ekonomi, geografi, sejarah, hukum, politik, "
    "musik, televisi, film, agama",
    el="κουζίνα, φαγητ, τρόφιμ, ποτά, αθλητισμ, ποδόσφαιρο, "
    "οικογένεια, γάμος, εκπαίδευση, σχολεί, πανεπιστήμι, γιορτ, "
    "εορτ, αργίες, φεστιβάλ, παιχνίδι, εργασία, πολιτισμ, παράδοση, "
    "παραδόσεις, έθιμα, κοινωνία, οικονομία, γεωγραφία, ιστορία, "
    "δίκαιο, πολιτική, μουσική, τηλεόραση, κινηματογράφ, θρησκεία",
    az="mətbəx, yemək, idman, futbol, ailə, toy, nikah, təhsil, məktəb, universitet, bayram, festival, oyun, "
    "əmək, mədəniyyət, adət, ənənə, cəmiyyət, iqtisadiyyat, coğrafiya, tarix, hüquq, siyasət, musiqi, "
    "televiziya, kino, din",
)

# MKQA: questions that people typed into a search box, on films, music, sport, states and their history.
GENERAL_KNOWLEDGE = _words(
    en="film, song, album, television, series, season, football, basketball, baseball, olympic, championship, "
    "president, constitution, war, king, queen, capital, countries, states, novel, award, actor, singer, "
    "list of",
    ar="فيلم, أفلام, أغنية, ألبوم, مسلسل, تلفزيون, كرة القدم, كرة السلة, أولمبي, بطولة, رئيس, رؤساء, دستور, حرب, "
    "حروب, ملك, ملوك, عاصمة, عواصم, دول, رواية, جائزة, ممثل, مغن, قائمة",
    de="film, lied, album, fernseh, serie, fußball, basketball, baseball, olympi, meisterschaft, präsident, "
    "verfassung, krieg, könig, hauptstadt, staat, roman, preis, schauspieler, sänger, liste",
    es="película, canci, álbum, televisión, serie, temporada, fútbol, baloncesto, béisbol, olímpic, "
    "campeonato, president, constitución, guerra, rey, reina, capital, país, estado, novela, premio, actor, "
    "cantante, anexo",
    fi="elokuva, laulu, albumi, televisio, sarja, jalkapallo, koripallo, olympia, mestaruus, presiden, "
    "perustuslaki, sota, sodat, kuning, pääkaupun, valtio, romaani, palkin, näyttelij, laulaja, luettelo",
    fr="film, chanson, album, télévis, série, saison, football, basket, baseball, olympique, championnat, "
    "président, constitution, guerre, roi, reine, capitale, pays, état, roman, prix, acteur, actrice, "
    "chanteu, liste",
    it="film, canzon, album, televisi, serie, stagione, calcio, pallacanestro, baseball, olimpic, campionat, "
    "president, costituzione, guerr, re, regin, capital, stat, romanz, premi, attor, attric, cantant, lista",
    ja="映画, 楽曲, 曲, アルバム, テレビ, ドラマ, サッカー, バスケットボール, 野球, オリンピック, 選手権, 大統領, "
    "憲法, 戦争, 国王, 女王, 首都, 国, 小説, 賞, 俳優, 歌手, 一覧",
    ko="영화, 노래, 음반, 텔레비전, 드라마, 축구, 농구, 야구, 올림픽, 선수권, 대통령, 헌법, 전쟁, 국왕, 여왕, "
    "수도, 국가, 나라, 소설, 상, 배우, 가수, 목록",
    pt="filme, canç, álbu, televisão, série, temporada, futebol, basquet, beisebol, olímpic, campeonato, "
    "president, constituição, guerra, rei, rainha, capital, país, estado, romance, prêmio, prémio, ator, "
    "atriz, cantor, lista",
    ru="фильм, песн, альбом, телевид, телесериал, сезон, футбол, "
    "баскетбол, бейсбол, олимпийск, чемпионат, президент, "
    "конституци, войн, корол, столиц, государств, стран, роман, "
    "преми, актёр, актрис, певц, певиц, список",
    th="ภาพยนตร์, เพลง, อัลบั้ม, โทรทัศน์, ละคร, ฟุตบอล, บาสเกตบอล, เบสบอล, โอลิมปิก, ประธานาธิบดี, รัฐธรรมนูญ, "
    "สงคราม, กษัตริย์, ราชินี, เมืองหลวง, ประเทศ, รัฐ, นวนิยาย, รางวัล, นักแสดง, นักร้อง, รายชื่อ",
    zh="电影, 電影, 歌曲, 专辑, 專輯, 电视, 電視, 足球, 篮球, 籃球, 棒球, 奥林匹克, 奧林匹克, 奥运, 奧運, 锦标赛, "
    "錦標賽, 总统, 總統, 宪法, 憲法, 战争, 戰爭, 国王, 國王, 女王, 首都, 国家, 國家, 小说, 小說, 奖, 獎, 演员, "
    "演員, 歌手, 列表",
)

# BordIRlines: disputed territories.
BORDERS = _words(
    en="disput, border, territor, sovereign, island, annex, occup, treaty, conflict, claim",
    ar="نزاع, متنازع, حدود, إقليم, أراض, سيادة, جزيرة, جزر, ضم, احتلال, معاهدة",
    de="streit, grenze, territor, souverän, insel, annexion, besatz, vertrag, konflikt",
    el="διαφορ, διαμφισβητ, σύνορα, εδάφ, κυριαρχί, νησ, προσάρτηση, κατοχή, συνθήκη, σύγκρουση",
    es="disput, conflicto, frontera, territori, soberan, isla, anexi, ocupaci, tratado, reclam",
    fa="مناقشه, مورد اختلاف, مرز, سرزمین, قلمرو, حاکمیت, جزیره, جزایر, الحاق, اشغال, معاهده",
    fr="disput, différend, conflit, frontière, territoire, souverain, île, annexion, occup, traité, revendic",
    he="מחלוקת, סכסוך, גבול, שטח, ריבונות, אי, איים, סיפוח, כיבוש, הסכם",
    hi="विवाद, सीमा, क्षेत्र, संप्रभुता, द्वीप, विलय, संधि",
    id="sengketa, perbatasan, wilayah, kedaulatan, pulau, kepulauan, aneksasi, pendudukan, perjanjian, konflik",
    it="disput, conteso, conflitto, confin, territori, sovranità, isol, annession, occupazion, trattat",
    ja="領土, 国境, 係争, 紛争, 主権, 島, 諸島, 併合, 占領, 条約",
    ko="분쟁, 영토, 국경, 영유권, 주권, 섬, 제도, 합병, 점령, 조약",
    nl="geschil, betwist, grens, territori, soeverein, eiland, annexatie, bezet, verdrag, conflict",
    pt="disput, conflito, fronteira, territóri, soberan, ilha, anexa, ocupa, tratado, reivindic",
    ru="спор, границ, территори, суверенитет, остров, аннекси, оккупац, договор, конфликт",
    tr="anlaşmazlı, sınır, toprak, egemenli, ada, ilhak, işgal, antlaşma, çatışma",
    uk="спір, спірн, кордон, територі, суверенітет, острів, острови, анексі, окупац, договір, конфлікт",
    vi="tranh chấp, biên giới, lãnh thổ, chủ quyền, đảo, quần đảo, sáp nhập, chiếm đóng, hiệp ước, xung đột",
    zh="争议, 爭議, 领土, 領土, 边界, 邊界, 主权, 主權, 岛, 島, 群岛, 群島, 吞并, 吞併, 占领, 佔領, 条约, 條約, "
    "冲突, 衝突",
)

# What the names of a territory and of its language leave out: adjectives, short forms, and BLEnD's two regions.
ALSO: Mapping[str, Words] = {
    "US": _words(
        en="american",
        es="estadounidense",
        zh="美國",
        ar="أمريك",
        fa="آمریکا",
        el="ηπα, αμερικαν",
        id="amerika",
    ),
    "GB": _words(
        en="british, scottish, welsh, england",
        es="británic, inglaterra",
        ar="بريطاني, إنجلترا",
        fa="بریتانیایی, انگلستان",
        el="βρεταν, αγγλία",
        id="inggris",
    ),
    "ES": _words(
        el="ισπαν",
        ar="إسباني",
    ),
    "MX": _words(
        en="mexican",
        es="mexican",
        el="μεξικ",
        ar="مكسيكي",
    ),
    "KR": _words(
        en="korea",
        es="corea, surcorea",
        ko="한국, 대한민국",
        zh="韩国, 韓國, 南韩",
        ar="كوريا, كوري",
        fa="کره",
        el="κορέα, κορεατικ",
        id="korea",
    ),
    "KP": _words(
        en="north korean, pyongyang",
        es="norcorean",
        ko="조선민주주의인민공화국, 평양",
        zh="北韓, 朝鲜, 朝鮮",
    ),
    "ID": _words(
        zh="印尼",
        es="indonesi",
        el="ινδονησ",
        ar="إندونيسي",
    ),
    "CN": _words(
        en="chinese",
        zh="中國, 中华, 中華",
        es="chin",
        el="κινεζ",
        ar="صيني",
    ),
    "DZ": _words(
        es="argelin",
        ar="جزائري",
        el="αλγεριν",
    ),
    "GR": _words(
        es="grieg",
        el="ελλην, έλλην",
        ar="يوناني",
    ),
    "IR": _words(
        es="iraní",
        el="ιραν, περσ",
        ar="إيراني",
        fa="ایرانی",
    ),
    "AZ": _words(
        es="azer",
        zh="亞塞拜然",
        el="αζέρ",
        ar="أذري",
        fa="آذربایجان",
    ),
    "West Java": _words(
        en="west java, bandung",
        es="java occidental, bandung",
        zh="西爪哇, 万隆, 萬隆",
        ko="자와바랏, 서자와, 반둥",
        ar="جاوة الغربية, باندونغ",
        fa="جاوه غربی, باندونگ",
        id="jawa barat, bandung",
        el="δυτική ιάβα, μπαντούνγκ",
        az="qərbi yava",
    ),
    "Assam": _words(
        en="assam",
        es="assam",
        zh="阿萨姆, 阿薩姆",
        ko="아삼",
        ar="آسام",
        fa="آسام",
        id="assam",
        el="ασάμ, άσσαμ",
        az="assam",
    ),
    "NG": _words(
        es="nigerian",
        zh="奈及利亞",
        ar="نيجيري",
        el="νιγηρ",
    ),
    "ET": _words(
        es="etíope, etiop",
        zh="衣索比亞",
        ar="إثيوبي",
        el="αιθίοπ, αιθιοπ",
    ),
}
