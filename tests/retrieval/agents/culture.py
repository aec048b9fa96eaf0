"""Short articles on everyday culture in six languages, written for these tests."""

# ruff: noqa: E501
from __future__ import annotations

from mrag_eval.core import Passage

ARTICLES: dict[str, dict[str, str]] = {
    "ko": {
        "제사": "제사는 돌아가신 조상을 기리는 의례이다. 제주가 향을 피우고 술을 올린 뒤 가족이 두 번 절한다. 음식은 정해진 순서로 상에 놓는다.",
        "설날": "설날은 음력 정월 초하루이다. 아침에 차례를 지내고 떡국을 먹으며 어른께 세배를 드린다. 윷놀이를 하는 집이 많다.",
        "추석": "추석은 음력 팔월 보름이다. 햇곡식으로 송편을 빚고 성묘를 하며 보름달을 보고 소원을 빈다.",
        "국회": "대한민국 국회는 법률을 만들고 예산을 심의한다. 국회의원의 임기는 사 년이며 선거로 뽑는다.",
        "한글": "한글은 세종대왕이 만든 글자로 1446년에 반포되었다. 한글날은 시월 구일이다.",
        "김치": "김치는 배추나 무를 소금에 절여 고춧가루와 젓갈로 담근다. 겨울을 앞두고 담그는 일을 김장이라 한다.",
    },
    "en": {
        "Jesa": "Jesa is a Korean rite for the ancestors. The eldest son lights incense and offers wine, and the family bows twice.",
        "Thanksgiving": "Families in the United States meet on the fourth Thursday of November and eat turkey with cranberry sauce.",
        "Afternoon tea": "In the United Kingdom afternoon tea comes with small sandwiches and scones, usually at about four o'clock.",
        "Oil in Texas": "Texas has produced more oil than any other state for most of the time since Spindletop was drilled in 1901.",
        "Baseball": "Baseball is the most followed summer sport in the United States; the season ends with the World Series in autumn.",
    },
    "es": {
        "Las uvas": "En España se comen doce uvas al son de las campanadas de medianoche el treinta y uno de diciembre.",
        "Día de Muertos": "En México las familias ponen un altar con flores de cempasúchil y pan de muerto a principios de noviembre.",
        "La siesta": "En los pueblos del sur muchos comercios cierran a mediodía y abren de nuevo hacia las cinco de la tarde.",
    },
    "zh": {
        "春节": "春节是农历新年，家家户户吃年夜饭，长辈给孩子压岁钱，北方人多吃饺子。",
        "中秋节": "中秋节在农历八月十五，人们赏月、吃月饼，一家人团圆。",
        "高考": "高考每年六月举行，是中国学生进入大学的主要考试。",
    },
    "id": {
        "Lebaran": "Lebaran menandai akhir bulan puasa. Orang pulang kampung, saling memaafkan, dan makan ketupat bersama keluarga.",
        "Angklung": "Angklung adalah alat musik bambu dari Jawa Barat yang dimainkan dengan cara digoyangkan.",
        "Nasi goreng": "Nasi goreng dimasak dengan kecap manis dan sering disajikan dengan telur mata sapi dan kerupuk.",
    },
    "ar": {
        "الكسكس": "الكسكس طبق معروف في الجزائر، يطبخ على البخار ويقدم مع الخضر واللحم يوم الجمعة.",
        "رمضان": "في شهر رمضان يصوم الناس من الفجر إلى الغروب ويفطرون على التمر والحليب.",
        "العيد": "في العيد يلبس الأطفال ثيابا جديدة وتزور العائلات بعضها بعضا وتقدم الحلويات.",
    },
}


def passages() -> list[Passage]:
    """Return every article as one passage, named by language and title."""
    return [
        Passage(f"{lang}-{title}", lang, text, title, f"{lang}-{title}")
        for lang, articles in ARTICLES.items()
        for title, text in articles.items()
    ]
