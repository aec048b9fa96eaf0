"""A wrong input, and what the command must answer to it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

# JSON that recursion cannot read.
DEEP = "[" * 100_000 + "]" * 100_000
# Stands for a file that exists and cannot be read.
UNREADABLE = object()
# Stands for a pipe to which nobody writes: reading it never ends.
PIPE = object()
# Beginnings of log lines on standard error, the harness's and ours.
_LOGGED = re.compile(r"\d{4}-\d\d-\d\d:\d\d:\d\d:\d\d |warning: |(index )?\S+: [\d,]+ passages")
# A next step: a command, a flag, a setting, or a verb for the reader.
_STEP = re.compile(
    r"--\w|\bmrag-eval \w|\be\.g\. |\b[a-z]+: \S|\b(add|build|change|check|choose|copy|correct|create|drop|export|fill|"
    r"free|give|install|keep|leave|list|make|name|one of|pip|put|rebuild|remove|rename|repeat|retrieve|run|save|see|"
    r"set|take|unset|use|write)\b"
)
# Advice that leads nowhere, for a fault that the user can see.
_NOWHERE = ("if it is ours, report it", "shows where it comes from")


@dataclass(frozen=True)
class Case:
    """A command, the words that its message contains, and what is planted before it.

    ``planted`` maps paths to contents: text, bytes, None for a folder, UNREADABLE, PIPE, or what to make of the text
    that the file has. They are removed afterwards.
    ``env`` maps variables to values, None to unset one. ``code`` is the expected exit code. ``shown``: a check
    prints its findings (code 1).
    """

    command: str | Sequence[str]
    named: Sequence[str]
    planted: Mapping[str, str | bytes | object | None] = field(default_factory=dict)
    env: Mapping[str, str | None] = field(default_factory=dict)
    code: int = 2
    shown: bool = False
    title: str = ""

    @property
    def keeps(self) -> bool:
        """Return whether the command may leave work in its folder ``new``, to be continued by the next call."""
        return self.arguments[0] in ("retrieve", "strategies") or self.arguments[:2] in (
            ["build", "qa"],
            ["build", "xrag"],
        )

    @property
    def arguments(self) -> list[str]:
        """Return the command as the shell would split it."""
        return shlex.split(self.command) if isinstance(self.command, str) else list(self.command)

    def __str__(self) -> str:
        return self.title or " ".join([*(f"{name}={value}" for name, value in self.env.items()), *self.arguments])


def complaints(case: Case, code: int, stdout: str, stderr: str) -> list[str]:
    """Return what is wrong with the answer to a wrong input; empty if nothing is."""
    found = []
    if code != case.code:
        found.append(f"exit code {code} instead of {case.code}")
    if "Traceback" in stderr or '\n  File "' in stderr:
        found.append("a traceback")
    if case.shown:
        return found + [f"'{word}' is not named" for word in case.named if word not in stdout]
    lines = [line for line in stderr.splitlines() if line.strip()]
    start = next((i for i, line in enumerate(lines) if line.startswith("mrag-eval: ")), None)
    if start is None:
        return [*found, "no line 'mrag-eval: …'"]
    found += [f"a line before the message: {line[:80]}" for line in lines[:start] if not _LOGGED.match(line)]
    step = lines[start + 1 :]
    example = bool(step) and step[0].endswith(":")
    if not step or not (example or all(line.startswith("    or ") for line in step[1:])):
        found.append(f"{len(step)} lines after the message instead of one, one for each way, or an example")
    elif not example and (
        not step[0].startswith("    ") or not _STEP.search(step[0]) or any(word in step[0] for word in _NOWHERE)
    ):
        found.append(f"no next step: {step[0].strip()[:80]}")
    said = "\n".join(lines[start:])
    if max(map(len, lines[start:])) > 1000:
        found.append("a line of more than 1,000 characters")
    return found + [f"'{word}' is not named" for word in case.named if word not in said]
