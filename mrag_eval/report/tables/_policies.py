"""Retrieval policies in one table: hit rates and ranks by language pair, from any runs that searched a corpus.

The Cross-Lingual Cost's Figure 1 and Tables 2, 5 and 6 as tables, for any number of languages. Ranking measures do not
depend on the evaluated model, so runs of any model will do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mrag_eval.config import ALL_BUT_THE_MODEL, MODES, SHOWN, differences, shown, upper_bound
from mrag_eval.core import same_language
from mrag_eval.platform import DataError, number_of
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._results import LeafResult, ResultFile, outcomes_text, read_results
from mrag_eval.report.files._scores import Score, scores_of
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.report.findings._record import Finding, Number
from mrag_eval.report.tables._layout_cells import own_row
from mrag_eval.report.tables._requirements import OF_THE_INDEX
from mrag_eval.report.tables._row_settings import OF_THE_ANSWER, unlike_shipped

_PERCENT = 100.0
# A measure of what was found, whether it is by score in a quota mode, and whose labels it uses if not a panel's.
_MEASURE = re.compile(r"((?:hit|recall|precision|mrr|ndcg|map)@\d+|shown@k)(_score_merged)?(_proxy\w*)?$")
# The papers' words for our modes, and the order of the rows; others follow by name.
_WORDS = {
    "all": "direct",
    "gold_lang": "language oracle",
    "oracle": "gold passages",
    "balanced_weighted": "balanced-weighted",
    "balanced_passages": "balanced by passages",
}
_ORDER = ("direct", "balanced", "balanced-weighted", "balanced by passages", "translation")
_MERGED = ", score-merged"
_BOUND = " (upper bound)"
# What the title of a table, or the rows' own column, says.
_SAID = (*OF_THE_INDEX, "index.store", "index.approximate", "data", "rows")
# What matters only if judges say which passages are relevant.
_OF_JUDGES = ("judge.repeats", "judges")
_MACROS = {"same_language": "same language", "cross_language": "cross language"}


@dataclass(frozen=True)
class _Setting:
    """The settings that two policies in one table share; ``share`` is that of English documents, if drawn."""

    data: str
    index: str
    depth: int
    k: int | None
    share: float | None

    @property
    def title(self) -> str:
        keys = {key: value for key, value in json.loads(self.data).items() if value not in (None, [])}
        name, _ = keys.pop("benchmark", "?"), keys.pop("breakdowns", None)
        shown = [f"{key} {', '.join(value) if isinstance(value, list) else value}" for key, value in keys.items()]
        shown_k = [] if self.k is None else [f"k {self.k}"]
        share = [] if self.share is None else [f"{_PERCENT * self.share:g}% English"]
        return " · ".join([str(name), *shown, self.index, f"depth {self.depth}", *shown_k, *share])


# A metric, a dimension and a cell of it.
_Figure = tuple[str, str, str]


@dataclass(frozen=True)
class _Policy:
    """A policy as it was run in one setting, and its figures with a value or a reason."""

    leaf: LeafResult
    scores: Mapping[_Figure, Score]
    part: str | None = None

    @property
    def source(self) -> str:
        """Return its task, how many of the rows were run if not all, and what came of it."""
        came = ", ".join(filter(None, (self.part, outcomes_text([self.leaf]))))
        return f"{self.leaf.task} [{came}]" if came else self.leaf.task

    @cached_property
    def differs(self) -> list[str]:
        """Return the settings that may change what is found, and are not those of the package's task of this name."""
        return unlike_shipped(self.leaf, (*self.ignored, *_SAID))

    @property
    def ignored(self) -> tuple[str, ...]:
        """Return the settings that change nothing of what is found."""
        labelled = self.leaf.scores.relevance
        return OF_THE_ANSWER if labelled is not None and labelled.judges else (*OF_THE_ANSWER, *_OF_JUDGES)

    def has(self, metric: str) -> bool:
        """Return whether any row has the metric."""
        return any(score.value is not None for (name, _, _), score in self.scores.items() if name == metric)

    @property
    def measures(self) -> list[str]:
        """Return the plain names of the ranking measures that it has by language pair."""
        names = (_MEASURE.match(metric) for metric, dimension, _ in self.scores if dimension == "pair")
        return list(dict.fromkeys(name[1] + (name[3] or "") for name in names if name))


