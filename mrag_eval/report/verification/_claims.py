"""What a run says that it measured, held against the task as shipped, its rows here, and the rest of its results.

A key of a submitted file never decides by itself how the file is checked: each of :data:`SWITCHES` is a claim.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any

from mrag_eval.config import (
    DETECTORS,
    GROUNDED,
    JUDGES,
    RELEASED,
    SUFFICIENCY,
    SUPPORT,
    asked_of,
    by_block,
    is_named,
    judged_metrics,
    mode_named,
    package_versions,
    shown,
)
from mrag_eval.core import ANY_LANGUAGE
from mrag_eval.datasets import identity_of, read_locally, sha256_file
from mrag_eval.languages import RELIABILITY_FILE
from mrag_eval.planning import deviations, shipped
from mrag_eval.platform import content_key
from mrag_eval.report.files._results import LeafResult, ResultFile
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Differing, Kind, Remark, differing, value_text
from mrag_eval.report.verification._task_here import TaskHere
from mrag_eval.scoring import RowRecord, words_of

# Stands for a model that nothing else in a run describes.
_ANY = "a model"
# Seconds by which the clocks of two machines may differ, and those of a day, which a zone of time shifts.
_CLOCKS, _DAY = 600, 86_400
# Models by name, and their part of the instrument: another than the shipped, or one that nobody asked, is a deviation.
_NAMED = {"judge.panel": JUDGES, "agent.planner": "planner", "agent.critic": "critic", "judge.grounded": SUPPORT,
          "retrieval.translator": "translator"}  # fmt: skip
# What differs between two copies of the same rows.
_PLACES = ("source.place", "source.corpus.place")
# What rows are, compared with the published ones.
_STANDING = ("source.published", "source.corpus.published", "source.corpus.recipe")
# What no version of this package reads otherwise.
_CONTENT = ("source.content", "source.rows", "source.questions", "source.corpus.content", "source.corpus.passages")


@dataclass(frozen=True, slots=True)
class Switch:
    """A key that decides which checks run.

    Attributes:
        key: of a task's record (``setting.replies``), of the results (``results:date``), or of a row (``rows:``).
        decides: what is compared otherwise, or not at all, where it is set.
        had: of a key of rows, whether a task with these settings has it. The other keys are compared with the task as
            shipped, and where a task leaves them open, with what is here.
    """

    key: str
    decides: str
    had: Callable[[TaskHere], bool] | None = None


def _translates(here: TaskHere) -> bool:
    block = here.retrieval
    return block is None or block.documents_in != "none" or not here.leaf.config.searches


SWITCHES = (
    Switch("setting.replies", "the rows are those of a log, which has no prompts and no benchmark"),
    Switch("setting.row_texts", "replies are hashes, and are not read again"),
    Switch("setting.filter_list", "what a filter made of the replies is taken as recorded"),
    Switch("setting.output_type", "which requests a row has"),
    Switch("setting.gen_prefix", "how a prompt ends"),
    Switch("setting.data.benchmark", "which rows there are"),
    Switch("setting.data.path", "where the rows are read again"),
    Switch("setting.data.share", "how many rows there are"),
    Switch("setting.prompt.template", "by what prompts are rendered, and replies are read"),
    Switch("setting.prompt.answer", "where the answer is in a reply"),
    Switch("setting.prompt.max_tokens", "whether prompts are shortened"),
    Switch("setting.texts.prompt", "whether prompts are those of the template here"),
    Switch("setting.retrieval.mode", "what a row shows, and what is compared with the corpus"),
    Switch("setting.retrieval.rerank", "from which list the passages are"),
    Switch("setting.retrieval.run_may_differ", "whether passages are compared with the corpus"),
    Switch("setting.retrieval.shuffle", "in which order passages are shown"),
    Switch("setting.retrieval.unanswerable", "whether passages are withheld"),
    Switch("setting.retrieval.document_translation", "whether the texts of passages are those of the corpus"),
    Switch("setting.judge.relevance.labels", "which documents are relevant"),
    Switch("setting.judge.correct_language.detector", "whether languages are told again"),
    Switch("setting.judge.language_check", "whether languages are told again"),
    Switch("setting.judge.prompt", "what judges were asked"),
    Switch("setting.judge.panel", "which judges were asked"),
    Switch("setting.judge.repeats", "how many seats vote"),
    Switch("setting.judge.grounded", "which classifier was asked"),
    Switch("setting.retrieval.translator", "whether texts are translations, which are not made again"),
    Switch("setting.agent.planner", "which model planned"),
    Switch("setting.agent.critic", "which model judged documents"),
    Switch("setting.metrics", "which values are computed again"),
    Switch("outcome.not_judged", "which metrics are left out"),
    Switch("instrument.languages", "whether replies are read by the words here"),
    Switch("instrument.normalizer", "whether words are compared as here"),
    Switch("instrument.segmenter", "whether words are cut as here"),
    Switch("environment.versions.mrag-eval", "whether what differs is of another version"),
    Switch("environment.versions.lm-eval", "whether what differs is of another version"),
    Switch("environment.versions.reading", "whether what differs is of another version"),
    Switch("data.index.content_hash", "whether passages are compared with the corpus here"),
    Switch("subject.transport", "whether the counts of the outcome are compared with the rows"),
    Switch("shipped", "whether settings are compared with the task as shipped"),
    Switch("unknown", "whether the outcome is compared with the model's arguments"),
    Switch("results:date", "which run is the newest"),
    Switch("results:chat_template", "whether a prompt is what a row renders to, or holds it"),
    Switch("results:group_subtasks", "of which tasks a group is the mean"),
    Switch(
        "rows:doc.trace",
        "the order of passages is the agents'",
        lambda h: mode_named(h.leaf.config.mode).source == "agents",
    ),
    Switch("rows:doc.reranked", "passages are the head of the reranked list", lambda h: bool(h.leaf.config.rerank)),
    Switch(
        "rows:doc.withheld",
        "passages need not be the head of the ranking",
        lambda h: h.leaf.config.retrieval.get("unanswerable") is not None,
    ),
    Switch("rows:doc.passages.original_text", "the text shown is a translation, which is not made again", _translates),
    Switch("rows:doc.passages.original_lang", "the language shown is that of a translation", _translates),
    Switch("rows:votes", "judges were asked", lambda h: bool(h.leaf.seats)),
)


# ------------------------------------------------------------------ against the task as shipped


def task_settings(leaf: LeafResult, tasks_folder: Path) -> Iterator[Remark]:
    """Compare what was measured with the task as the package ships it, models that the task names among it."""
    official = shipped(leaf.task, tasks_folder)
    if official is None:
        yield Remark(leaf.task, "deviation", "not a task of the package, which has no settings of it", "task")
        return
    if leaf.measurement.shipped is None and shipped(leaf.task) is not None:
        kind: Kind = "open" if other_versions(leaf) else "fault"
        yield Remark(leaf.task, kind, "the record does not say which version of the task's file it ran", "task")
    for found in by_block(deviations(leaf.measurement, tasks_folder)):
        # that the rows are a part is said with their number and the flag
        if found.key != "rows":
            text = f"{found.key} is {value_text(found.first)}, {_shipped(found.second)}"
            # a task's file of another version has settings that are not known
            yield Remark(leaf.task, "open" if found.key == "task" else "deviation", text, found.key)
    ships = official.measurement.setting
    for key, part in _NAMED.items():
        block, _, name = key.partition(".")
        one, other = ((setting.get(block) or {}).get(name) for setting in (leaf.measurement.setting, ships))
        named = other is not None or (one is not None and part not in leaf.measurement.instrument)
        if named and content_key(one) != content_key(other):
            yield Remark(leaf.task, "deviation", f"{key} is {value_text(one)}, {_shipped(other)}", key)
    lost = [name for name in ships.get("metrics") or () if name not in (leaf.measurement.setting.get("metrics") or ())]
    if lost:
        yield Remark(leaf.task, "deviation", f"metrics are without {', '.join(lost)}", "metrics")
    yield from _panel_models(leaf, ships.get("judge") or {})


def _panel_models(leaf: LeafResult, block: Mapping[str, Any]) -> Iterator[Remark]:
    """Compare the models of the judges with those that the task as shipped writes out."""
    written = [spec.get("model_args") or {} for spec in block.get("panel") or () if isinstance(spec, Mapping)]
    wanted = {str(args.get("model") or args.get("pretrained")) for args in written}
    found = {name.partition("#")[0] for name in leaf.measurement.judges}
    if len(written) == len(block.get("panel") or ()) and wanted and found and found != wanted:
        text = f"judges are {', '.join(sorted(found))}, in the task as shipped {', '.join(sorted(wanted)) or 'none'}"
        yield Remark(leaf.task, "deviation", text, JUDGES)


def other_versions(leaf: LeafResult) -> dict[str, str | None]:
    """Return the versions here of mrag-eval, lm-eval and the reading of replies, where the run had others."""
    here, there = package_versions(), leaf.config.versions
    return {name: here.get(name) for name in ("mrag-eval", "lm-eval", "reading") if there.get(name) != here.get(name)}


# ------------------------------------------------------------------ against the rest of the results


def record_follows(file: ResultFile, here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Compare the record with the rows of the samples and of the harness, and its versions with those here."""
    leaf = here.leaf
    ids = sorted({record.row for record in samples.records})
    ran = leaf.measurement.data.get("ran") or {}
    if ran.get("ids") != content_key(ids) or ran.get("rows") != len(ids):
        yield Remark(leaf.task, "fault", "the rows of the record are not those of the samples")
    total = ((file.content.get("n-samples") or {}).get(leaf.task) or {}).get("original")
    if ran.get("of") != total:
        yield Remark(leaf.task, "fault", f"{ran.get('of')} rows of the task in the record, {total} by the harness")
    for name, version in other_versions(leaf).items():
        there = leaf.config.versions.get(name)
        known = name != "mrag-eval" or there in RELEASED
        yield Remark(leaf.task, "note" if known else "open", f"run with {name} {there}, verified with {version}")
    for what in leaf.measurement.unknown:
        yield Remark(leaf.task, "open", f"the record does not know {what}, with which nothing was compared")
    left_out = {*(leaf.config.outcome.get("not_judged") or ())}
    named = leaf.measurement.setting.get("metrics") or ()
    if leaf.config.index.get("content_hash") and leaf.config.retrieval.get("corpus") == "benchmark":
        yield Remark(leaf.task, "fault", "data.index.content_hash is that of a corpus, and the task searches its own")
    if left_out - ({*judged_metrics(named, here.judge)} if not leaf.seats else set()):
        text = f"not_judged is {', '.join(sorted(left_out))}, and judges decide none of them, or were asked"
        yield Remark(leaf.task, "fault", text)
    if leaf.config.setting("replies") == "given" and samples.prompted:
        yield Remark(leaf.task, "fault", "replies are given by a log, and its rows have prompts, which no log has")
    hashed = samples if here.hashed else ()
    texts = [text for s in hashed for text in (*s.replies, s.doc.query, *s.doc.answers) if text.strip()]
    if plain := sum(not text.startswith("sha256:") for text in texts):
        yield Remark(leaf.task, "fault", f"row_texts is hashed, and {plain} of {len(texts)} texts are no hashes")


