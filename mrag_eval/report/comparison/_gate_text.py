"""Gate results as lines for the screen, JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args
from xml.etree import ElementTree

from mrag_eval.core import columns, interval_text, p_text, points
from mrag_eval.report.comparison._changed_rows import Changes
from mrag_eval.report.comparison._changed_text import MOST_CHARS, changed_markdown
from mrag_eval.report.comparison._changed_where import where_worse
from mrag_eval.report.comparison._gate import Check, GateResult, Verdict
from mrag_eval.report.comparison._shown_text import in_markdown, table_within
from mrag_eval.report.files._leaves import labelled
from mrag_eval.scoring import more_is_better, scale_of

_CORRECTIONS: Mapping[str, str] = {"holm": "Holm", "bh": "Benjamini-Hochberg", "none": "uncorrected"}
_OUTCOMES = {0: "pass", 1: "FAIL", 2: "not decided"}


def gate_lines(result: GateResult) -> list[str]:
    """Return one line per check and the outcome; scores are in points (x 100) or their metric's unit."""
    lines = columns([(check.verdict, _name(check), check.metric, _finding(check)) for check in result.checks])
    return [*lines, f"{_counts(result)} · {_correction(result)} · exit code {result.exit_code}"]


def _counts(result: GateResult) -> str:
    counts = {verdict: sum(check.verdict == verdict for check in result.checks) for verdict in get_args(Verdict)}
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)


def _correction(result: GateResult) -> str:
    """Return what the p-values are corrected for, and the level that they are compared with."""
    tests = "1 test" if result.tests == 1 else f"{result.tests} tests"
    return f"p: {_CORRECTIONS[result.correction]}, {tests}, level {result.alpha:g}"


def _name(check: Check) -> str:
    name = check.task if check.language is None else f"  {check.task} [{check.language}]"
    return labelled(name, check.part)


def _message(check: Check) -> str:
    """Return the finding for places that show no label of the task."""
    return f"{_finding(check)}   [{check.part}]" if check.part else _finding(check)


def _finding(check: Check) -> str:
    if check.candidate is None or (check.reason is not None and check.verdict == "not comparable"):
        return "   ".join(filter(None, [str(check.reason), _mark(check)]))
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    parts = [
        " → ".join(filter(None, scores)) + scale_of(check.metric).note,
        f"{_points(check, check.difference, '+')} {_interval(check)}".strip(),
        "" if check.p_adjusted is None else f"p {p_text(check.p_adjusted)}",
        "" if check.p_within is None else f"p of a smaller drop {p_text(check.p_within)}",
        f"n = {check.n:,}",
        _allowed(check),
    ]
    if check.verdict == "pass" and check.detectable is not None and check.p_within is None:
        parts.append(f"smallest drop this n can show: {_points(check, check.detectable + (check.limit or 0))}")
    return "   ".join(filter(None, [*parts, check.reason, check.caution, _mark(check)]))


def _mark(check: Check) -> str | None:
    return check.marked and f"many rows failed: {check.marked}"


def _points(check: Check, value: float | None, sign: str = "") -> str:
    return points(value, sign, scale_of(check.metric))


def _interval(check: Check) -> str:
    """Return the interval of the difference, or that of a score with a floor or a ceiling, which has no sign."""
    if _bound(check) is None or check.low is None or check.high is None:
        return interval_text(check.low, check.high, scale_of(check.metric))
    return f"[{_points(check, check.low)}, {_points(check, check.high)}]"


def _allowed(check: Check) -> str:
    if (bound := _bound(check)) is not None:
        return f"{bound} {_points(check, getattr(check, bound))}"
    if more_is_better(check.metric) is False:
        return f"allowed +{_points(check, check.limit)}" if check.limit else "no rise allowed"
    return f"allowed −{_points(check, check.limit)}" if check.limit else "no drop allowed"


def _bound(check: Check) -> str | None:
    """Return the name of the bound that the score itself is held to; None for a comparison."""
    return next((name for name in ("floor", "ceiling") if getattr(check, name) is not None), None)


def junit(result: GateResult) -> str:
    """Return JUnit XML: one test case per check.

    A regression is a failure; a check that is not comparable, or does not show what it must, is an error.
    """
    undecided = [check for check in result.checks if check.verdict in ("not comparable", "not shown")]
    suite = ElementTree.Element(
        "testsuite",
        name="mrag-eval gate",
        tests=str(len(result.checks)),
        failures=str(sum(check.verdict == "FAIL" for check in result.checks)),
        errors=str(len(undecided)),
    )
    for check in result.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=check.task, name=_case(check))
        if check.verdict == "FAIL":
            ElementTree.SubElement(case, "failure", message=_message(check))
        elif check in undecided:
            ElementTree.SubElement(case, "error", message=str(check.reason))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _case(check: Check) -> str:
    name = check.metric if check.language is None else f"{check.metric} [{check.language}]"
    bound = _bound(check)
    return name if bound is None else f"{name}, {bound}"


def gate_markdown(result: GateResult, changes: Changes | None = None, page_url: str | None = None) -> str:
    """Return Markdown for a pull request or ``$GITHUB_STEP_SUMMARY``, at most :data:`MOST_CHARS` characters.

    The verdict comes first, then a table with the failed checks at its top, then the rows that changed, with links to
    the page at ``page_url``.
    """
    order = ("FAIL", "not comparable", "not shown", "pass")
    checks = sorted(result.checks, key=lambda check: order.index(check.verdict))
    head = ("verdict", "task", "metric", "score", "difference, 95%", "p", "n", "allowed")
    parts = [
        f"## mrag-eval gate: {_OUTCOMES[result.exit_code]}",
        f"{_counts(result)}. Points (× 100) unless another unit is named, candidate minus baseline; "
        f"{_correction(result)}.",
        table_within(head, [_cells(check) for check in checks], "lllrrrrl", MOST_CHARS // 3),
    ]
    if changes is not None:
        parts.insert(1, f"**{in_markdown(where_worse(changes))}**")
        parts.append(changed_markdown(changes, page_url, MOST_CHARS - sum(map(len, parts)) - 100))
    return "\n\n".join(parts) + "\n"


def _cells(check: Check) -> list[str]:
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    return [
        ": ".join(filter(None, (check.verdict, check.reason, check.caution, _mark(check)))),
        _name(check).strip(),
        f"{check.metric}{scale_of(check.metric).note}",
        " → ".join(filter(None, scores)),
        f"{_points(check, check.difference, '+')} {_interval(check)}".strip(),
        p_text(check.p_adjusted if check.p_within is None or check.verdict == "FAIL" else check.p_within),
        f"{check.n:,}" if check.n else "",
        "" if check.candidate is None else _allowed(check),
    ]


def github_annotations(result: GateResult) -> list[str]:
    """Return GitHub workflow commands, one for each check that does not pass."""
    kinds = {"FAIL": "error", "not comparable": "warning", "not shown": "warning"}
    return [
        f"::{kinds[check.verdict]} title={_escaped(f'{check.task} {_case(check)}')}::{_escaped(_message(check))}"
        for check in result.checks
        if check.verdict in kinds
    ]


def _escaped(text: str) -> str:
    """Return the text with characters escaped that end a workflow command or one of its properties."""
    for char, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C")):
        text = text.replace(char, code)
    return text
