"""Compare the language detector and the correct language rate with bare fastText predict calls, in one process.

    python benchmarks/language_id.py            40,000 texts
    python benchmarks/language_id.py --quick    1,000 texts, for a smoke test

Prints one line: texts per second, and the ratio to calling ``predict`` text by text on the same texts.
"""

from __future__ import annotations

import random
import time

from mrag_eval.metrics import FastTextDetector, correct_language_rate
from mrag_eval.metrics._language_detection import bundled_model

SENTENCES = {
    "en": "The museum was opened in the spring and had many visitors from abroad during its first year.",
    "de": "Das Museum wurde im Frühjahr eröffnet und hatte im ersten Jahr viele Besucher aus dem Ausland.",
    "es": "El museo se abrió en primavera y tuvo muchos visitantes del extranjero durante el primer año.",
    "fi": "Museo avattiin keväällä, ja ensimmäisenä vuonna siellä kävi paljon vieraita ulkomailta.",
    "ru": "Музей открылся весной, и в первый год его посетило много гостей из-за границы.",
    "el": "Το μουσείο άνοιξε την άνοιξη και είχε πολλούς επισκέπτες από το εξωτερικό τον πρώτο χρόνο.",
    "ar": "افتتح المتحف في الربيع وزاره كثير من الضيوف من الخارج في عامه الأول.",
    "hi": "संग्रहालय वसंत में खुला और पहले वर्ष में विदेश से बहुत से लोग आए।",
    "ko": "박물관은 봄에 문을 열었고 첫해에 외국에서 많은 손님이 찾아왔습니다.",
    "ja": "博物館は春に開館し、最初の年には海外から多くの人が訪れました。",
    "zh": "博物馆在春天开放，第一年就有许多来自国外的游客前来参观。",
    "th": "พิพิธภัณฑ์เปิดในฤดูใบไม้ผลิ และมีผู้มาเยือนจากต่างประเทศมากมายในปีแรก",
    "am": "ሙዚየሙ በጸደይ ወቅት ተከፍቶ በመጀመሪያው ዓመት ብዙ የውጭ ጎብኚዎች ነበሩት።",
}


def make_texts(count: int, seed: int) -> tuple[list[str], list[str]]:
    """Return texts of one to four sentences in 13 languages, some with newlines, and their languages."""
    rng = random.Random(seed)
    languages = [rng.choice(list(SENTENCES)) for _ in range(count)]
    texts = []
    for number, language in enumerate(languages):
        words = SENTENCES[language].split(" ") * rng.randint(1, 4)
        texts.append(rng.choice((" ", "\n")).join([" ".join(words), str(number)]))
    return texts, languages


def main() -> None:
    """Time the three, slice by slice in turn so that a busy machine slows them alike, and print the line."""
    from _rows import arguments, row, write_rows

    parser = arguments(__doc__, quick="1,000 texts")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    count, step = (1_000, 500) if options.quick else (40_000, 2_000)
    texts, languages = make_texts(count, options.seed)

    import fasttext

    model = fasttext.load_model(str(bundled_model()))
    detector = FastTextDetector()
    detector.detect(["loads the model"])
    raw = detected = rated = 0.0
    equal = True
    for first in range(0, count, step):
        part, wanted = texts[first : first + step], languages[first : first + step]
        lines = [text.replace("\n", " ") for text in part]
        times = [time.process_time()]
        bare = [model.predict(line)[0][0] for line in lines]
        times.append(time.process_time())
        labels = detector.detect(lines)
        times.append(time.process_time())
        rate = correct_language_rate(part, wanted, detector=detector)
        times.append(time.process_time())
        raw, detected, rated = raw + times[1] - times[0], detected + times[2] - times[1], rated + times[3] - times[2]
        equal = equal and [label.removeprefix("__label__") for label in bare] == labels == list(rate.detected)
    print(
        f"language id: {count:,} texts, fastText predict {count / raw:,.0f}/s, detect {count / detected:,.0f}/s "
        f"(ratio {raw / detected:.2f}), correct_language_rate {count / rated:,.0f}/s (ratio {raw / rated:.2f}), "
        f"labels equal {equal}"
    )
    write_rows(
        options.json,
        [
            row(
                f"language identification, {count:,} texts",
                "fastText's predict",
                detected / raw,
                holds=equal,
                figures={"predict_s": raw, "detect_s": detected, "rate_s": rated},
            )
        ],
    )


if __name__ == "__main__":
    main()
