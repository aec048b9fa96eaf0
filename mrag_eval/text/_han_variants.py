"""Simplified and traditional Chinese, by frequent characters that only one of them has."""

from __future__ import annotations

from typing import Final

# Pairs of one character, simplified first; neither occurs in ordinary text of the other. Left out are characters that
# both use, each for another word (后, 里, 面, 干, 台, 云), and variants within either.
_PAIRS: Final = (
    "这這们們个個国國来來时時会會说說对對学學发發过過还還没沒见見问問进進长長门門开開关關东東车車马馬鸟鳥鱼魚书書"
    "电電话話语語读讀写寫听聽认認识識让讓请請谢謝谁誰该該应應为為无無现現实實点點热熱爱愛亲親儿兒头頭难難习習师師"
    "图圖间間园園场場从從业業产產农農医醫药藥乐樂题題类類买買卖賣贵貴钱錢银銀铁鐵钟鐘红紅绿綠蓝藍黄黃岁歲历歷纪紀"
    "级級给給经經结結统統线線网網组組织織终終约約联聯总總战戰军軍队隊陆陸阳陽飞飛机機观觀觉覺规規视視计計议議证證"
    "论論设設访訪许許译譯课課调調谈談质質责責贝貝负負财財败敗货貨费費资資边邊达達远遠运運连連选選适適邮郵释釋钢鋼"
    "错錯镇鎮闻聞阅閱险險随隨隐隱页頁项項须須顺順顾顧预預领領风風养養馆館驾駕验驗龙龍龟龜齐齊齿齒万萬与與专專两兩"
    "严嚴丽麗举舉义義乡鄉亚亞优優传傳伤傷众眾债債倾傾党黨兰蘭兴興决決况況净淨减減凤鳳则則刚剛创創办辦务務动動劳勞"
    "势勢单單卫衛压壓县縣双雙变變叶葉号號启啟员員响響团團围圍圆圓圣聖坏壞块塊坛壇声聲处處备備够夠奖獎妇婦孙孫宁寧"
    "宝寶审審宪憲宫宮寻尋导導将將尔爾尝嘗层層岛島岭嶺币幣广廣庄莊庆慶库庫废廢异異张張弹彈归歸当當录錄"
)
SIMPLIFIED: Final = frozenset(_PAIRS[::2])
TRADITIONAL: Final = frozenset(_PAIRS[1::2])


def han_variant(text: str) -> str | None:
    """Return ``Hans`` or ``Hant``, whichever has more of its own characters in a text; None if neither has more."""
    simplified = sum(char in SIMPLIFIED for char in text)
    traditional = sum(char in TRADITIONAL for char in text)
    if simplified == traditional:
        return None
    return "Hans" if simplified > traditional else "Hant"