Runs = dict[_Setting, dict[str, _Policy]]


def policy_tables(results: Sequence[Path | str]) -> list[Table]:
    """Return one table of means and one by language pair for every setting (questions, index, depth) among the results.

    If corpora with several shares of English were run, a table over the shares follows. Figures are in percent, with
    95% intervals. Quota policies have no single ranking: measures that depend on an order are blank there, and are in
    another row for their passages ordered by score. If a policy was run twice in a setting, the run counts that is like
    its task as shipped, the later of several, and a note names the settings that differ. Raises DataError if no result
    has a ranking measure by language pair.
    """
    found = _policies(read_results([Path(path) for path in results]))
    if not found:
        raise DataError(
            f"--layout policies: no result in {', '.join(map(str, results))} has hit, mrr or ndcg by language pair",
            "run tasks with these metrics whose rows know their document's language: --tasks xquad_policies; "
            "in a log, name it in each row: gold_doc_lang",
        )
    runs: Runs = {}
    tables = []
    for number, (setting, named) in enumerate(found.items(), 1):
        policies = runs[setting] = {label: _usual(several) for label, several in named.items()}
        left_out = ((label, _otherwise(one, policies[label])) for label, several in named.items() for one in several)
        notes = tuple(
            dict.fromkeys(f"{label}: a run is left out, of which {other}" for label, other in left_out if other)
        )
        tables += [
            replace(t, notes=t.notes + notes)
            for t in (_means(number, setting, policies), _pairs(number, setting, policies))
        ]
    return [*tables, *_shares(runs)]


def _policies(files: Iterable[ResultFile]) -> dict[_Setting, dict[str, list[_Policy]]]:
    """Return the runs of every policy in each setting, the latest first."""
    found: dict[_Setting, dict[str, list[_Policy]]] = {}
    for file in files:
        for leaf in file.leaves.values():
            scores = {(score.metric, score.dimension, score.cell): score for score in scores_of(file, leaf)}
            policy = _Policy(leaf, scores, file.part(leaf.task))
            if policy.measures:
                found.setdefault(_setting(leaf.config), {}).setdefault(_label(leaf.config), []).insert(0, policy)
    return found


def _usual(several: Sequence[_Policy]) -> _Policy:
    """Return the run that is like its task as shipped, the first of several."""
    return min(several, key=lambda one: (len(one.differs) + (one.part is not None), len(one.leaf.outcomes)))


def _otherwise(other: _Policy, chosen: _Policy) -> str:
    """Return the settings that differ in another run and may change what is found; empty if there are none."""
    if other is chosen:
        return ""
    records = (other.leaf.measurement, chosen.leaf.measurement)
    changed = differences(*records, ALL_BUT_THE_MODEL, (*other.ignored, "version", "ran"))
    found = [f"{one.key} was {shown(one.first)}" for one in changed]
    if other.part != chosen.part:
        found.append(f"{other.part or 'all rows'} were run")
    return "; ".join(found)


def _setting(config: TaskConfig) -> _Setting:
    questions = json.dumps(config.questions, sort_keys=True)
    return _Setting(questions, _index(config), config.depth, config.k, config.english_share)


def _index(config: TaskConfig) -> str:
    """Return a description of the index; a record (``configs.<task>.index``) adds its content hash."""
    words = [] if config.own_corpus else [f"corpus {config.corpus_shown}"]
    kind = config.kind or ("dense" if config.own_corpus else None)
    if ranked := config.searched_run[0]:
        words.append(f"ranked by {ranked}")
    elif kind:
        words.append(kind)
    if config.embedder and kind != "bm25":
        words.append(config.embedder if isinstance(config.embedder, str) else json.dumps(config.embedder))
    if config.index_content:
        words.append(config.index_content[:8])
    if config.is_unverified:
        words.append("imported, not verified")
    if config.store:
        words.append(config.store)
    if config.approximate:
        settings = json.dumps(config.approximate, sort_keys=True).encode()
        words.append(f"approximate {hashlib.sha256(settings).hexdigest()[:8]}")
    return ", ".join(words)


