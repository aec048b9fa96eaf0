"""The trust boundary: what a file from elsewhere may name, and what only the user's own configuration may say.

Manifests of indexes, run folders and result files are data: they may name a model, its revision, its dimensions and its
prompts. What runs code, which host is asked and which key it is sent are the user's to say, on the command line, in a
task's YAML or in the config file (docs/provenance.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from mrag_eval.platform._files import regular

# Settings of a model that change its output and nothing else.
NAMED = frozenset({"model", "kind", "revision", "instruction", "query_prefix", "passage_prefix", "query_task",
                   "passage_task", "pooling", "normalize", "max_tokens", "dimensions"})  # fmt: skip
# Settings that run code, name a host, name a key or are sent along with one.
USERS_ALONE = frozenset({"api_key", "api_key_env", "base_url", "function", "header", "headers", "host", "proxy",
                         "retriever", "token_env", "trust_remote_code", "uri", "url"})  # fmt: skip
# What a result file may say of the evaluated model, and of its decoding, to one who repeats the run.
REPEATED_MODEL = frozenset(
    {"add_bos_token", "attn_implementation", "backend", "batch_size", "chat_template_args", "chat_template_kwargs",
     "data_parallel_size", "delta", "device", "dtype", "enable_thinking", "enforce_eager", "eos_string",
     "gpu_memory_utilization", "kv_cache_dtype", "load_in_4bit", "load_in_8bit", "logits_cache", "max_batch_size",
     "max_gen_toks", "max_length", "max_model_len", "max_num_seqs", "max_retries", "model", "num_concurrent",
     "parallelize", "peft", "prefix_token_id", "pretrained", "quantization", "revision", "seed", "softmax_dtype",
     "subfolder", "swap_space", "temperature", "tensor_parallel_size", "think_end_token", "timeout",
     "tokenized_requests", "tokenizer", "tokenizer_backend", "top_k", "top_p", "truncation", "use_fast_tokenizer"}
)  # fmt: skip
REPEATED_DECODING = frozenset(
    {"do_sample", "early_stopping", "frequency_penalty", "length_penalty", "max_gen_toks", "max_length",
     "max_new_tokens", "max_tokens", "min_p", "no_repeat_ngram_size", "num_beams", "presence_penalty",
     "reasoning_effort", "repetition_penalty", "seed", "stop", "temperature", "top_k", "top_p", "until"}
)  # fmt: skip
# Of these keys, the value is the name of a model, which may be on the hub.
_OF_MODELS = frozenset({"delta", "detector", "embedder", "grounded", "model", "peft", "pretrained", "tokenizer",
                        "translator"})  # fmt: skip
# Of these, a name that is never that of a file or folder, whatever lies here.
_NO_PLACES = frozenset({"benchmark", "critic", "kind", "languages", "merge", "metrics", "mode", "panel", "planner",
                        "pool", "split", "subset"})  # fmt: skip
# Texts for a model, and texts that end a reply.
_WORDS = frozenset({"instruction", "system"})
_ENDS = frozenset({"eos_string", "stop", "think_end_token", "until"})
_NAME = re.compile(r"\w[\w.+@>-]*")
_DEVICE = re.compile(r"[a-z]+(:\d+)?")
# Names that would be read as those of files.
_OF_A_FILE = re.compile(r"\.(py|ya?ml|jinja2?|jsonl?|txt)$", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")


def repeatable(
    settings: Mapping[str, Any], known: Collection[str] | None = None, path: str = ""
) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Divide nested settings that a file brought into what a command may repeat unasked, and the rest by dotted key.

    A number, a yes or no, a name, and a text for a model are repeated: no code, host or folder. ``known`` holds the
    keys that may be repeated; without it, all but those of :data:`USERS_ALONE` may.
    """
    kept: dict[str, Any] = {}
    rest: list[tuple[str, Any]] = []
    for key, value in settings.items():
        where, last = f"{path}{key}", str(key).rpartition(".")[2]
        if isinstance(value, Mapping) and value and last not in USERS_ALONE and (known is None or key in known):
            inner, more = repeatable(value, None, f"{where}.")
            kept |= {key: inner} if inner else {}
            rest += more
        elif (last in USERS_ALONE and value) or not (known is None or key in known) or not _is_plain(last, value):
            rest.append((where, value))
        else:
            kept[key] = value
    return kept, rest


def _is_plain(key: str, value: Any) -> bool:
    """Return whether a value is a number or a name, or a text where the key takes one."""
    if isinstance(value, list | tuple):
        return all(_is_plain(key, one) for one in value)
    if not isinstance(value, str):
        return value is None or isinstance(value, bool | int | float) or value == {}
    if key in _ENDS:
        return not value.startswith("--")
    if key in _WORDS and " " in value:
        return not value.startswith("-") and not is_local(value)
    if key == "device" and _DEVICE.fullmatch(value):
        return True
    parts = value.split("/")
    named = len(parts) <= 1 + (key in _OF_MODELS) and all(map(is_plain_name, parts))
    return named and (key in _NO_PLACES or not is_local(value))


def is_plain_name(text: str) -> bool:
    """Return whether a text is a name that says no code, address, file or folder."""
    return _NAME.fullmatch(text) is not None and _OF_A_FILE.search(text) is None


def is_local(model: str) -> bool:
    """Return whether a model's name is a path, or would be read as one here: code in such a folder may be run."""
    return model.startswith(("/", "~", ".")) or "\\" in model or os.path.exists(model)


def path_fault(folder: Path, name: Any) -> str | None:
    """Return why a file that something in ``folder`` names is not to be opened; None for one inside the folder."""
    if fault := name_fault(name):
        return fault
    if leads_out(folder, folder / name):
        return "is a link out of the folder"
    try:
        regular(folder / name)
    except OSError as error:
        return f"is {error.strerror}"
    return None


def name_fault(name: Any) -> str | None:
    """Return why a name is not that of a file inside the folder that names it, wherever that folder is; else None."""
    if not isinstance(name, str) or not name:
        return "is not the name of a file"
    if any(ord(character) < 32 for character in name) or "\\" in name:
        return "holds a character that no file of ours has in its name"
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        return "is outside of the folder"
    if not parts:
        return "is the folder itself"
    return None


def leads_out(folder: Path, path: Path) -> bool:
    """Return whether a path below ``folder`` leads out of it through a link."""
    return not path.resolve().is_relative_to(folder.resolve())


def links_out(folder: Path) -> Iterator[Path]:
    """Yield the links below ``folder`` that lead out of it."""
    yield from (path for path in sorted(folder.rglob("*")) if path.is_symlink() and leads_out(folder, path))


def is_plain_language(code: Any) -> bool:
    """Return whether a language code can be part of a file's name."""
    return isinstance(code, str) and _LANGUAGE.fullmatch(code) is not None
