"""Models of random weights in the layouts of published families: architecture, tokenizer and files, all tiny."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Words of answers that a tokenizer has to hold as one token.
_MERGED = ("yes", "no", "Yes", "No")
_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    # with weights of the usual size, nearly every text gets the same vector
    "initializer_range": 0.5,
}
_DECODER: dict[str, Any] = {**_SIZES, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024}


def byte_tokenizer(special: Sequence[str], before: str | None = None, after: str | None = None) -> Any:
    """Return a byte-level tokenizer, which reads every script, with special tokens of a family.

    ``before`` and ``after`` are the special tokens that it puts around a text.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocab = {symbol: n for n, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = []
    for word in _MERGED:
        for end in range(2, len(word) + 1):
            pair = (word[: end - 1], word[end - 1])
            if word[:end] not in vocab:
                vocab[word[:end]] = len(vocab)
                merges.append(pair)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(special))
    if before or after:
        template = " ".join(part for part in (before, "$A", after) if part)
        names = [part for part in (before, after) if part]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=special[0],
        bos_token=before,
        eos_token=after or special[0],
        cls_token=before,
        model_max_length=1024,
    )


def encoder_folder(folder: Path, layout: str) -> Path:
    """Write an encoder of a layout: ``xlm-roberta``, ``mpnet``, ``modernbert``, or a decoder such as ``qwen3``."""
    import torch
    import transformers

    torch.manual_seed(0)
    around: dict[str, tuple[str | None, str | None]] = {
        "xlm-roberta": ("<s>", "</s>"),
        "mpnet": ("<s>", "</s>"),
        "modernbert": ("<s>", "</s>"),
        "qwen3": (None, "<|endoftext|>"),
        "qwen2": (None, "<|endoftext|>"),
        "mistral": ("<s>", "</s>"),
        "llama": ("<|begin_of_text|>", None),
        "gemma2": ("<bos>", "<eos>"),
        "gemma3": ("<bos>", "<eos>"),
    }
    before, after = around[layout]
    special = ["<pad>", *(token for token in (before, after, "<mask>") if token)]
    tokenizer = byte_tokenizer(special, before, after)
    tokenizer.padding_side = "left" if layout in ("qwen3", "qwen2", "mistral", "llama", "gemma2") else "right"
    ids = {"pad_token_id": tokenizer.pad_token_id, "vocab_size": len(tokenizer)}
    ids |= {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    encoder = {**_SIZES, **ids, "max_position_embeddings": 1024}
    decoder = {**_DECODER, **ids}
    made: dict[str, tuple[str, str, dict[str, Any]]] = {
        "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaModel", encoder),
        "mpnet": ("MPNetConfig", "MPNetModel", encoder),
        "modernbert": ("ModernBertConfig", "ModernBertModel", {**encoder, "global_attn_every_n_layers": 2}),
        "qwen3": ("Qwen3Config", "Qwen3Model", decoder),
        "qwen2": ("Qwen2Config", "Qwen2Model", decoder),
        "mistral": ("MistralConfig", "MistralModel", decoder),
        "llama": ("LlamaConfig", "LlamaModel", decoder),
        "gemma2": ("Gemma2Config", "Gemma2Model", decoder),
        "gemma3": ("Gemma3TextConfig", "Gemma3TextModel", decoder),
    }
    config, model, settings = made[layout]
    getattr(transformers, model)(getattr(transformers, config)(**settings)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def reranker_folder(folder: Path, layout: str, *, labels: int | None = None) -> Path:
    """Write a language model of a layout (``qwen3``, ``qwen2``, ``gemma``), or a classifier on it with ``labels``."""
    import torch
    import transformers

    torch.manual_seed(0)
    name = {"qwen3": "Qwen3", "qwen2": "Qwen2", "gemma": "Gemma"}[layout]
    special = ["<pad>", "<bos>"] if layout == "gemma" else ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer = byte_tokenizer(special, "<bos>" if layout == "gemma" else None)
    settings = {**_DECODER, "vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    settings |= {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    head = "ForCausalLM" if labels is None else "ForSequenceClassification"
    settings |= {} if labels is None else {"num_labels": labels}
    config = getattr(transformers, f"{name}Config")(**settings)
    getattr(transformers, f"{name}{head}")(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
