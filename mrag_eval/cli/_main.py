"""The command ``mrag-eval``.

Exit codes: 0 done; 1 a check failed (``tasks --check``, ``index info --verify``, ``doctor --strict``, ``gate``) or
nothing has that name (``tasks NAME``); 2 wrong usage, configuration, data or a missing package, with one line on stderr
that says what is wrong and the next step below it (any other failure too: a traceback comes with ``--debug`` only);
130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]

_SHOW = "mrag-eval --debug ... shows where it comes from"


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (``sys.argv`` by default) and exit."""
    from mrag_eval.core import hidden_on_screen, install_redaction

    install_redaction()
    with hidden_on_screen():
        _run(arguments)


def _run(arguments: Sequence[str] | None) -> NoReturn:
    from mrag_eval.cli._app import Session, app
    from mrag_eval.core import MragError

    session = Session()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="mrag-eval", obj=session)
    except MragError as error:
        if session.debug:
            raise
        _say(error.message, error.next_step or _SHOW)
        sys.exit(2)
    except KeyboardInterrupt:
        if session.debug:
            raise
        print("mrag-eval: interrupted", file=sys.stderr)
        sys.exit(130)
    except OSError as error:
        if session.debug:
            raise
        if error.filename is None or error.strerror is None:
            _say(*_unexpected(error))
        else:
            _say(f"{error.filename}: {error.strerror}", f"is that path there, readable, writable, with space? {_SHOW}")
        sys.exit(2)
    except Exception as error:
        if session.debug:
            raise
        _say(*_unexpected(error))
        sys.exit(2)
    sys.exit(0)


def _unexpected(error: Exception) -> tuple[str, str]:
    first = next(iter(str(error).splitlines()), "").strip()
    report = "if it is ours, report it with that and the output of mrag-eval doctor --json (CONTRIBUTING.md)"
    return f"{type(error).__name__}{f': {first}' if first else ''}", f"{_SHOW}; {report}"


def _say(message: str, next_step: str) -> None:
    print(f"mrag-eval: {message}", file=sys.stderr)
    print(f"    {next_step}", file=sys.stderr)
