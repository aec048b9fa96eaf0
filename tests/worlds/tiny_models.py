"""Randomly initialised models of a few thousand weights, built without a network: they test code, not quality."""

from __future__ import annotations

from pathlib import Path

_TEXT = """
bridge river old rice tea harbour lighthouse bakery ferry leaves pier seven was built in the of where when what does
sell only bread rye to from varn olm sund
"""
WORDS = tuple(_TEXT.split())


def vocabulary(folder: Path) -> list[str]:
    """Write the vocabulary of a WordPiece tokenizer: whole words, single letters and their continuations."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "?", ".", *WORDS, *letters, *(f"##{c}" for c in letters)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(words), encoding="utf-8")
    return words


def bert_folder(
    folder: Path, head: str = "BertForSequenceClassification", *, labels: int = 1, seed: int = 0, longest: int = 64
) -> Path:
    """Write a BERT of two layers with a head, as a plain transformers model with its tokenizer."""
    import torch
    import transformers

    words = vocabulary(folder)
    torch.manual_seed(seed)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=longest,
        num_labels=labels,
        # with weights of the usual size, nearly every pair gets the same score
        initializer_range=0.5,
    )
    getattr(transformers, head)(config).save_pretrained(folder)
    tokenizer = transformers.BertTokenizerFast(vocab=str(folder / "vocab.txt"), model_max_length=longest)
    tokenizer.save_pretrained(folder)
    return folder
