"""Documents on eight territories in the file layout of BordIRlines; every text was written for these tests."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# The territories, with the (file's) codes of those of their claimants' languages that have questions.
TERRITORIES: dict[str, tuple[str, ...]] = {
    "Ceuta": ("es", "ar"),
    "Crimea": ("uk", "ru"),
    "Spratly Islands": ("vi", "zht", "ms", "zhs", "tl"),
    "Falkland Islands": ("en", "es"),
    "Dokdo/Takeshima": ("ko", "ja"),
    "Imia/Kardak": ("el", "tr"),
    "Abyei": ("en", "ar"),
    "Yalu River": ("ko", "zht", "zhs"),
}
# {t} territory, {c} claimant: two texts for a claim, then one on the dispute, one on the weather, one on ships.
_TEXTS: dict[str, tuple[str, str, str, str, str]] = {
    "en": (
        "{t} is part of {c}, whose officials collect the taxes there.",
        "Maps drawn in {c} have shown {t} inside its border since 1910.",
        "Who owns {t} is disputed; no court has ruled on it yet.",
        "Winters in {t} are mild and most of the rain falls in March.",
        "A small boat carries the post to {t} every second Tuesday.",
    ),
    "es": (
        "{t} es parte de {c}, cuyos funcionarios cobran allí los impuestos.",
        "Los mapas de {c} muestran {t} dentro de su frontera desde 1910.",
        "Se disputa a quién pertenece {t}; ningún tribunal lo ha decidido.",
        "Los inviernos en {t} son suaves y llueve sobre todo en marzo.",
        "Un barco pequeño lleva el correo a {t} cada dos martes.",
    ),
    "ar": (
        "{t} جزء من {c} ويجبي موظفوها الضرائب هناك.",
        "تظهر خرائط {c} منطقة {t} داخل حدودها منذ عام 1910.",
        "ملكية {t} محل نزاع ولم تحكم فيها أي محكمة بعد.",
        "الشتاء في {t} معتدل ويهطل معظم المطر في مارس.",
        "يحمل قارب صغير البريد إلى {t} كل ثلاثاء ثانٍ.",
    ),
    "ru": (
        "{t} — часть страны {c}, её чиновники собирают там налоги.",
        "Карты страны {c} показывают {t} внутри её границ с 1910 года.",
        "О том, кому принадлежит {t}, спорят; суд этого ещё не решил.",
        "Зимы в {t} мягкие, дожди идут в основном в марте.",
        "Каждый второй вторник лодка привозит почту в {t}.",
    ),
    "uk": (
        "{t} — частина країни {c}, її урядовці збирають там податки.",
        "Мапи країни {c} показують {t} всередині її кордонів з 1910 року.",
        "Кому належить {t}, сперечаються; суд цього ще не вирішив.",
        "Зими в {t} м'які, дощі йдуть переважно в березні.",
        "Кожного другого вівторка човен привозить пошту в {t}.",
    ),
    "vi": (
        "{t} là một phần của {c}, quan chức nước này thu thuế ở đó.",
        "Bản đồ của {c} vẽ {t} trong biên giới từ năm 1910.",
        "Chủ quyền {t} đang tranh chấp; chưa tòa án nào phán quyết.",
        "Mùa đông ở {t} ôn hòa và mưa nhiều nhất vào tháng ba.",
        "Cứ hai tuần một chiếc thuyền nhỏ chở thư đến {t}.",
    ),
    "ms": (
        "{t} sebahagian daripada {c}, pegawainya memungut cukai di sana.",
        "Peta {c} menunjukkan {t} di dalam sempadannya sejak 1910.",
        "Pemilikan {t} dipertikaikan; belum ada mahkamah memutuskannya.",
        "Musim sejuk di {t} sederhana dan hujan turun pada bulan Mac.",
        "Sebuah bot kecil membawa surat ke {t} setiap dua minggu.",
    ),
    "tl": (
        "Bahagi ng {c} ang {t}, at naniningil doon ng buwis ang mga opisyal nito.",
        "Ipinapakita ng mga mapa ng {c} ang {t} sa loob ng hangganan mula 1910.",
        "Pinagtatalunan kung kanino ang {t}; wala pang hukumang nagpasya.",
        "Banayad ang taglamig sa {t} at umuulan lalo na tuwing Marso.",
        "May maliit na bangkang naghahatid ng sulat sa {t} tuwing ikalawang Martes.",
    ),
    "ko": (
        "{t}은 {c}의 일부이며 그 나라 관리가 세금을 걷는다.",
        "{c}의 지도는 1910년부터 {t}을 국경 안에 그렸다.",
        "{t}의 영유권은 분쟁 중이며 어느 법원도 판결하지 않았다.",
        "{t}의 겨울은 온화하고 비는 주로 3월에 내린다.",
        "작은 배가 격주 화요일마다 {t}에 우편을 나른다.",
    ),
    "ja": (
        "{t}は{c}の一部で、その役人が税を集めている。",
        "{c}の地図は1910年から{t}を国境の内に描いている。",
        "{t}の帰属は争われており、どの裁判所も判断していない。",
        "{t}の冬は穏やかで、雨はおもに三月に降る。",
        "小さな船が隔週の火曜日に{t}へ郵便を運ぶ。",
    ),
    "el": (
        "Το {t} είναι μέρος της χώρας {c}, που εισπράττει εκεί φόρους.",
        "Οι χάρτες της χώρας {c} δείχνουν το {t} εντός συνόρων από το 1910.",
        "Σε ποιον ανήκει το {t} αμφισβητείται· κανένα δικαστήριο δεν έκρινε.",
        "Ο χειμώνας στο {t} είναι ήπιος και βρέχει κυρίως τον Μάρτιο.",
        "Ένα μικρό πλοίο φέρνει το ταχυδρομείο στο {t} κάθε δεύτερη Τρίτη.",
    ),
    "tr": (
        "{t}, {c} ülkesinin parçasıdır ve vergileri onun memurları toplar.",
        "{c} haritaları 1910'dan beri {t} yerini sınırın içinde gösterir.",
        "{t} kime ait, tartışmalıdır; hiçbir mahkeme karar vermedi.",
        "{t} kışı yumuşaktır, yağmur en çok martta yağar.",
        "Küçük bir tekne iki salıda bir {t} için posta taşır.",
    ),
    "zhs": (
        "{t}是{c}的一部分，由其官员在那里征税。",
        "自1910年起，{c}的地图把{t}画在国界之内。",
        "{t}的归属有争议，尚无法院作出裁决。",
        "{t}的冬天温和，雨水多在三月。",
        "一条小船每隔一个星期二把邮件送到{t}。",
    ),
    "zht": (
        "{t}是{c}的一部分，由其官員在那裡徵稅。",
        "自1910年起，{c}的地圖把{t}畫在國界之內。",
        "{t}的歸屬有爭議，尚無法院作出裁決。",
        "{t}的冬天溫和，雨水多在三月。",
        "一條小船每隔一個星期二把郵件送到{t}。",
    ),
}
K = 10


def documents(territory: str, claimants: Sequence[str], code: str) -> dict[str, tuple[str, str]]:
    """Return ten documents in a language: id -> (text, viewpoint); the claims of the first two claimants come first."""
    claim, map_, dispute, weather, post = _TEXTS[code]
    listed = [(text.format(t=territory, c=c), c) for c in claimants[:2] for text in (claim, map_)]
    listed += [(dispute.format(t=territory), "Neutral")]
    listed += [(text.format(t=territory), "Not relevant") for text in (weather, post)]
    listed += [(f"{territory}: {n}°, {n + 5}°, {n * 7} m.", "Not relevant") for n in (11, 22, 33)]
    page = 1000 + 100 * list(TERRITORIES).index(territory) + list(_TEXTS).index(code)
    prefix = f"{code}." if code in ("zhs", "zht") else ""
    return {f"{prefix}{page}_p{i}": entry for i, entry in enumerate(listed)}


def write_bordirlines(folder: Path, queries: Sequence[Mapping[str, Any]], stored: int = K) -> Path:
    """Write the hub's folder ``data`` for the eight territories; ``queries`` are all of BorderLines', as joined.

    Of each question and mode, ``stored`` hits are in the files, if there are so many.

    Both embedders have hits in the four published modes. ``m3`` ranks the query's language first, ``openai`` English.
    The model's labels with examples are those of :func:`documents`; without, document 5 is relevant as well.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    texts: dict[str, dict[str, str]] = {"control": {}}
    hits: dict[tuple[str, str, str], list[list[Any]]] = {}
    labels: dict[tuple[str, str], str] = {}
    lines = []
    for n, q in enumerate(queries):
        name, code = f"Q{n}", "control" if q["control_query"] else q["query_lang"]
        lines.append([name, q["query"], q["territory"], code])
        if q["territory"] not in TERRITORIES:
            continue
        codes = dict.fromkeys([*TERRITORIES[q["territory"]], "en"])
        found = {c: documents(q["territory"], q["claimants"], c) for c in codes}
        for c, listed in found.items():
            texts.setdefault(c, {}).update({doc: text for doc, (text, _) in listed.items()})
            labels |= {(name, doc): viewpoint for doc, (_, viewpoint) in listed.items()}
        own = q["query_lang"]
        scopes = {"qlang": [own], "qlang_en": [own, "en"], "en": ["en"], "rel_langs": [*codes]}
        for embedder in ("openai", "m3"):
            for mode, scope in scopes.items():
                first = "en" if embedder == "openai" else own
                ordered = sorted(dict.fromkeys(scope), key=lambda c: (c != first, c))
                pool = [(c, doc) for i in range(K) for c in ordered for doc in [list(found[c])[i]]]
                for rank, (c, doc) in enumerate(pool[:stored]):
                    row = [name, q["territory"], rank, round(0.9 - rank / 20, 3), doc, c]
                    hits.setdefault((code, embedder, mode), []).append(row)
    _tsv(data / "queries.tsv", ["query_id", "query_text", "territory", "language"], lines)
    (data / "all_docs.json").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
    for (code, embedder, mode), rows in hits.items():
        file = data / code / embedder / mode / f"{code}_query_hits.tsv"
        file.parent.mkdir(parents=True)
        _tsv(file, ["query_id", "territory", "rank", "score", "doc_id", "doc_lang"], rows)
    columns = ["query_id", "doc_id", "relevant_zeroshot", "relevant_fewshot", "territory_zeroshot", "territory_fewshot"]
    annotated = []
    for (name, doc), viewpoint in labels.items():
        relevant = "No" if viewpoint == "Not relevant" else "Yes"
        shown = "X) Neutral" if viewpoint == "Neutral" else "" if relevant == "No" else f"A) {viewpoint}"
        # without examples, the first document on the weather is relevant, too
        plain = ("Yes", "X) Neutral") if doc.endswith("_p5") else (relevant, shown)
        annotated.append([name, doc, plain[0], relevant, plain[1], shown])
    _tsv(data / "llm_annotations.tsv", columns, annotated)
    return folder


def _tsv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def real_queries(test_data: Path) -> list[dict[str, Any]]:
    """Return the 720 questions as joined by hand, to compare with the loader's."""
    lines = (test_data / "borderlines" / "queries_720.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
