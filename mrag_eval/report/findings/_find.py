"""The findings of finished runs: what they show, and what they cannot."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mrag_eval.config import SOURCES
from mrag_eval.planning import deviations
from mrag_eval.platform import DataError, number_of
from mrag_eval.report.files._leaves import Leaf, PageRow, result_leaves
from mrag_eval.report.files._results import ResultFile, outcomes_text
from mrag_eval.report.files._samples import open_samples
from mrag_eval.report.files._systems import systems
from mrag_eval.report.findings._languages import Languages, marked, named
from mrag_eval.report.findings._lost import Lost
from mrag_eval.report.findings._record import MOST, Finding, Number
from mrag_eval.report.findings._systems import RunAgain, Seen, Systems, few, ranked, seen
from mrag_eval.report.findings._tests import LEAST, share_level
from mrag_eval.report.tables._policies import lost_across

log = logging.getLogger(f"lm_eval.{__name__}")
Runs = Sequence[tuple[Leaf, ResultFile]]
# Deviations from the task as shipped that are told elsewhere, and that of every task which is not the package's.
_TOLD = ("rows", "task", *SOURCES)


def findings(runs: Runs, rows: Mapping[str, Sequence[PageRow]]) -> list[Finding]:
    """Return at most five findings of the newest run of each system, what changed since the one before it first.

    ``rows`` are those of the tasks by label.

    The kinds that test share the level of 5%: the chance of any false claim is at most that.
    """
    newest: dict[tuple[str, str, str], Leaf] = {}
    before: dict[tuple[str, str, str], Leaf] = {}
    for leaf, _ in runs:
        key = (leaf.run, leaf.task, leaf.mode)
        before |= {key: newest[key]} if key in newest else {}
        newest[key] = leaf
    shown = seen(systems([*newest.values()], rows))
    good, whom, lost = Systems(shown), Languages(shown), Lost(shown)
    changed = RunAgain(seen(systems([*before.values()], rows)), shown)
    # a language is always left that is compared with nothing: such a kind never shows everything
    asked = dict.fromkeys(("whom", "lost"), lambda _level: False) | {"changed": changed.complete, "good": good.complete}
    kinds: dict[str, RunAgain | Systems | Languages | Lost]
    kinds = {"changed": changed, "good": good, "whom": whom, "lost": lost}
    levels = share_level({kind: asked[kind] for kind, of in kinds.items() if of.tests})
    found = [one for kind, of in kinds.items() for one in of.say(levels.get(kind, 0.0))]
    if {"all", "gold_lang"} <= {leaf.mode for leaf in newest.values()}:
        found += lost_across({file.path: file for _, file in runs}.values())[:1]
    said = [*found[: MOST - 1], *_unsaid([*newest.values()], shown, whom)]
    return [replace(one, next=one.next or _next(one, runs)) for one in said]


def _next(finding: Finding, runs: Runs) -> str:
    """Return the command that shows more of a finding: of two runs their comparison, the older or second one first."""
    labels = finding.rows.get("tasks", ())
    files = {leaf.label: (str(leaf.samples), file) for leaf, file in runs}
    folders = [*dict.fromkeys(str(files[label][1].path.parent) for label in labels)]
    # two runs of one folder
    two = folders if len(folders) == 2 else [*dict.fromkeys(files[label][0] for label in labels)]
    if finding.kind in ("changed", "good") and len(two) == 2 and "None" not in two:
        meant = " --differs all" if finding.words.get("differ", "").startswith("what differs") else ""
        return f"mrag-eval compare {' '.join(map(shlex.quote, reversed(two)))} --rows{meant}"
    every = " ".join(map(shlex.quote, folders or dict.fromkeys(str(file.path.parent) for _, file in runs)))
    more = {"good": "report {} -o report.html", "unsaid": "verify {}"}.get(finding.kind, "report {} --metrics all")
    return f"mrag-eval {more.format(every)}"


def findings_of(paths: Sequence[Path]) -> list[Finding]:
    """Return the findings of the result files at ``paths``, whose samples are read.

    Samples that cannot be read are left out with a warning: the figures do not need them.
    """
    runs = result_leaves(paths)
    rows: dict[str, list[PageRow]] = {}
    for leaf, _ in runs:
        try:
            rows[leaf.label] = [] if leaf.samples is None else [PageRow.of(one) for one in open_samples(leaf.samples)]
        except DataError as err:
            log.warning("%s: nothing is found in its rows: %s", leaf.label, err.message)
    return findings(runs, rows)


def _unsaid(leaves: Sequence[Leaf], shown: Sequence[Seen], languages: Languages) -> list[Finding]:
    """Return what the runs cannot say: what is unscored, cut, failed, few, marked, or too small to be seen."""
    parts = []
    names = dict.fromkeys(one.metric for one in shown)
    lacking: Counter[str] = Counter()
    for leaf in leaves:
        for metric in names:
            reasons = leaf.result.unscored.get(metric) or {}
            lacking.update({why: n for why, n in reasons.items() if not leaf.result.omits(why)})
    if lacking:
        whole = sum(lacking.values()) + sum(len(one.rows) for one in shown)
        said = "; ".join(f"{why} {n:,}" for why, n in lacking.most_common(2))
        parts.append(f"{number_of(sum(lacking.values()), 'row')} of {whole:,} without a score ({said})")
    if outcomes := outcomes_text(leaf.result for leaf in leaves):
        parts.append(outcomes)
    # the label of a task names a part of its corpus that was taken on purpose
    results = [
        (leaf.result, _TOLD if leaf.result.config.starter is None else (*_TOLD, "index.part")) for leaf in leaves
    ]
    apart = [one.text for own, told in results for one in deviations(own.measurement) if one.key not in told]
    parts += [f"figures without these differences: {few(apart)}"] if apart else []
    failed = dict.fromkeys(step for leaf in leaves for step in leaf.result.scores.failures)
    if failed and not lacking:
        parts.append(f"rows that failed ({', '.join(failed)})")
    if pieces := [leaf.part for leaf in leaves if leaf.part]:
        parts.append(f"the rows that were not run ({few(pieces)})")
    if bounds := [why for leaf in leaves if (why := leaf.result.config.upper_bound) is not None]:
        parts.append(few(bounds))
    if marks := list(dict.fromkeys(named(code) for one in shown for code in marked(one.system, one.metric))):
        parts.append(f"{few(marks)} beside other languages, as the controls mark {'them' if marks[1:] else 'it'}")
    sizes = Counter(key[0] for one in ranked(shown) for key in one.rows)
    small = sorted(named(code) for code, n in sizes.items() if n < LEAST)
    if small and len(sizes) > 1:
        parts.append(f"anything of {few(small)}, with fewer than {LEAST} rows")
    if languages.looks:
        look = min(languages.looks, key=lambda one: one.least)
        parts.append(
            f"a language whose distance from the others is below {Number(look.least, look.seen[0].metric):value}"
        )
    return [Finding("unsaid", "unsaid", {"parts": "; ".join(parts)})] if parts else []