def rows_have(here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Yield a fault for each key of rows that decides how they are checked, and that no row of such a task has."""
    keys = [one.key.removeprefix("rows:") for one in SWITCHES if one.had is not None and not one.had(here)]
    found = {key: Differing(here.leaf.task, len(samples), "by the settings of its task") for key in keys}
    for sample in samples:
        for key in found:
            *above, name = key.split(".")
            held: Any = sample.line
            for part in above:
                held = held.get(part) or {} if isinstance(held, Mapping) else {}
            value = next((one[name] for one in (held if isinstance(held, list) else [held]) if name in one), None)
            if value is not None:
                found[key].add(sample.record.row, key, value, None)
    yield from chain.from_iterable(one.findings() for one in found.values())


def dated(file: ResultFile) -> Iterator[Remark]:
    """Compare the date of a run, and that in the name of its file, with today and with its version's release."""
    now, task = time.time(), ", ".join(file.leaves)
    there = {str(leaf.config.versions.get("mrag-eval")) for leaf in file.leaves.values()}
    first = max((datetime.fromisoformat(RELEASED[one]) for one in there if one in RELEASED), default=None)
    least = 0.0 if first is None else first.replace(tzinfo=timezone.utc).timestamp() - _DAY
    dates = [("date", file.date, _CLOCKS)]
    try:
        named = datetime.strptime(file.path.stem.removeprefix("results_").partition(".")[0], "%Y-%m-%dT%H-%M-%S")
        dates.append(("the date in the file's name", named.replace(tzinfo=timezone.utc).timestamp(), _DAY))
    except ValueError:
        pass
    for what, date, margin in dates:
        shows = datetime.fromtimestamp(date, timezone.utc).strftime("%Y-%m-%d %H:%M")
        if date > now + margin:
            yield Remark(task, "fault", f"{what} is {shows}, which is in the future")
        elif date < least:
            yield Remark(task, "fault", f"{what} is {shows}, before mrag-eval {', '.join(sorted(there))}")


# ------------------------------------------------------------------ against the rows here


def source_follows(here: TaskHere) -> Iterator[Remark]:
    """Compare the recorded source with that of the rows here: their content is computed again, not believed."""
    leaf = here.leaf
    recorded = leaf.config.source
    if leaf.config.data.get("path") and not read_locally(recorded.get("place") or {}):
        yield Remark(leaf.task, "fault", "source.place names no local copy, and data.path does")
    if here.rows is None:
        if identity_of(recorded).is_published:
            text = "the record says that the rows are the published ones, which was not computed again"
            yield Remark(leaf.task, "open", f"{text}: verify --data PATH reads a copy")
        return
    made = here.rows.source
    # without a declared hash, a copy is of unknown standing, and rows of a publisher have that of their revision
    local = {read_locally(source.get("place") or {}) for source in (recorded, made)}
    comparable = len(local) == 1 or "official" in (identity_of(recorded).status, identity_of(made).status)
    for key, one, other in differing(recorded, made, "source"):
        if is_named(key, _PLACES) or (is_named(key, _STANDING) and not comparable):
            continue
        place = made.get("place") or {}
        of = next((place[name] for name in ("path", "hub", "repository", "url") if name in place), "this machine")
        text = f"{key} is {shown(one)} in the record, {shown(other)} by the rows here ({of})"
        yield Remark(leaf.task, _kind(here, key, recorded, made), text)


def _kind(here: TaskHere, key: str, recorded: Mapping[str, Any], made: Mapping[str, Any]) -> Kind:
    """Return ``open`` for what another version may say of the same rows, as long as it claims no more than they are."""
    claims = identity_of(recorded).is_published and not identity_of(made).is_published
    return "open" if other_versions(here.leaf) and not claims and not is_named(key, _CONTENT) else "fault"


# ------------------------------------------------------------------ the models besides the evaluated one


def instruments_follow(here: TaskHere, records: Sequence[RowRecord]) -> Iterator[Remark]:
    """Compare judges, planner, critic, translator, reranker and detector with what else the results say of them."""
    yield from _as_asked(here, records)
    leaf, found = here.leaf, here.leaf.measurement.instrument
    labelled = any(r.labelling is not None and r.labelling.models for r in records)
    asked = labelled or any(r.panel or r.sufficiency_panel or r.claims_panel for r in records)
    looped = any(r.loop is not None for r in records)
    # without passages nobody is asked whether they suffice
    may_be_there = asked or (SUFFICIENCY in leaf.config.metrics and leaf.config.shows == "nothing" and leaf.seats)
    there = {
        JUDGES: may_be_there,
        **dict.fromkeys(("planner", "critic"), looped),
        "translator": any(record.translation is not None for record in records),
        "reranker": leaf.config.rerank.get("kind") == "listwise",
    }
    wanted = {
        **{role: found.get(role) or _ANY for role, is_there in there.items() if is_there},
        **_detector(here, found),
        # in the version of the run, which another machine may lack
        **{key: found.get(key) or version for key, version in words_of(leaf.config.metrics).items()},
        **({SUPPORT: found.get(SUPPORT) or _ANY} if {*GROUNDED} & {*leaf.config.metrics} else {}),
        # where other files are here, what they decide is not computed again
        **({"languages": found["languages"]} if found.get("languages") else {}),
    }
    for key, one, other in differing(found, wanted, "instrument"):
        text = f"{key} is {_text(one)}, {_text(other)} by its settings and rows"
        yield Remark(leaf.task, "fault", text)
    yield from _seats(here, asked=bool(may_be_there))


def _as_asked(here: TaskHere, records: Sequence[RowRecord]) -> Iterator[Remark]:
    """Compare what each model of the record is with its hash, which every process that asked it put into its rows."""
    wanted = asked_of(here.leaf.measurement.instrument)
    told = [record.asked for record in records if record.prompts is not None] or [{}]
    for key in sorted({*wanted, *(key for asked in told for key in asked)}):
        if any(asked.get(key) != wanted.get(key) for asked in told):
            yield Remark(here.leaf.task, "fault", f"instrument.{key} is not what the samples say was asked")


def _detector(here: TaskHere, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the detectors that are files, by content where they are here, and what is known of detectors."""
    block = here.leaf.config.judge.get("correct_language") or {}
    given = block.get("detector") or {}
    named = {ANY_LANGUAGE: given} if isinstance(given, str) else dict(given)
    paths = {code: Path(str(name)) for code, name in named.items() if name not in DETECTORS}
    wanted: dict[str, Any] = {}
    if paths and all(path.is_file() for path in paths.values()):
        hashes = {code: {"sha256": sha256_file(path)} for code, path in paths.items()}
        wanted["detector"] = {**hashes.pop(ANY_LANGUAGE, {}), **hashes}
    elif paths:
        wanted["detector"] = found.get("detector") or _ANY
    if block.get("min_recognised") is not None and "correct_language" in here.leaf.config.metrics:
        wanted["reliability"] = {"sha256": sha256_file(RELIABILITY_FILE)}
    return wanted


def _seats(here: TaskHere, *, asked: bool) -> Iterator[Remark]:
    """Compare the seats of the judges with the judge block, and with whether any judge was asked."""
    block, judges = here.judge, here.leaf.seats
    if not judges:
        return
    names = block.panel or tuple(dict.fromkeys(seat.rpartition("#")[0] or seat for seat in judges))
    once = block.repeats == 1
    wanted = {name if once else f"{name}#{nth}" for name in names for nth in range(1, block.repeats + 1)}
    if {*judges} != wanted:
        text = f"the judges are {', '.join(judges)}, {', '.join(sorted(wanted))} by the judge block"
        yield Remark(here.leaf.task, "fault", text)
    if not asked:
        yield Remark(here.leaf.task, "fault", "judges are recorded, and no row has a record of a panel")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        args = value.get("args") or {}
        return str(args.get("model") or args.get("pretrained") or value.get("model") or ", ".join(map(str, value)))
    return "nothing" if value is None else shown(value)


def _shipped(value: Any) -> str:
    return "not set in the task as shipped" if value is None else f"{value_text(value)} in the task as shipped"
