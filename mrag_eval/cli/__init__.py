"""The command ``mrag-eval``.

Exit codes: 0 done; 1 a check failed (``tasks --check``, ``index verify``, ``doctor --strict``, ``bench``); 2 wrong
usage, configuration, data or a missing package, with one line on stderr that says what and the next step below it (any
other failure too: a traceback comes with ``--debug`` only); 130 interrupted.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (``sys.argv`` by default) and exit."""
    from mrag_eval.cli.app import Session, app
    from mrag_eval.errors import MragError

    session = Session()
    try:
        app(args=None if arguments is None else list(arguments), prog_name="mrag-eval", obj=session)
    except MragError as error:
        if session.debug:
            raise
        print(f"mrag-eval: {error.message}", file=sys.stderr)
        if error.next_step:
            print(f"    {error.next_step}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        if session.debug:
            raise
        print("mrag-eval: interrupted", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if session.debug:
            raise
        first = next(iter(str(error).splitlines()), "").strip()
        print(f"mrag-eval: {type(error).__name__}{f': {first}' if first else ''}", file=sys.stderr)
        print("    again with --debug shows where", file=sys.stderr)
        sys.exit(2)
    sys.exit(0)
