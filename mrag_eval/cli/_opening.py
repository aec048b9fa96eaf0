"""The first line of a slow command: what it works on, said before anything that takes time is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

_HARNESS = "; loading lm-evaluation-harness"
_QUIET = ("WARNING", "ERROR", "CRITICAL")
# Commands that spend seconds before their first result, and what they load first.
_SLOW = {
    ("run",): _HARNESS,
    ("retrieve",): _HARNESS,
    ("judge", "answers"): "",
    ("judge", "passages"): "",
    ("judge", "documents"): "",
    ("judge", "rewrites"): "",
    ("index", "build"): "",
    ("index", "import"): "",
    ("index", "milvus"): "",
    ("corpus", "wikipedia"): "",
    ("corpus", "kilt"): "",
    ("corpus", "bordirlines"): "",
    ("build", "xrag"): "",
    ("build", "qa"): "",
    ("build", "territories"): "",
}
# Names of tasks in the line; the others are counted.
_NAMED = 3


def say_what_begins(arguments: Sequence[str]) -> None:
    """Print a line about a slow command to standard error, if that is a terminal and this process the first rank."""
    line = opening_line(arguments)
    rank = os.environ.get("RANK") or os.environ.get("LOCAL_RANK") or "0"
    quiet = os.environ.get("LMEVAL_LOG_LEVEL", "").upper() in _QUIET
    if line and rank == "0" and not quiet and sys.stderr is not None and sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def opening_line(arguments: Sequence[str]) -> str | None:
    """Return the line; None for a quick command, a call for help, and a command that is given nothing to do."""
    words = [word for word in arguments if word != "--debug"]
    name = next((name for name in _SLOW if tuple(words[: len(name)]) == name), None)
    if name is None or {"-h", "--help"} & {*words}:
        return None
    rest = words[len(name) :]
    what = _run(rest) if name in (("run",), ("retrieve",)) else _named(rest)
    return f"mrag-eval {' '.join(name)}: {what}{_SLOW[name]}" if what else None


def _run(words: Sequence[str]) -> str:
    """Return the tasks and the model that flags of the harness name, or the file that does."""
    tasks = [task for part in _values(words, "--tasks", "-t") for task in part.split(",") if task]
    config = _values(words, "--config", "-C")
    if not tasks:
        return f"as in {config[0]}" if config else ""
    shown = ", ".join(tasks[:_NAMED])
    if len(tasks) > _NAMED:
        shown += f" and {len(tasks) - _NAMED} more"
    model = _values(words, "--model", "-M")
    if not model:
        return shown
    pairs = [part.split("=", 1) for given in _values(words, "--model_args", "-a") for part in given.split(",")]
    weights = next((pair[1] for pair in pairs if pair[0] in ("pretrained", "model") and len(pair) == 2), "")
    return f"{shown} with {model[0]}" + (f" {weights}" if weights else "")


def _named(words: Sequence[str]) -> str:
    """Return the languages asked for, else the words before the first option."""
    langs = _values(words, "--langs")
    if langs:
        return langs[0]
    end = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    return ", ".join(words[:end])


def _values(words: Sequence[str], *flags: str) -> list[str]:
    """Return the values of an option in any of its spellings, ``--flag value ...`` and ``--flag=value``."""
    found: list[str] = []
    taking = False
    for word in words:
        flag, joined, value = word.partition("=")
        if word.startswith("-"):
            taking = word in flags
            if joined and flag in flags:
                found.append(value)
        elif taking:
            found.append(word)
    return found