def _label(config: TaskConfig) -> str:
    """Return a policy in the papers' words, with the settings in which it differs from its mode's preset."""
    mode = str(config.mode)
    preset = MODES.get(mode)
    # how another program searched is not recorded
    unknown = preset is not None and preset.takes_run and (config.searched_run[0] or config.kind == "own")
    parts = ["as ranked there" if unknown else _WORDS.get(mode, mode)]
    if config.merge and (preset is None or config.merge != preset.merge):
        parts.append(f"merge {config.merge}")
    if config.query_translation and (preset is None or config.query_translation != preset.query_translation):
        parts.append(f"query translation {config.query_translation}")
    if config.languages:
        parts.append(f"languages {' '.join(config.languages)}")
    return ", ".join(parts) + (_BOUND if upper_bound(config.retrieval) else "")


def _ordered(policies: Mapping[str, _Policy]) -> list[tuple[str, _Policy, str]]:
    """Return (label, policy, suffix of its measures); a quota policy occurs twice, as a set and ordered by score.

    Upper bounds are last.
    """
    out = []
    place = {label: number for number, label in enumerate(_ORDER)}
    for label in sorted(policies, key=lambda p: (p.endswith(_BOUND), place.get(p, len(place)), p)):
        policy = policies[label]
        out.append((label, policy, ""))
        if any("_score_merged" in metric for metric, _, _ in policy.scores):
            out.append((label + _MERGED, policy, "_score_merged"))
    return out


def _columns(policies: Mapping[str, _Policy]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for policy in policies.values() for name in policy.measures))


def _means(number: int, setting: _Setting, policies: Mapping[str, _Policy]) -> Table:
    columns = _columns(policies)
    rows = []
    for key, words in (*_MACROS.items(), ("", "all questions")):
        for label, policy, suffix in _ordered(policies):
            cells = tuple(_cell(policy, name, suffix, "macro" if key else "", key) for name in columns)
            rows.append(Row((words, label), policy.source, cells, tuple(policy.differs)))
    notes = ("same and cross language: plain means over the pairs of one or two languages; all questions: over rows",)
    return Table(f"{number}", setting.title, ("pairs", "policy"), columns, tuple(rows), 1, notes, intervals=True)


def _pairs(number: int, setting: _Setting, policies: Mapping[str, _Policy]) -> Table:
    columns = _columns(policies)
    rows = []
    figures = {figure for policy in policies.values() for figure in policy.scores}
    for pair in sorted({cell for _, dimension, cell in figures if dimension == "pair"}):
        for label, policy, suffix in _ordered(policies):
            cells = tuple(_cell(policy, name, suffix, "pair", pair) for name in columns)
            rows.append(Row((pair.replace("->", " → "), label), policy.source, cells, tuple(policy.differs)))
    notes = (
        "a pair is the language of the question → that of its document",
        *(f"{one.sentence} What a merge finds of them: {one.next}" for one in _lost(policies)),
    )
    title = f"{setting.title} · by language pair"
    stub = ("pair", "policy")
    return Table(f"{number}-pairs", title, stub, columns, tuple(rows), 1, notes, intervals=True)


def lost_across(files: Iterable[ResultFile]) -> list[Finding]:
    """Return what a direct search loses in each setting in which the language oracle was run too."""
    found = _policies(files).values()
    return [lost for named in found for lost in _lost({label: _usual(several) for label, several in named.items()})]


