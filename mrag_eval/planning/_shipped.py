"""The task of a name as the package ships it: what a run is compared with before its figures are called the task's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from mrag_eval.config import (
    JUDGES,
    OWN,
    SOURCES,
    UNKNOWN,
    Differs,
    Measurement,
    RunTasks,
    differences,
    is_named,
    overlaid,
    read_task_yaml,
    setting_of,
    split_config,
    undotted,
)
from mrag_eval.datasets import declaration_of, identity_of, sha256_file, validate_data
from mrag_eval.judging import prompt_texts, seat_texts
from mrag_eval.languages import RELIABILITY_FILE
from mrag_eval.platform import ConfigError, content_key, json_value, number_of, reading_back, tasks_folder
from mrag_eval.scoring import METRIC_NAMES, words_of

_MODE = "retrieval.mode"
# The parts of the instrument that a task leaves open, beside what decides one metric alone: models, detectors that a
# setting names, and other libraries' cutting of words.
_LEFT_OPEN = (JUDGES, "planner", "critic", "translator", "reranker", "detector", "segmenter")

# Articles of an edition: by Wikipedia's list of its editions on 25 March 2023, which names those above 500,000; of am
# and th, the rows of the hub's wikimedia/wikipedia of 1 November 2023.
_ARTICLES = {
    "am": 13_906, "ar": 1_203_486, "de": 2_785_380, "en": 6_634_914, "es": 1_849_264, "fa": 956_293, "fi": 549_610,
    "fr": 2_508_170, "id": 641_887, "it": 1_803_910, "ja": 1_367_773, "ko": 629_502, "pt": 1_103_131, "ru": 1_903_561,
    "th": 159_719, "tr": 515_542, "vi": 1_282_016, "zh": 1_342_848,
}  # fmt: skip
# An index with a smaller share of an edition's articles is not the edition, whatever dump it is of.
_WHOLE = 0.5
# The pages that one file of a dump in several files holds.
_PART_FILE = re.compile(r"\.xml-p(\d+)p(\d+)")


class Shipped(NamedTuple):
    """A task of the package: its settings as a record to compare with, and their hash."""

    measurement: Measurement
    sha256: str


def shipped(task: str, folder: Path | None = None, changes: Mapping[str, Any] | None = None) -> Shipped | None:
    """Return the task of this name as the package ships it; None if the package has none.

    The file is resolved with all that it includes, the user's config file aside. The harness is not imported.
    ``folder`` is that of the tasks, by default the package's. ``changes`` are settings by dotted key that replace the
    task's own.
    """
    path = _files(folder or tasks_folder()).get(task)
    return None if path is None else _shipped(task, path, path.stat().st_mtime_ns, json.dumps(changes or {}))


@lru_cache(maxsize=4)
def _files(folder: Path) -> dict[str, Path]:
    """Return every task file of the package by the name of its task, which is the file's."""
    return {path.stem: path for path in folder.rglob("*.yaml") if not path.stem.startswith("_")}


@lru_cache(maxsize=1024)
def _shipped(task: str, path: Path, _modified: int, changes: str) -> Shipped | None:
    raw = read_task_yaml(path)
    if raw.get("task") != task:
        return None
    raw = overlaid(raw, undotted(json_value(changes)))
    metadata = {**(raw.get("metadata") or {}), "config_source": str(path)}
    config = {**raw, "metadata": metadata}
    # changes may be those of a result file
    with reading_back(path):
        rest, blocks = split_config(config, METRIC_NAMES, run=RunTasks([config], {}))
    data = validate_data(blocks.data).model_dump(mode="json")
    setting = setting_of(blocks, data, rest, prompt_texts(blocks))
    record, asked = Measurement(task, setting=setting), seat_texts(blocks)
    return Shipped(record, content_key(record.deciding(["setting"]), *([asked] if asked else [])))


def deviations(
    record: Measurement | None, folder: Path | None = None, changes: Mapping[str, Any] | None = None
) -> list[Differs]:
    """Return every key in which a run is not the task as shipped, on the published data, over all of its rows.

    The first value of each is the run's. What a task leaves open, such as its judges, does not count; the user's own
    files of languages do. Of the settings of a task whose file has changed since, its version alone differs: what was
    different then is not known. ``folder`` and ``changes`` are as in :func:`shipped`.
    """
    if record is None:
        return [Differs(None, UNKNOWN, "unknown", "known")]
    official = shipped(record.task, folder)
    if official is None:
        return [Differs("setting", "task", record.task, "a task of the package")]
    rest = [*_rows(record, official.measurement.setting["data"]), *_corpus(record)]
    rest += [*_instrument(record), *_table(record, official.measurement)]
    if record.shipped not in (None, official.sha256):
        return [Differs("setting", "task", "of another version of the task's file", "of this one"), *rest]
    expected = (shipped(record.task, folder, changes) or official).measurement
    found = {one.key: one for one in differences(record, _followed(record, expected, folder, changes), ["setting"])}
    mine, theirs = _mode(record), _mode(expected)
    if mine != theirs:
        found[_MODE] = Differs("setting", _MODE, mine, theirs)
    return [*(found[key] for key in sorted(found)), *rest]


