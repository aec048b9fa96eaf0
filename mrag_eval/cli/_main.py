"""The command ``mrag-eval``.

Exit codes: 0 done; 1 a check failed (``tasks --check``, ``index info --verify``, ``doctor --strict``, ``gate``),
something that the tasks need is missing (``plan``, ``run``, ``retrieve``), a step failed for every row of a task, or
every vote of a judge (``run``, ``score``), or results could not be written; 2 wrong usage, a name that nothing has,
configuration, data or a missing package, with one line on stderr that says what is wrong and the next step below it
(any other failure too: a traceback comes with ``--debug`` only); 130 interrupted by Ctrl-C; 143 by SIGTERM.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
from typing import Any, NoReturn

__all__ = ["main"]

# After a message that already says which values are allowed.
_AGAIN = "change it, and run the same command again"
_LESS = (
    "free some, or ask for less at once (a smaller batch or model), and run the same command again (index build: with"
    " --resume): finished work is kept"
)
_SHOW = "mrag-eval --debug ... shows where it comes from"
_INTERRUPTED = """mrag-eval: interrupted
    run the same command again (index build: with --resume): finished work is kept, and finished calls are in the cache
"""
# seconds from Ctrl-C to the end of the process, however busy it is
_LONGEST_END = 0.8


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (``sys.argv`` by default) and exit."""
    if sys.stderr is None:
        sys.stderr = StringIO()
    if sys.stdout is None:
        _say("the output is closed", "send it to a file (> FILE), and run the same command again")
        sys.exit(2)
    try:
        from mrag_eval.platform import ending_within, guarded_screen, install_redaction

        # a name in another encoding, or a terminal that knows ASCII alone, is no reason to fail
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        with ending_within(_LONGEST_END, ("\n" if os.isatty(2) else "") + _INTERRUPTED):
            install_redaction()
            with guarded_screen():
                _run(arguments)
    except KeyboardInterrupt:
        if "--debug" in (sys.argv if arguments is None else arguments):
            raise
        sys.stderr.write(_INTERRUPTED)
        sys.exit(130)
    sys.exit(0)


def _run(arguments: Sequence[str] | None) -> None:
    from pydantic import ValidationError
    from typer import BadParameter

    from mrag_eval.cli._app import Session, app
    from mrag_eval.platform import MragError, is_full, is_out_of_memory

    session = Session()
    code: object = 0
    # the class of all errors of the command line, which typer does not export
    wrong_usage: Any = BadParameter.__base__
    try:
        code = app(
            args=None if arguments is None else list(arguments),
            prog_name="mrag-eval",
            obj=session,
            standalone_mode=False,
        )
    except MragError as error:
        if session.debug:
            raise
        _say(error.message, error.next_step or _AGAIN)
        sys.exit(error.exit_code)
    except wrong_usage as error:
        context: Any = getattr(error, "ctx", None)
        said = " ".join(error.format_message().split())
        # of a number out of its range typer names the bound alone
        if isinstance(error.__cause__, ValidationError):
            said += f"; given: {error.__cause__.errors()[0]['input']!r:.80}"
        if said:  # otherwise the help of a group was shown
            _say(said, f"{context.command_path if context is not None else 'mrag-eval'} --help   lists what it takes")
        sys.exit(2)
    except OSError as error:
        if session.debug:
            raise
        if isinstance(error, FileNotFoundError) and error.filename is None:
            _say("the folder in which this runs is not there any more", "change to another one, and run it again")
        elif error.strerror is None or not (error.filename or is_full(error)):
            _say(*_unexpected(error))
        else:
            _say(
                f"{error.filename or 'the output'}: {error.strerror}",
                "check that the path exists, may be read and written, and has space left on its disk",
            )
        sys.exit(2)
    except Exception as error:
        if session.debug:
            raise
        if isinstance(error, UnicodeEncodeError) and any("\udc80" <= letter <= "\udcff" for letter in error.object):
            name = " ".join(error.object.encode("utf-8", "backslashreplace").decode()[:200].split())
            _say(f"{name}: a name that is not UTF-8", "rename that file or folder, or work in another one")
        elif is_out_of_memory(error):
            _say(f"out of memory ({_named(error)})", _LESS)
        else:
            _say(*_unexpected(error))
        sys.exit(2)
    if code:
        sys.exit(code if isinstance(code, int) else 0)


def _unexpected(error: Exception) -> tuple[str, str]:
    report = "if it is ours, report it with that and the output of mrag-eval doctor --json (CONTRIBUTING.md)"
    return _named(error), f"{_SHOW}; {report}"


def _named(error: Exception) -> str:
    first = next(iter(str(error).splitlines()), "").strip()
    return f"{type(error).__name__}{f': {first}' if first else ''}"


def _say(message: str, next_step: str) -> None:
    print(f"mrag-eval: {message}", file=sys.stderr)
    print(f"    {next_step}", file=sys.stderr)