def _lost(policies: Mapping[str, _Policy]) -> list[Finding]:
    """Return where a direct search shows fewer of the passages in another language than the oracle does, if anywhere.

    The intervals of a pair must not meet. The command searches again, with a merge that may find those passages.
    """
    direct, oracle = policies.get(_WORDS["all"]), policies.get(_WORDS["gold_lang"] + _BOUND)
    # the merge is of vectors
    if direct is None or oracle is None or direct.leaf.config.kind not in (None, "dense"):
        return []
    measure = next((name for name in (SHOWN, *direct.measures) if direct.has(name) and oracle.has(name)), "")
    lost: dict[str, tuple[Number, Number]] = {}
    for (metric, dimension, pair), score in direct.scores.items():
        most = oracle.scores.get((metric, dimension, pair))
        if (metric, dimension) != (measure, "pair") or most is None or same_language(*pair.split("->")):
            continue
        if score.value is None or most.value is None or score.high is None or most.low is None:
            continue
        if score.high < most.low:
            found = Number(score.value, measure, score.low, score.high, score.n)
            lost[pair.replace("->", " → ")] = found, Number(most.value, measure, most.low, most.high, most.n)
    if not lost:
        return []
    pairs = sorted(lost, key=lambda pair: lost[pair][0].value - lost[pair][1].value)
    worst = ", ".join(f"{pair} {lost[pair][0]:value} of {lost[pair][1]:value}" for pair in pairs[:3])
    words = {"pairs": number_of(len(lost), "pair"), "measure": measure, "worst": worst}
    numbers = {f"{pair}, {whose}": lost[pair][at] for pair in pairs for at, whose in enumerate(("direct", "oracle"))}
    command = run_with(direct.leaf.task, merge="centered")
    return [Finding("lost", "across", words, numbers, pairs, next=command)]


def run_with(task: str, **retrieval: str) -> str:
    """Return the command that searches for the questions of a task again, with other settings."""
    settings = json.dumps({"retrieval": retrieval})
    return f"mrag-eval run --model dummy --tasks {task} --metadata '{settings}' --output_path OUT"


def _shares(runs: Runs) -> list[Table]:
    """Return hit rates by the share of English documents (Cross-Lingual Cost, Table 6), one table per setting."""
    families: dict[tuple[str, str, int, int | None], dict[float, dict[str, _Policy]]] = {}
    for setting, policies in runs.items():
        if setting.share is not None:
            families.setdefault((setting.data, setting.index, setting.depth, setting.k), {})[setting.share] = policies
    tables = []
    for number, (key, by_share) in enumerate(families.items(), 1):
        if len(by_share) < 2:
            continue
        shares = sorted(by_share)
        anywhere = {label: policy for share in shares for label, policy in by_share[share].items()}
        order = [label for label, _, suffix in _ordered(anywhere) if not suffix]
        measure = next((m for s in shares for m in _columns(by_share[s]) if m.startswith("hit@")), f"hit@{key[2]}")
        rows = []
        for macro, words in _MACROS.items():
            for label in order:
                found = [by_share[s][label] for s in shares if label in by_share[s]]
                cells = tuple(
                    _cell(by_share[s][label], measure, "", "macro", macro)
                    if label in by_share[s]
                    else Cell(None, "not run")
                    for s in shares
                )
                differs = [text for policy in found for text in policy.differs]
                rows.append(own_row((words, label), cells, differs, [policy.leaf for policy in found]))
        title = f"{_Setting(*key, None).title} · {measure} by the probability of an English document"
        columns = tuple(f"{_PERCENT * s:g}% English" for s in shares)
        tables.append(Table(f"share-{number}", title, ("pairs", "policy"), columns, tuple(rows), 1, intervals=True))
    return tables


def _cell(policy: _Policy, measure: str, suffix: str, dimension: str, cell: str) -> Cell:
    task = policy.leaf.task
    # a measure that needs no order has one name only
    by_score = re.sub(r"(@\d+)", rf"\1{suffix}", measure)
    metric = next((name for name in dict.fromkeys((by_score, measure)) if policy.has(name)), None)
    if metric is None:
        whole = policy.scores.get((measure, "", ""))
        reasons = ", ".join(whole.unscored_reasons) if whole is not None else ""
        return Cell(None, reasons or f"run without {measure}", task=task)
    score = policy.scores.get((metric, dimension, cell))
    if score is None or score.value is None:
        return Cell(None, (score.reason if score is not None else None) or "no such pair", task=task, metric=metric)
    return percent_cell(score, task, metric)
