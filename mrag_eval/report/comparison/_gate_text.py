"""Gate results as lines for the screen, JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args
from xml.etree import ElementTree

from mrag_eval.core import SHARE, Scale, columns, interval_text, p_text, points
from mrag_eval.platform import number_of
from mrag_eval.report.comparison._changed_rows import Changes
from mrag_eval.report.comparison._changed_text import MOST_CHARS, changed_markdown
from mrag_eval.report.comparison._changed_where import where_worse
from mrag_eval.report.comparison._gate_rules import Check, GateResult, RuleVerdict
from mrag_eval.report.comparison._shown_text import in_markdown, table_within
from mrag_eval.report.files._leaves import labelled
from mrag_eval.scoring import more_is_better, scale_of

_CORRECTIONS: Mapping[str, str] = {
    "holm": "family-wise (Holm, max-t)",
    "bh": "Benjamini-Hochberg",
    "none": "uncorrected",
}
_OUTCOMES = {0: "pass", 1: "FAIL", 2: "not decided"}


def gate_lines(result: GateResult) -> list[str]:
    """Return the runs, one line per check, and the outcome; scores are in points (x 100) or their metric's unit."""
    lines = columns([(_verdict(check), _name(check), _metric(check), _finding(check)) for check in result.checks])
    left = [f"no rule for {task}: {', '.join(metrics)}" for task, metrics in result.without_rule.items()]
    return [
        *_runs(result),
        *lines,
        *left,
        f"{_counts(result)} · {_correction(result)} · exit code {result.exit_code}",
    ]


def _runs(result: GateResult) -> list[str]:
    return [f"{side}: {run}" for side, run in result.runs.items()]


def _verdict(check: Check) -> str:
    """Return the verdict with what it leaves open."""
    if check.verdict == "fail":
        return "FAIL"
    if check.verdict == "no worse":
        sign = "+" if check.unscored or _less_is_better(check) else "−"
        return "shown to be no worse" + (f" than {sign}{_points(check, check.limit)}" if check.limit else "")
    if check.verdict == "no drop shown" and check.could_miss is not None:
        return f"no drop shown (could miss up to {_points(check, max(check.could_miss, 0.0))})"
    return check.verdict


def _less_is_better(check: Check) -> bool:
    return more_is_better(check.metric) is False


def _counts(result: GateResult) -> str:
    counts = {verdict: sum(check.verdict == verdict for check in result.checks) for verdict in get_args(RuleVerdict)}
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)


def _correction(result: GateResult) -> str:
    """Return what the p-values are corrected for, and the level that they are compared with."""
    tests = number_of(result.tests, "test")
    return f"p: {_CORRECTIONS[result.correction]}, {tests}, level {result.alpha:g}"


def _name(check: Check) -> str:
    name = check.task if check.place is None else f"  {check.task} [{check.place}]"
    return labelled(name, check.part)


def _metric(check: Check) -> str:
    name = f"{check.metric}, unscored" if check.unscored else check.metric
    return name if check.against == "baseline" else f"{name}, since the {check.against}"


def _message(check: Check) -> str:
    """Return the finding for places that show no label of the task."""
    found = f"{_verdict(check)}: {_finding(check)}"
    return f"{found}   [{check.part}]" if check.part else found


def _finding(check: Check) -> str:
    if check.candidate is None:
        return "   ".join(filter(None, [str(check.reason), _mark(check)]))
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    parts = [
        " → ".join(filter(None, scores)) + _scale(check).note,
        f"{_points(check, check.difference, '+')} {_interval(check)}".strip(),
        "" if check.p_adjusted is None else f"p {p_text(check.p_adjusted)}",
        f"n = {check.n:,}" + (f" ({check.lost:,} more in one run only)" if check.lost and check.passes else ""),
        _allowed(check),
    ]
    return "   ".join(filter(None, [*parts, check.reason, check.why, check.caution, _mark(check)]))


def _mark(check: Check) -> str | None:
    said = [f"many rows failed: {check.marked}"] if check.marked else []
    said += [f"rows elsewhere in the candidate: {check.elsewhere}"] if check.elsewhere else []
    said += [f"limited by the metric: {check.limited}"] if check.limited else []
    return "   ".join(said) or None


def _scale(check: Check) -> Scale:
    return SHARE if check.unscored else scale_of(check.metric)


