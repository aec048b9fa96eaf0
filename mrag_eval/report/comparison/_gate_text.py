"""Gate results as lines for the screen, JUnit XML, Markdown and GitHub annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args
from xml.etree import ElementTree

from mrag_eval.config import CORRECT
from mrag_eval.core import SHARE, Scale, columns, interval_text, language_name, p_text, pipe_table, points
from mrag_eval.platform import ConfigError, number_of
from mrag_eval.report.comparison._changed_rows import Changes
from mrag_eval.report.comparison._changed_text import MOST_CHARS, changed_markdown
from mrag_eval.report.comparison._changed_where import where_worse
from mrag_eval.report.comparison._gate_rules import Check, GateResult, RuleVerdict
from mrag_eval.report.comparison._shown_text import cut, in_markdown, table_within
from mrag_eval.report.files._leaves import labelled
from mrag_eval.scoring import scale_of

_CORRECTIONS: Mapping[str, str] = {
    "holm": "family-wise",
    "bh": "Benjamini-Hochberg",
    "none": "uncorrected",
}
_HEAD, _SIDES = ("verdict", "task", "metric", "score", "difference", "p", "n", "allowed"), "lllrrrrl"
# Characters of the name of a place; those of languages are short.
_PLACE = 60
_OUTCOMES = {0: "pass", 1: "FAIL", 2: "not decided"}
_WORDS = {"fail": "FAIL", "cannot tell": "cannot tell"}


def gate_lines(result: GateResult, *, verbose: bool = False) -> list[str]:
    """Return the finding as a sentence, one line per check, and the outcome, for a screen.

    Scores are in points (x 100) or their metric's unit. Without ``verbose``, the checks of languages and other cells
    that pass are counted, and what they could miss is said once. What else there is to say of a check is below it.
    """
    shown, below = _shown(result, verbose)
    lines = [gate_sentence(result)]
    words = ["pass" if check.passes else _WORDS[check.verdict] for check in shown]
    told = zip(words, shown, strict=True)
    rows = columns([(word, _name(check, result), _scores(check), _left_open(check)) for word, check in told])
    for check, line in zip(shown, rows, strict=True):
        lines += [line.rstrip(), *(f"      {said}" for said in _remarks(check, verbose or not check.passes))]
    return lines + below


def gate_tables(result: GateResult) -> str:
    """Return the lines of :func:`gate_lines` for a notebook, with the checks as a Markdown table."""
    shown, below = _shown(result)
    return "\n\n".join([gate_sentence(result), pipe_table(_HEAD, [_cells(c) for c in shown], _SIDES), "\n".join(below)])


def _shown(result: GateResult, verbose: bool = False) -> tuple[list[Check], list[str]]:
    """Return the checks that are listed, and the lines below them."""
    shown = [c for c in result.checks if verbose or not c.passes or c.place is None or _mark(c)]
    hidden = [check for check in result.checks if check not in shown]
    lines = [_hidden(hidden)] if hidden else []
    if result.left_out:
        lines.append(f"left out: {number_of(result.left_out, 'pair')} of languages of too few rows to fail")
    lines += [f"no rule for {task}: {', '.join(metrics)}" for task, metrics in result.without_rule.items()]
    return shown, [*lines, *_runs(result), f"{_counts(result)} · {_correction(result)} · exit code {result.exit_code}"]


def gate_sentence(result: GateResult) -> str:
    """Return what the gate found as one sentence: of what fails, the question language that got worst first.

    Of two runs of one system it ends with what differs between them.
    """
    said = _found(result)
    return said if result.cause is None else f"{said[:-1]}; {result.cause}."


def _found(result: GateResult) -> str:
    failed = [check for check in result.checks if check.verdict == "fail"]
    undecided = [check for check in result.checks if check.verdict == "cannot tell"]
    if failed:
        more = f"; {number_of(len(failed) - 1, 'more check')} failed" if len(failed) > 1 else ""
        return f"FAIL: {_worst_of(failed, result)}{more}."
    if undecided:
        one = undecided[0]
        return f"Not decided: {len(undecided)} of {len(result.checks)} checks; {_name(one, result)}: {one.reason}."
    better = [check for check in result.checks if check.improved and check.place is None]
    if better:
        said = "; ".join(
            f"{check.metric} {_points(check, check.difference, '+')} {_interval(check)}" for check in better
        )
        return f"Pass, and better: {said}."
    return "Pass: no drop beyond what the rules allow was found."


def _worst_of(failed: Sequence[Check], result: GateResult) -> str:
    """Return what fails most: a language, else the whole with its worst one, else a pair with that of its questions."""
    named = [check for check in failed if check.language is not None and check.by is None and not check.unscored]
    languages = [check for check in named if "->" not in str(check.language)]
    whole = [check for check in failed if check.place is None]
    among = languages or whole or failed
    first = min(CORRECT.index(one.metric) if one.metric in CORRECT else len(CORRECT) for one in among)
    metric = CORRECT[first] if first < len(CORRECT) else among[0].metric
    shown = (one for one in among if one.metric == metric)
    # that which is the furthest beyond what is allowed
    check = max(shown, key=lambda one: abs(one.difference or 0.0) - (one.limit or 0.0))
    allowed = f"{_points(check, check.baseline)} → {_points(check, check.candidate)}, {_allowed(check)}"
    if check.unscored:
        lost = round(((check.candidate or 0) - (check.baseline or 0)) * check.n)
        why = f": {check.why}" if check.why else ""
        return f"{_place(check)} has {lost} of {check.n:,} rows more without {check.metric} ({allowed}{why})"
    if _bound(check) is not None:
        return f"{check.metric} of {_place(check)} is {_points(check, check.candidate)}, {_allowed(check)}"
    fell, rose = (check.better, check.worse) if check.less_is_better else (check.worse, check.better)
    counts = _counted(check, len(fell), len(rose), check.n)
    found = f"{_place(check)} {counts} ({allowed})"
    if check.place is None and check.worst is not None and check.worst.n < check.n:
        at = check.worst
        return f"{found}, most in {_spoken(at.language)}: {_counted(check, at.worse, at.better, at.n)}"
    if "->" in (check.language or "") and check.by is None:
        question = str(check.language).partition("->")[0]
        pairs = {one.language: one for one in result.checks if _same(one, check) and "->" in (one.language or "")}
        own = [one for name, one in pairs.items() if str(name).startswith(f"{question}->")]
        steps = [one for one in result.checks if _same(one, check) and one.language == question] or own
        n, worse, better = (
            sum(part) for part in zip(*((c.n, len(c.worse), len(c.better)) for c in steps), strict=True)
        )
        return f"{_spoken(question)} {_counted(check, worse, better, n)}; {found}"
    return found


def _same(one: Check, other: Check) -> bool:
    return all(getattr(one, key) == getattr(other, key) for key in ("task", "metric", "unscored", "against"))


def _counted(check: Check, worse: int, better: int, n: int) -> str:
    """Return how many answers, or rows, of all got worse and better."""
    if check.metric in CORRECT:
        return f"lost {number_of(worse, 'right answer')} of {n:,} and won {better or 'none'}"
    return f"got worse in {worse:,} of {n:,} rows and better in {better or 'none'}"


def _place(check: Check) -> str:
    """Return the place of a check in words."""
    if check.place is None:
        return check.task
    if check.by is not None:
        return check.place
    return (
        cut(str(check.language), _PLACE).replace("->", " → ")
        if "->" in str(check.language)
        else _spoken(check.language)
    )


def _spoken(language: str | None) -> str:
    """Return the name of a language, or what the rows have in its place."""
    try:
        return language_name(str(language))
    except ConfigError:
        return cut(str(language), _PLACE)


def _hidden(checks: Sequence[Check]) -> str:
    """Return the number of checks that are not listed, and the largest drop that one of them could miss."""
    told = [check for check in checks if check.could_miss is not None]
    line = f"pass  {number_of(len(checks), 'more check')} of languages, pairs and other cells (--verbose)"
    if not told:
        return line
    most = max(told, key=lambda check: check.could_miss or 0.0)
    rows = number_of(most.n, "row")
    return f"{line}; the largest drop that could go unseen: {_points(most, most.could_miss)} in {_place(most)} ({rows})"


def _left_open(check: Check) -> str:
    """Return what a verdict leaves open."""
    if check.improved:
        return "better"
    if check.verdict == "no worse":
        sign = "+" if check.unscored or _less_is_better(check) else "−"
        return "shown to be no worse" + (f" than {sign}{_points(check, check.limit)}" if check.limit else "")
    if check.verdict == "no drop shown":
        could = "" if check.could_miss is None else f", could miss {_points(check, max(check.could_miss, 0.0))}"
        return f"no drop shown{could}"
    return "holds" if check.verdict == "holds" else ""


def _remarks(check: Check, full: bool) -> list[str]:
    """Return what else there is to say of a check, a line each."""
    said = [check.reason, check.caution, _mark(check)]
    if not full:
        return [line for line in said if line]
    tested = "" if check.p_adjusted is None or check.improved else f"p {p_text(check.p_adjusted)}"
    counts = "" if check.candidate is None else f"n = {check.n:,}{_once(check)}"
    head = "   ".join(filter(None, [tested, counts, "" if check.candidate is None else _allowed(check)]))
    return [line for line in (head, *said, check.why) if line]


def _once(check: Check) -> str:
    return f" ({check.lost:,} more in one run only)" if check.lost and check.passes else ""


def _scores(check: Check) -> str:
    if check.candidate is None:
        return ""
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    return f"{' → '.join(filter(None, scores))}{_scale(check).note}   {_change(check)}"


def _change(check: Check) -> str:
    return f"{_points(check, check.difference, '+')} {_interval(check)}".strip()


def _runs(result: GateResult) -> list[str]:
    return [f"{side}: {run}" for side, run in result.runs.items()]


def _verdict(check: Check) -> str:
    """Return the verdict with what it leaves open."""
    return _left_open(check) or _WORDS.get(check.verdict, check.verdict)


def _less_is_better(check: Check) -> bool:
    return check.less_is_better


def _counts(result: GateResult) -> str:
    counts = {verdict: sum(check.verdict == verdict for check in result.checks) for verdict in get_args(RuleVerdict)}
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items() if n)


def _correction(result: GateResult) -> str:
    """Return what the p-values are corrected for, and the level that they are compared with."""
    tests = number_of(result.tests, "test")
    return f"p: {_CORRECTIONS[result.correction]}, {tests}, level {result.alpha:g}"


def _name(check: Check, result: GateResult) -> str:
    """Return metric and place of a check, with its task if there are several."""
    several = len({one.task for one in result.checks}) > 1
    named = f"{_metric(check)} · {check.place or 'all'}{f' · {check.task}' if several else ''}"
    return labelled(named, check.part)


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
        _change(check),
        "" if check.p_adjusted is None or check.improved else f"p {p_text(check.p_adjusted)}",
        f"n = {check.n:,}{_once(check)}",
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
    left = [f"{task}: {', '.join(metrics)}" for task, metrics in result.without_rule.items()]
    parts = [
        f"## mrag-eval gate: {_OUTCOMES[result.exit_code]}",
        "  \n".join(in_markdown(run, 300) for run in _runs(result)),
        f"{_counts(result)}. Points (× 100) unless another unit is named, candidate minus baseline; "
        f"{_correction(result)}.",
        table_within(_HEAD, [_cells(check) for check in checks], _SIDES, MOST_CHARS // 3),
        *([in_markdown(f"Without a rule: {'; '.join(left)}.", 2_000)] if left else []),
    ]
    parts.insert(1, f"**{in_markdown(gate_sentence(result))}**")
    if changes is not None:
        parts.insert(2, in_markdown(where_worse(changes)))
        parts.append(changed_markdown(changes, page_url, MOST_CHARS - sum(map(len, parts)) - 100))
    return "\n\n".join(parts) + "\n"


def _cells(check: Check) -> list[str]:
    scores = [_points(check, check.baseline), _points(check, check.candidate)]
    return [
        ": ".join(filter(None, (_verdict(check), check.reason, check.why, check.caution, _mark(check)))),
        labelled(check.task if check.place is None else f"{check.task} [{check.place}]", check.part),
        f"{_metric(check)}{_scale(check).note}",
        " → ".join(filter(None, scores)),
        _change(check),
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
