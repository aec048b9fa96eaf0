"""Former names of commands, each with a message that gives the present name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

from mrag_eval.core import ConfigError

RENAMED: Mapping[str, str] = {
    "annotate": "judge documents SAMPLES",
    "baseline": "gate --save FILE RUN",
    "case": "report RESULTS --territory NAME",
    "config": "doctor --config",
    "consistency": "compare RUN --languages",
    "flips": "compare RUN --answers",
    "index add": "index build DOCUMENTS INDEX --add",
    "index verify": "index info INDEX --verify",
    "inspect": "judge inspect SAMPLES",
    "judge contexts": "judge passages SAMPLES",
    "judge run": "judge answers SAMPLES",
    "trace rewrites": "judge rewrites TRACES",
    "trace show": "trace ROW",
}


class Commands(TyperGroup):
    """Hold the commands; a former name gives an error with the present one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        for old in (" ".join(args[:2]), args[0]):
            if old in RENAMED:
                raise ConfigError(f"there is no command '{old}'", f"mrag-eval {RENAMED[old]}   replaces it")
        return super().resolve_command(ctx, args)
