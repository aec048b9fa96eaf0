"""Classifiers of support: tiny ones with random weights, as folders, and one made of a rule, which has to be right."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mrag_eval.core import Claim, Span
from mrag_eval.models import Asked

ENTAILMENT = {0: "neutral", 1: "ENTAILMENT", 2: "Contradiction"}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def classifier_folder(
    folder: Path,
    texts: Iterable[str],
    head: str = "BertForTokenClassification",
    *,
    labels: Mapping[int, str] | None = None,
    longest: int = 128,
    seed: int = 0,
) -> Path:
    """Write a model of random weights, with a tokenizer of whole words, and of single characters in Chinese."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=list(SPECIAL)))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, made.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, model_max_length=longest, model_input_names=inputs, **names
    ).save_pretrained(folder)
    torch.manual_seed(seed)
    family = head.partition("For")[0]
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = getattr(transformers, f"{family}Config")(
        vocab_size=made.get_vocab_size(),
        max_position_embeddings=longest,
        id2label=dict(labels or {0: "supported", 1: "hallucinated"}),
        pad_token_id=0,
        **sizes,
    )
    getattr(transformers, head)(config).save_pretrained(folder)
    return folder


class Rule:
    """In place of a model of tokens: one is supported if it stands beside a neighbour of its as in what is read first.

    A single token is supported if it stands there. ``shapes`` are those of the batches that it was given.
    """

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def __call__(self, input_ids: Any, token_type_ids: Any, attention_mask: Any) -> Any:
        import torch

        self.shapes.append(tuple(input_ids.shape))
        logits = torch.zeros((*input_ids.shape, 2))
        for row, (ids, types) in enumerate(zip(input_ids.tolist(), token_type_ids.tolist(), strict=True)):
            size = int(attention_mask[row].sum())
            first = [one for one, part in zip(ids[1:size], types[1:size], strict=True) if part == 0]
            pairs = {*itertools.pairwise(first)}
            own = [at for at in range(size - 1) if types[at] == 1]
            for at in own:
                beside = [(ids[a], ids[a + 1]) for a in (at - 1, at) if a in own and a + 1 in own]
                held = any(pair in pairs for pair in beside) if beside else ids[at] in first
                logits[row, at, 0 if held else 1] = 4.0
        return SimpleNamespace(logits=logits)


class EntailmentRule(Rule):
    """In place of a model of entailment: all of the claim's tokens in the premise entail it, none of them denies it."""

    def __call__(self, input_ids: Any, token_type_ids: Any, attention_mask: Any) -> Any:
        import torch

        self.shapes.append(tuple(input_ids.shape))
        logits = torch.zeros((len(input_ids), 3))
        for row, (ids, types) in enumerate(zip(input_ids.tolist(), token_type_ids.tolist(), strict=True)):
            size = int(attention_mask[row].sum())
            first = {one for one, part in zip(ids[:size], types[:size], strict=True) if part == 0}
            own = [one for one, part in zip(ids[: size - 1], types[: size - 1], strict=True) if part == 1]
            share = sum(one in first for one in own) / len(own)
            logits[row, 1 if share == 1 else 2 if share == 0 else 0] = 4.0
        return SimpleNamespace(logits=logits)


class Holds:
    """A checker without a model: a passage supports a claim that it holds word by word, white space and stops aside.

    ``faults``: answer -> why it has no findings. ``asked`` counts the answers that were read.
    """

    def __init__(self, revision: str = "1", faults: Mapping[str, str] | None = None) -> None:
        self.name, self.identity = "holds", {"model": "holds", "revision": revision}
        self.faults, self.asked = dict(faults or {}), 0

    def findings(self, asked: Sequence[Asked]) -> list[tuple[Claim, ...] | str]:
        self.asked += len(asked)
        return [self.faults.get(one.answer) or tuple(self._claim(one, span) for span in one.claims) for one in asked]

    def _claim(self, asked: Asked, span: Span) -> Claim:
        text = " ".join(asked.answer[span.start : span.end].strip(" .。").split())
        place = next((n for n, passage in enumerate(asked.passages, 1) if text in passage), None)
        if place is None:
            return Claim(span.start, span.end, "not_found", 0.0, unsupported=(span,))
        return Claim(span.start, span.end, "supported", 1.0, place)
