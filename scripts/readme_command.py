"""Print a command of README.md, so that the project's check runs exactly what the page shows.

A command is the first fenced block after the line ``<!-- command: NAME -->``.

    python scripts/readme_command.py tests
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def readme_commands(text: str) -> dict[str, str]:
    """Return name → command for every marked block of a README."""
    blocks = re.findall(r"<!-- command: ([\w-]+) -->\s*```\w*\n(.*?)```", text, re.DOTALL)
    return {name: body.strip() for name, body in blocks}


def main() -> None:
    commands = readme_commands(README.read_text(encoding="utf-8"))
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    if wanted not in commands:
        sys.exit(f"README.md has no command '{wanted}'; it has: {', '.join(commands) or 'none'}")
    print(commands[wanted])


if __name__ == "__main__":
    main()
