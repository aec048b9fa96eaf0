"""A small world for the hook: five languages, one document and one question per topic, scripted models."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from lm_eval.api.model import LM

TOPICS: dict[str, dict[str, tuple[str, str, str]]] = {
    # topic: language -> (document, question, answer); written for these tests
    "lighthouse": {
        "en": ("The lighthouse of Varn was built in 1841.", "When was the lighthouse of Varn built?", "1841"),
        "de": ("Der Leuchtturm von Varn wurde 1841 gebaut.", "Wann wurde der Leuchtturm von Varn gebaut?", "1841"),
        "es": ("El faro de Varn se construyó en 1841.", "¿Cuándo se construyó el faro de Varn?", "1841"),
        "ru": ("Маяк Варна построили в 1841 году.", "Когда построили маяк Варна?", "1841"),
        "zh": ("瓦恩灯塔建于1841年。", "瓦恩灯塔建于哪一年？", "1841"),
    },
    "bakery": {
        "en": ("The bakery in Olm sells rye bread only.", "What does the bakery in Olm sell?", "rye bread"),
        "de": ("Die Bäckerei in Olm verkauft nur Roggenbrot.", "Was verkauft die Bäckerei in Olm?", "Roggenbrot"),
        "es": ("La panadería de Olm solo vende pan de centeno.", "¿Qué vende la panadería de Olm?", "pan de centeno"),
        "ru": ("Пекарня в Ольме продаёт только ржаной хлеб.", "Что продаёт пекарня в Ольме?", "ржаной хлеб"),
        "zh": ("奥尔姆的面包店只卖黑麦面包。", "奥尔姆的面包店卖什么？", "黑麦面包"),
    },
    "ferry": {
        "en": ("The ferry to Sund leaves from pier seven.", "Where does the ferry to Sund leave from?", "pier seven"),
        "de": ("Die Fähre nach Sund legt an Pier sieben ab.", "Wo legt die Fähre nach Sund ab?", "Pier sieben"),
        "es": ("El ferry a Sund sale del muelle siete.", "¿De dónde sale el ferry a Sund?", "muelle siete"),
        "ru": ("Паром в Сунд отходит от седьмого причала.", "Откуда отходит паром в Сунд?", "седьмого причала"),
        "zh": ("去松德的渡轮从七号码头出发。", "去松德的渡轮从哪里出发？", "七号码头"),
    },
}
LANGS = ("en", "de", "es", "ru", "zh")


def write_world(folder: Path) -> Path:
    """Write questions.jsonl and corpus.jsonl: every topic in every language; culture and relevant languages
    alternate.
    """
    questions, corpus = [], []
    for topic, versions in TOPICS.items():
        for i, lang in enumerate(LANGS):
            document, question, answer = versions[lang]
            corpus.append({"id": f"{topic}-{lang}", "lang": lang, "title": "", "text": document})
            other = LANGS[(i + 1) % len(LANGS)]
            questions.append(
                {
                    "id": f"q-{topic}-{lang}",
                    "query": question,
                    "lang": lang,
                    "answers": [answer],
                    "relevant_ids": [f"{topic}-{other}"],
                    "gold_doc_lang": other,
                    "culture_lang": LANGS[(i + 2) % len(LANGS)],
                    "relevant_langs": [lang, other],
                    "group_id": topic,
                }
            )
    for name, rows in (("questions", questions), ("corpus", corpus)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


BASE: dict[str, Any] = {
    "output_type": "generate_until",
    "test_split": "test",
    "num_fewshot": 0,
    "metric_list": [],
    "generation_kwargs": {"until": [], "do_sample": False, "max_gen_toks": 16},
    "metrics": ["char3gram_recall", "hit@2", "mrr@2"],
    "metadata": {"version": 1.0},
}


def write_task(folder: Path, name: str, **keys: Any) -> Path:
    """Write a task YAML to the folder; keyword arguments are its keys, except ``class`` and ``task``."""
    body = yaml.safe_dump({"task": name, **keys}, sort_keys=False, allow_unicode=True)
    path = folder / f"{name}.yaml"
    path.write_text("class: !function mrag_eval.task.RagTask\n" + body, encoding="utf-8")
    return path


class Hub:
    """Lets the threads that play the ranks exchange one object each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size, timeout=60)
        self._slots: list[Any] = [None] * size

    def exchange(self, rank: int, value: Any) -> list[Any]:
        self._slots[rank] = value
        self._barrier.wait()
        seen = list(self._slots)
        self._barrier.wait()
        return seen


class ScriptedLM(LM):
    """Answers each prompt with a function; remembers the prompts. ``hub`` joins several ranks in threads."""

    def __init__(self, answer: Callable[[str], str], rank: int = 0, hub: Hub | None = None) -> None:
        super().__init__()
        self.answer, self.prompts = answer, []
        self._rank, self._world_size = rank, hub.size if hub else 1
        self.hub, self._device = hub, "cpu"

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        self.prompts += [r.args[0] for r in requests]
        return [self.answer(r.args[0]) for r in requests]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        raise AssertionError("no likelihoods are asked for")

    loglikelihood_rolling = loglikelihood

    def barrier(self) -> None:
        if self.hub:
            self.hub.exchange(self.rank, None)

    def all_gather(self, tensor: Any) -> Any:
        import torch

        return torch.stack(self.hub.exchange(self.rank, tensor)) if self.hub else tensor

    def gather_object(self, obj: Any, dst: int = 0) -> Any:
        return self.hub.exchange(self.rank, obj) if self.hub else [obj]
