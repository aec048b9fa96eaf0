"""The command ``mrag-eval``.

Exit codes: 0 done; 1 a check failed (``tasks --check``, ``index info --verify``, ``doctor --strict``, ``gate``),
nothing has that name (``tasks NAME``), or results could not be written; 2 wrong usage, configuration, data or a missing
package, with one line on stderr that says what is wrong and the next step below it (any other failure too: a traceback
comes with ``--debug`` only); 130 interrupted by Ctrl-C; 143 by SIGTERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]

_SHOW = "mrag-eval --debug ... shows where it comes from"
_INTERRUPTED = """mrag-eval: interrupted
    run the same command again (index build: with --resume): finished work is kept, and finished calls are in the cache
"""
# seconds from Ctrl-C to the end of the process, however busy it is
_LONGEST_END = 0.8


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (``sys.argv`` by default) and exit."""
    try:
        from mrag_eval.core import ending_within, hidden_on_screen, install_redaction

        with ending_within(_LONGEST_END, ("\n" if os.isatty(2) else "") + _INTERRUPTED):
            install_redaction()
            with hidden_on_screen():
                _run(arguments)
    except KeyboardInterrupt:
        if "--debug" in (sys.argv if arguments is None else arguments):
            raise
        sys.stderr.write(_INTERRUPTED)
        sys.exit(130)
    sys.exit(0)


def _run(arguments: Sequence[str] | None) -> None:
    from mrag_eval.cli._app import Session, app
    from mrag_eval.core import MragError

    session = Session()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="mrag-eval", obj=session)
    except MragError as error:
        if session.debug:
            raise
        _say(error.message, error.next_step or _SHOW)
        sys.exit(error.exit_code)
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


def _unexpected(error: Exception) -> tuple[str, str]:
    first = next(iter(str(error).splitlines()), "").strip()
    report = "if it is ours, report it with that and the output of mrag-eval doctor --json (CONTRIBUTING.md)"
    return f"{type(error).__name__}{f': {first}' if first else ''}", f"{_SHOW}; {report}"


def _say(message: str, next_step: str) -> None:
    print(f"mrag-eval: {message}", file=sys.stderr)
    print(f"    {next_step}", file=sys.stderr)
