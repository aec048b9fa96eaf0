"""Gate results as lines for the screen, JUnit XML, a Markdown summary and GitHub annotations."""

from __future__ import annotations

from xml.etree import ElementTree

from mrag_eval.core import columns, interval_text, p_text, pipe_table, points
from mrag_eval.report.comparison._gate import Check, GateResult

_MARK = {"pass": "pass", "FAIL": "FAIL", "not comparable": "????"}


def gate_lines(result: GateResult) -> list[str]:
    """Return one line per check and the outcome; scores are in points (x 100)."""
    lines = columns([(_MARK[check.verdict], _name(check), check.metric, _finding(check)) for check in result.checks])
    counts = {verdict: sum(check.verdict == verdict for check in result.checks) for verdict in _MARK}
    said = ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)
    return [*lines, f"{said} · exit code {result.exit_code}"]


def _name(check: Check) -> str:
    return check.task if check.language is None else f"  {check.task} [{check.language}]"


def _finding(check: Check) -> str:
    if check.verdict == "not comparable":
        return f"not comparable: {check.reason}"
    parts = [
        f"{points(check.baseline)} → {points(check.candidate)}",
        f"{points(check.difference or 0, '+')} {interval_text(check.low, check.high)}".rstrip(),
        f"p {p_text(check.p_value)}",
        f"n = {check.n:,}",
        f"limit −{points(check.limit or 0)}",
    ]
    if check.verdict == "pass" and check.detectable is not None:
        parts.append(f"smallest drop this n can show: {points(check.detectable + (check.limit or 0))}")
    return "   ".join(parts)


def junit(result: GateResult) -> str:
    """Return JUnit XML: one test case per check; a regression is a failure, a check that is not comparable an error."""
    suite = ElementTree.Element(
        "testsuite",
        name="mrag-eval gate",
        tests=str(len(result.checks)),
        failures=str(sum(check.verdict == "FAIL" for check in result.checks)),
        errors=str(sum(check.verdict == "not comparable" for check in result.checks)),
    )
    for check in result.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=check.task, name=_case(check))
        if check.verdict == "FAIL":
            ElementTree.SubElement(case, "failure", message=_finding(check))
        elif check.verdict == "not comparable":
            ElementTree.SubElement(case, "error", message=str(check.reason))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _case(check: Check) -> str:
    return check.metric if check.language is None else f"{check.metric} [{check.language}]"


def summary(result: GateResult) -> str:
    """Return a Markdown table for ``$GITHUB_STEP_SUMMARY``."""
    head = ("", "task", "metric", "language", "baseline", "candidate", "difference", "95%", "p", "n", "limit")
    rows = [
        [
            check.verdict if check.reason is None else f"{check.verdict}: {check.reason}",
            check.task,
            check.metric,
            check.language or "all",
            points(check.baseline),
            points(check.candidate),
            points(check.difference, "+"),
            interval_text(check.low, check.high),
            p_text(check.p_value),
            f"{check.n:,}",
            "" if check.limit is None else f"−{points(check.limit)}",
        ]
        for check in result.checks
    ]
    return "\n".join(["## mrag-eval gate", "", pipe_table(head, rows), ""])


def github_annotations(result: GateResult) -> list[str]:
    """Return GitHub workflow commands, one for each check that does not pass."""
    kinds = {"FAIL": "error", "not comparable": "warning"}
    return [
        f"::{kinds[check.verdict]} title={_escaped(f'{check.task} {_case(check)}')}::{_escaped(_finding(check))}"
        for check in result.checks
        if check.verdict in kinds
    ]


def _escaped(text: str) -> str:
    """Return the text with characters escaped that end a workflow command or one of its properties."""
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        text = text.replace(char, code)
    return text