def _followed(
    record: Measurement, expected: Measurement, folder: Path | None, changes: Mapping[str, Any] | None
) -> Measurement:
    """Return the settings to compare a run with: the task's, with all that follows from the run's mode and metrics.

    A further metric changes no other, but needs texts and a depth. Another mode is one difference, not all that it
    needs.
    """
    metrics = record.setting.get("metrics")
    given = {_MODE: _mode(record)} if _mode(record) not in (None, _mode(expected)) else {}
    given |= {"metrics": metrics} if metrics and metrics != expected.setting.get("metrics") else {}
    try:
        found = shipped(record.task, folder, {**(changes or {}), **given}) if given else None
    except ConfigError:
        # a setting that the task cannot have, or that this version does not know
        found = None
    return expected if found is None else found.measurement


def _mode(record: Measurement) -> Any:
    return record.setting.get("retrieval", {}).get("mode")


def _rows(record: Measurement, block: Mapping[str, Any]) -> Iterator[Differs]:
    """Yield the keys in which the rows that ran are not all of the published ones, or their passages are others.

    ``block`` is the task's block ``data``: one whose rows are the user's own has none that were published.
    """
    ran = record.data.get("ran") or {}
    if ran.get("rows") != ran.get("of"):
        yield Differs("data", "rows", f"{ran.get('rows', 0):,} of {ran.get('of', 0):,}", "all")
    declared = declaration_of(block)
    if declared is not None and declared.is_own(block):
        return
    source = record.data.get("source") or {}
    for key, part in zip(SOURCES, (source, source.get("corpus")), strict=True):
        # a corpus without a publisher is told by its recipe
        if key == "source" or (isinstance(part, Mapping) and "published" in part):
            found = identity_of(part or {})
            if not found.is_published:
                yield Differs("data", key, found.reason, "the published ones")


def _corpus(record: Measurement) -> Iterator[Differs]:
    """Yield the keys in which a corpus that somebody built is no whole edition of its source, whatever its name."""
    index = record.data.get("index") or {}
    sources = (index.get("recipe") or {}).get("sources") or {}
    own = [lang for lang, source in sources.items() if source == "own"]
    if own:
        count = sum((index.get("passages") or {}).get(lang, 0) for lang in own)
        yield Differs("data", "index.recipe", f"own, {count:,} passages in {' '.join(own)}", "a known source")
    parts = [*(index.get("part") or ())]
    below = {lang: _below_edition(lang, str(source), index) for lang, source in sources.items() if lang not in parts}
    parts += [f"{lang} ({why})" for lang, why in below.items() if why]
    if parts:
        yield Differs("data", "index.part", f"a part of the source in {' '.join(parts)}", "all of it")


def _below_edition(lang: str, source: str, index: Mapping[str, Any]) -> str | None:
    """Return why passages of a source in an index are no whole edition of Wikipedia; None if nothing says so.

    A file of the dump is missing, or there are less than half as many passages as the edition had articles.
    """
    ends = sorted((int(first), int(last)) for first, last in _PART_FILE.findall(source))
    if len(ends) == 1 or any(a[1] + 1 < b[0] for a, b in pairwise([(0, 0), *ends])):
        return f"{number_of(len(ends), 'file')} of the dump"
    held, articles = (index.get("passages") or {}).get(lang), _ARTICLES.get(lang, 0)
    if "wiki" in source.lower() and held is not None and held < _WHOLE * articles:
        return f"{number_of(held, 'passage')} of an edition of {articles:,} articles in 2023"
    return None


def _instrument(record: Measurement) -> Iterator[Differs]:
    """Yield the parts of the instrument that no task leaves open and that are not as they ship."""
    ships = replace(
        record,
        instrument={
            **words_of(record.setting.get("metrics") or ()),
            "reliability": {"sha256": sha256_file(RELIABILITY_FILE)},
        },
    ).deciding(["instrument"])
    for key, value in sorted(record.deciding(["instrument"]).items()):
        if not (key.startswith(OWN) or is_named(key, _LEFT_OPEN)) and value != ships.get(key):
            yield Differs("instrument", key, value, ships.get(key))


def _table(record: Measurement, ships: Measurement) -> Iterator[Differs]:
    """Yield a table or a file that translated, where the task as shipped does not: nobody knows whose texts it has."""
    named = (ships.setting.get("retrieval", {}).get("translator") or {}).get("backend")
    file = "file" if (record.data.get("source") or {}).get("translations") else None
    by = (record.instrument.get("translator") or {}).get("backend") or file
    if by in ("table", "file") and by != named:
        yield Differs("instrument", "translator", by, "a model")