def _points(check: Check, value: float | None, sign: str = "") -> str:
    return points(value, sign, _scale(check))


def _interval(check: Check) -> str:
    """Return the interval of the difference, or that of a score with a floor or a ceiling, which has no sign."""
    if _bound(check) is None or check.low is None or check.high is None:
        return interval_text(check.low, check.high, _scale(check))
    return f"[{_points(check, check.low)}, {_points(check, check.high)}]"


def _allowed(check: Check) -> str:
    if (bound := _bound(check)) is not None:
        return f"{bound} {_points(check, getattr(check, bound))}"
    if check.unscored or _less_is_better(check):
        return f"allowed +{_points(check, check.limit)}" if check.limit else "no rise allowed"
    return f"allowed −{_points(check, check.limit)}" if check.limit else "no drop allowed"


def _bound(check: Check) -> str | None:
    """Return the name of the bound that the score itself is held to; None for a comparison."""
    return next((name for name in ("floor", "ceiling") if getattr(check, name) is not None), None)


def junit(result: GateResult) -> str:
    """Return JUnit XML: one test case per check.

    A regression is a failure, a check that cannot tell an error. The runs are properties.
    """
    undecided = [check for check in result.checks if check.verdict == "cannot tell"]
    suite = ElementTree.Element(
        "testsuite",
        name="mrag-eval gate",
        tests=str(len(result.checks)),
        failures=str(sum(check.verdict == "fail" for check in result.checks)),
        errors=str(len(undecided)),
    )
    properties = ElementTree.SubElement(suite, "properties")
    for side, run in result.runs.items():
        ElementTree.SubElement(properties, "property", name=side, value=run)
    for check in result.checks:
        case = ElementTree.SubElement(suite, "testcase", classname=check.task, name=_case(check))
        if check.verdict == "fail":
            ElementTree.SubElement(case, "failure", message=_message(check))
        elif check in undecided:
            ElementTree.SubElement(case, "error", message=_message(check))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _case(check: Check) -> str:
    name = _metric(check) if check.place is None else f"{_metric(check)} [{check.place}]"
    bound = _bound(check)
    return name if bound is None else f"{name}, {bound}"


def gate_markdown(result: GateResult, changes: Changes | None = None, page_url: str | None = None) -> str:
    """Return Markdown for a pull request or ``$GITHUB_STEP_SUMMARY``, at most :data:`MOST_CHARS` characters.

    The verdict comes first, then a table with the failed checks at its top, then the rows that changed, with links to
    the page at ``page_url``.
    """
    checks = sorted(result.checks, key=lambda check: get_args(RuleVerdict).index(check.verdict))
    head = ("verdict", "task", "metric", "score", "difference", "p", "n", "allowed")
    left = [f"{task}: {', '.join(metrics)}" for task, metrics in result.without_rule.items()]
    parts = [
        f"## mrag-eval gate: {_OUTCOMES[result.exit_code]}",
        "  \n".join(in_markdown(run, 300) for run in _runs(result)),
        f"{_counts(result)}. Points (× 100) unless another unit is named, candidate minus baseline; "
        f"{_correction(result)}.",
        table_within(head, [_cells(check) for check in checks], "lllrrrrl", MOST_CHARS // 3),
        *([in_markdown(f"Without a rule: {'; '.join(left)}.", 2_000)] if left else []),
    ]
    if changes is not None:
        parts.insert(1, f"**{in_markdown(where_worse(changes))}**")
        parts.append(changed_markdown(changes, page_url, MOST_CHARS - sum(map(len, parts)) - 100))
    return "\n\n".join(parts) + "\n"


def _cells(check: Check) -> list[str]:
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    return [
        ": ".join(filter(None, (_verdict(check), check.reason, check.why, check.caution, _mark(check)))),
        _name(check).strip(),
        f"{_metric(check)}{_scale(check).note}",
        " → ".join(filter(None, scores)),
        f"{_points(check, check.difference, '+')} {_interval(check)}".strip(),
        p_text(check.p_adjusted),
        (f"{check.n:,}" if check.n else "") + (f" ({check.lost:,} in one run only)" if check.lost else ""),
        "" if check.candidate is None else _allowed(check),
    ]


def github_annotations(result: GateResult) -> list[str]:
    """Return GitHub workflow commands, one for each check that does not pass."""
    kinds = {"fail": "error", "cannot tell": "warning"}
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
