"""Scoring replies and rankings that are there already, from Python."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from json.encoder import encode_basestring
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval import judging, models
from mrag_eval._front._arguments import Block, folder_for
from mrag_eval._front._log_text import unread_lines
from mrag_eval._front._results import Results
from mrag_eval._front._survey import (
    LANG_BY,
    GivenRow,
    Survey,
    grounded_judge,
    measured_names,
    passages_in,
    quotes_elsewhere,
    read_log,
)
from mrag_eval.config import (
    CONTEXT_PAIR,
    GROUNDED,
    JUDGES,
    Grounded,
    GroundedByPanel,
    Judge,
    Measurement,
    Prompt,
    Retrieval,
    asked_of,
    package_versions,
    ranking_measures,
    relevance_measures,
    validated,
)
from mrag_eval.core import UNSURE_LANGUAGE, Failure, ModelReply, Ranked, Retrieved, Vote
from mrag_eval.platform import ConfigError, Count, Natural, RunFiles, Wait, content_key, part_files, uncollected
from mrag_eval.systems import hits_of, text_hash

if TYPE_CHECKING:
    from pandas import DataFrame

    from mrag_eval.datasets import Held
    from mrag_eval.judging import Panel
    from mrag_eval.models import Checker
    from mrag_eval.scoring import ControlRecord, Given, RowRecord, Rules, TaskScores

log = logging.getLogger(f"lm_eval.{__name__}")
# The harness's name of a filter that does nothing.
_FILTER = "none"
# Scores of a task as a whole keep parts of the texts in the records of rows; so do judges, in their justifications.
_WITH_TEXTS = ("concurrence", "citations")


@uncollected()
def score(
    rows: Iterable[Block] | DataFrame | str | Path | Survey,
    metrics: str | Sequence[str] | None = None,
    *,
    answer: str = "plain",
    thinking: tuple[str, str] | None = None,
    task: str = "rows",
    model: str = "unnamed",
    output: str | Path | None = None,
    corpus: Iterable[str] | str | Path | None = None,
    seed: Natural = 0,
    columns: Mapping[str, str] | None = None,
    benchmark: str | Block | None = None,
    lang: str | None = None,
    qrels: str | Path | None = None,
    run: str | Path | None = None,
    breakdowns: Sequence[str] = (),
    hash_texts: bool = False,
    grounded: str | Block | None = None,
    at: str = "",
    join: str = "",
    max_unread: Natural | None = None,
    relevant_from: Count = 1,
) -> Results:
    """Score replies and rankings that are there already; no model is run but what tells support, if that is named.

    Given a corpus, a row is unscored by measures of relevance if the corpus holds no relevant id of it. Without one,
    ids are known from the rows' passages alone. The classifier or panel of ``grounded`` may also be the block
    ``judge.grounded`` of a task; beside ``by: panel`` it may have ``panel``, ``repeats`` and ``tie``.

    Args:
        rows: a JSON Lines, JSON, CSV or Parquet file, a run, a folder of BEIR or MTEB, a DataFrame or dictionaries: a
            system's log, by the names of docs/score.md, or your own benchmark's keys (``query``, ``answers`` ...) with
            ``reply`` and ``passages``, best first. Of a log that was read, what was found.
        metrics: names of metrics that need no judge and no translator, yours also as ``module:name``; by default all
            that the rows have what it takes for.
        answer: Where the answer is in the reply: plain, tag, line, choice or citation.
        thinking: What opens and closes the system's thinking, if that is not known.
        task: The name of the rows in reports.
        model: the name of the system in reports.
        output: the folder for results and samples; a temporary one by default.
        corpus: What the system searched: a JSON Lines file of passages, or an index. Contexts that are ids alone have
            its texts.
        seed: Random seed of the resampling for intervals.
        columns: part (``question``, ``answer``, ``contexts``, ``contexts.text`` ...) -> where it is in a row, for those
            that are not found by their names, or that two columns may be.
        benchmark: Join the references of this benchmark's rows by id and language.
        lang: The language of questions that name none, instead of detecting.
        qrels: Relevant ids by question, with grades: TREC, BEIR, MTEB, ...
        run: A TREC run with the rankings of rows without contexts.
        breakdowns: columns, or paths, by which scores are broken down as well.
        hash_texts: Write hashes in place of all texts of the rows.
        grounded: Tell whether contexts support answers: a classifier (a hub name or a folder), panel (the judges of
            mrag.yaml), or JSON with their settings, such as '{"by": "panel", "tie": "abstain"}'.
        at: the path of the rows in the file, such as ``results.*.output``.
        join: Make one row of the lines that share this column's value.
        max_unread: How many rows that cannot be read are left unscored. The default is 1 % of them, and at least ten.
        relevant_from: The lowest grade of a relevant document; ndcg has gains.

    Raises:
        ConfigError: for a metric that is unknown or needs a model, and for ``panel`` without judges.
        DataError: naming the row and the key; and if no relevant id of any row is in the corpus, or without one among
            the passages of all rows.
    """
    from mrag_eval.controls import ControlPool, ControlRule, reply_controls
    from mrag_eval.datasets import Benchmark, english_answers, with_absent
    from mrag_eval.planning import unsupported
    from mrag_eval.scoring import check_task_scores, summarize, tell_failures

    if isinstance(rows, Survey):
        found = rows
        found.corpus = found.corpus if corpus is None else corpus
    else:
        found = read_log(
            rows,
            columns=columns,
            benchmark=benchmark,
            lang=lang,
            qrels=qrels,
            run=run,
            breakdowns=breakdowns,
            at=at,
            join=join,
            max_unread=max_unread,
            relevant_from=relevant_from,
            corpus=corpus,
        )
        for head, text in unread_lines(found):
            log.warning("%s: %s %s", found.log.name, head, text)
    judge = grounded_judge(grounded)
    names = measured_names(found, metrics, judge)
    by = judge.grounded if {*GROUNDED} & {*names} else None
    by_panel = isinstance(by, GroundedByPanel)
    quoting = (*_WITH_TEXTS, *(GROUNDED if by_panel else ()))
    if hash_texts and (kept := [name for name in names if name in quoting]):
        raise ConfigError(f"--hash-texts: {kept[0]} keeps parts of the texts", "leave one of the two out")
    prompt = validated(Prompt, {"answer": answer, "thinking": thinking}, "score")
    form = str(prompt.answer)
    check_task_scores(names, list(found.docs.values()))
    if measures := relevance_measures(names):
        marked = with_absent(list(found.docs.values()), _held(found), measures)
        found.docs.update((doc.id, doc) for doc in marked)
    docs = list(found.docs.values())
    for line in unsupported((doc.query_lang for doc in docs if UNSURE_LANGUAGE not in doc.extra), names):
        log.warning("%s: %s", found.log.name, line)
    checker = models.load_checker(by) if isinstance(by, Grounded) else None
    panel = judging.build_panel(judge) if by_panel else None
    if panel is None and by_panel:
        missing = "score: no judge is configured, and grounded is by the panel: 'judges' in mrag.yaml"
        raise ConfigError(missing, judging.EXAMPLE)
    with Wait("scoring controls"):
        pool = ControlPool(docs, english_answers(Benchmark(task, docs)))
        controls = reply_controls(docs, pool, ControlRule(names, form))
    lines = _Lines(
        found, names, task, model, prompt, _retrieval(found, names), controls, hash_texts, judge, checker, panel
    )
    files = RunFiles(folder_for(output))
    files.write({}, {task: lines})
    scores = summarize(lines.records, seed)
    files.write(_content(lines, scores), {})
    if panel is not None:
        # of an answer that the log does not have nothing can be asked again
        asked = {step: why for step, why in scores.failures.items() if step == "grounding"}
        tell_failures(replace(scores, failures=asked), task)
    return Results(files.results)


def _retrieval(found: Survey, names: Sequence[str]) -> Retrieval:
    """Return what a run that shows these contexts has as its block: given ones, or the ranking of another system."""
    if not found.counts["context"]:
        return validated(Retrieval, {"mode": "no_ir"}, "score")
    if not ranking_measures(names):
        return validated(Retrieval, {"mode": "given"}, "score")
    block = {"mode": "all", "kind": "precomputed", "run": found.log.name, "k": found.longest, "depth": found.longest}
    return validated(Retrieval, block, "score")


@dataclass
class _Lines:
    """The samples of a log, scored while they are iterated over, as a run writes them.

    Attributes:
        records: those of the rows so far, without texts.
        hashes: of the harness's three hashes of every row so far. said: of the replies and the ids of the passages.
    """

    found: Survey
    names: Sequence[str]
    task: str
    model: str
    prompt: Prompt
    retrieval: Retrieval
    controls: Mapping[str, ControlRecord]
    hash_texts: bool
    judge: Judge = field(default_factory=Judge)
    checker: Checker | None = None
    panel: Panel | None = None
    records: list[RowRecord] = field(default_factory=list)
    hashes: Any = field(default_factory=sha256)
    said: Any = field(default_factory=sha256)

    @property
    def breakdowns(self) -> tuple[str, ...]:
        return (LANG_BY, CONTEXT_PAIR, *self.found.breakdowns)

    @property
    def supported_by(self) -> Mapping[str, Any] | None:
        """Return what decides the metrics of support; None without any."""
        if self.panel is not None:
            return judging.claims_by(self.panel, self.judge)
        return None if self.checker is None else self.checker.identity

    @property
    def instrument(self) -> dict[str, Any]:
        """Return what decides the scores beside the rows and their reading."""
        from mrag_eval.datasets import sha256_file
        from mrag_eval.languages import RELIABILITY_FILE, changed_languages
        from mrag_eval.scoring import words_of

        own = changed_languages({"en", *(doc.query_lang for doc in self.found.docs.values())})
        reliability = {"reliability": {"sha256": sha256_file(RELIABILITY_FILE)}}
        return {
            **words_of(self.names),
            **({} if self.panel is None else {JUDGES: self.panel.identities}),
            **(reliability if "correct_language" in self.names else {}),
            **({"languages": own} if own else {}),
        }

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.records, self.hashes, self.said = [], sha256(), sha256()
        from mrag_eval.scoring import Rules

        elsewhere = quotes_elsewhere(self.found) if any("quote" in name for name in self.names) else frozenset()
        rules = Rules(
            self.names,
            str(self.prompt.answer),
            self.retrieval,
            breakdowns=self.breakdowns,
            elsewhere=elsewhere,
            thinking=self.prompt.thinking,
        )
        with Wait("scoring rows", len(self.found.docs), "rows") as wait:
            for rows in self.found.given():
                yield from self._scored(rows, rules)
                wait.add(len(rows))

    def _scored(self, given: Sequence[GivenRow], rules: Rules) -> Iterator[dict[str, Any]]:
        from mrag_eval.retrieval import logged_row
        from mrag_eval.scoring import PromptCounts, read, records, with_grounding

        reads = [read(self._given(row), rules) for row in given]
        rows, share = [one.row for one in reads], None
        if self.checker is not None:
            rows = with_grounding(rows, self.checker)
        elif self.panel is not None:
            rows, share = judging.claims_judged(rows, self.panel, self.judge)
        for one, record in zip(reads, records(reads, rows, rules), strict=True):
            record = replace(record, controls=self.controls[record.row], claims_panel=share)
            # calls to the panel are counted once for the rows that are asked about together
            share = None
            if not self.records:
                counts = PromptCounts(prompts=len(self.found.docs))
                record = replace(record, prompts=counts, asked=asked_of(self.instrument))
            doc, reply = logged_row(one.given.doc, one.given.retrieved), str(one.given.reply)
            if self.hash_texts:
                doc, reply = _hashed(doc, (*self.breakdowns, *_NO_TEXT)), _hash(reply)
                if record.answer is not None and record.answer.text is not None:
                    record = replace(record, answer=replace(record.answer, text=_hash(record.answer.text)))
                if record.grounding is not None:
                    claims = tuple(
                        replace(claim, votes={seat: _unwritten(vote) for seat, vote in claim.votes.items()})
                        for claim in record.grounding.claims
                    )
                    record = replace(record, grounding=replace(record.grounding, claims=claims))
            self.records.append(record)
            yield self._line(record, doc, reply)

    def _given(self, row: GivenRow) -> Given:
        """Return a row of the log. As in XRAG, a question without passages may be passed on."""
        from mrag_eval.scoring import NOT_IN_LOG, Given

        hits, reply = row.passages or (), row.reply
        if row.unread is not None:
            return Given(
                row.doc, Retrieved(failures=(row.unread,)), ModelReply.failed(replace(row.unread, stage="answer"))
            )
        if reply is None:
            reply = ModelReply.failed(Failure("answer", "", NOT_IN_LOG))
        elif not isinstance(reply, ModelReply):
            reply = ModelReply(reply)
        if reply.failure is not None:
            reply = ModelReply.failed(replace(reply.failure, model=self.model))
        ranking = tuple(Ranked(hit.id, hit.doc_id, hit.lang, hit.score) for hit in hits)
        return Given(row.doc, Retrieved(hits, ranking if self.retrieval.searches else ()), reply, offered=not hits)

    def _line(self, record: RowRecord, doc: Mapping[str, Any], reply: str) -> dict[str, Any]:
        """Return a sample as the harness writes it. What the system was prompted with is not known."""
        # The harness makes samples and results inside its evaluator, of rows that are all in memory, and the standard
        # library's json with an indent, which hashes need, takes twice as long as `_indented`: neither suits a log.
        from mrag_eval.retrieval import said_text
        from mrag_eval.scoring import reference_of

        target, prompt = reference_of(doc), None
        texts = {"doc_hash": _indented(doc), "prompt_hash": json.dumps(prompt), "target_hash": target}
        hashes = {key: sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for key, text in texts.items()}
        self.hashes.update("".join(hashes.values()).encode())
        self.said.update(said_text(doc, reply).encode())
        return {
            "doc_id": len(self.records) - 1,
            "doc": doc,
            "target": target,
            "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {}}},
            "resps": [[reply]],
            "filtered_resps": [reply],
            "filter": _FILTER,
            "metrics": ["rows", *record.values],
            **hashes,
            "rows": record.to_dict(),
            **record.values,
        }


_FLAT = json.JSONEncoder(ensure_ascii=False, default=str).encode


def _indented(value: Any, margin: str = "\n") -> str:
    """Return a row as the harness dumps it before it hashes it: ``json.dumps`` with ``indent=2``, which is slow."""
    inner = f"{margin}  "
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is int or (kind is float and isfinite(value)):
        return repr(value)
    if isinstance(value, dict) and value:
        parts = [
            f"{encode_basestring(key if isinstance(key, str) else _FLAT(key))}: {_indented(part, inner)}"
            for key, part in value.items()
        ]
        return f"{{{inner}{f',{inner}'.join(parts)}{margin}}}"
    if isinstance(value, list | tuple) and value:
        return f"[{inner}{f',{inner}'.join([_indented(part, inner) for part in value])}{margin}]"
    return _FLAT(value)


def _content(lines: _Lines, scores: TaskScores) -> dict[str, Any]:
    """Return the result file as a run writes it."""
    from mrag_eval.scoring import measured_on, value_names

    task, model, rows = lines.task, lines.model, len(lines.records)
    directions = {"unscored": False, **value_names(lines.names, **measured_on(lines.retrieval))}
    means: dict[str, Any] = {"unscored": scores.unscored_share}
    means |= {name: found.value for name, found in scores.metrics.items() if found.value is not None}
    config = {
        "task": task,
        "output_type": "generate_until",
        "generation_kwargs": {},
        "retrieval": lines.retrieval.model_dump(mode="json"),
        "data": {"benchmark": "log", "breakdowns": list(lines.breakdowns)},
        "metrics": list(lines.names),
        "scores": scores.to_dict(),
        "measurement": _measured(lines).to_dict(),
    }
    return {
        "results": {
            task: {
                "name": task,
                "alias": task,
                "sample_len": rows,
                **{f"{name},{_FILTER}": value for name, value in means.items()},
                **{f"{name}_stderr,{_FILTER}": "N/A" for name in means},
            }
        },
        "configs": {task: config},
        "versions": {},
        "n-shot": {task: 0},
        "higher_is_better": {task: directions},
        "n-samples": {task: {"original": rows, "effective": rows}},
        "task_hashes": {task: lines.hashes.hexdigest()},
        "config": {"model": model, "model_args": {"model": model}},
        "model_name": model,
        "date": time.time(),
    }


def _measured(lines: _Lines) -> Measurement:
    """Return the record of what is measured: the rows, and how they are read; replies and passages are the system's."""
    from mrag_eval.models import Answering
    from mrag_eval.scoring import support_by

    found = lines.found
    outcome = Answering(lines.model, f"not ours ({lines.model})").as_dict()
    seats = models.summed(record.seats for record in lines.records)
    docs = {name: replace(doc, absent_ids=()) for name, doc in found.docs.items()}
    ids = sorted(docs)
    return Measurement(
        lines.task,
        # two logs under one name are two systems
        subject={"transport": outcome.pop("transport"), "log": lines.said.hexdigest()},
        setting={
            "replies": "given",
            "languages": "detected where not given" if found.counts["detected"] else "given",
            "row_texts": "hashed" if lines.hash_texts else "kept",
            "prompt": {
                "answer": lines.prompt.answer,
                "template": "unknown",
                **({} if lines.prompt.thinking is None else {"thinking": [*lines.prompt.thinking]}),
            },
            "judge": lines.judge.model_dump(mode="json"),
        },
        instrument=lines.instrument,
        data={
            "source": {"content": content_key([(name, docs[name].to_dict()) for name in ids])},
            "ran": {"rows": len(ids), "of": len(ids), "ids": content_key(ids)},
        },
        environment={"versions": package_versions()},
        outcome={**outcome, **({"seats": seats} if seats else {})},
    ).with_support({} if (by := lines.supported_by) is None else support_by(lines.names, by))


def _held(found: Survey) -> Held:
    """Return the corpus that was searched, as far as it is known."""
    from mrag_eval.datasets import Held
    from mrag_eval.retrieval import held_by_index
    from mrag_eval.retrievers import load_index

    if (corpus := found.corpus) is None:
        hits = (hit for rows in found.given() for row in rows for hit in row.passages or ())
        return Held.among(
            "score: the rows' passages", hits, complete=False, also=", or name the corpus that was searched"
        )
    if isinstance(corpus, str | Path):
        path = Path(corpus)
        if not part_files(path, "corpus"):
            return held_by_index(load_index(path), list(found.docs.values()), str(corpus))
        # what names them, without their texts
        named = ([(where, "", [{**item, "text": ""}])] for where, item in passages_in(path))
        return Held.among(f"score: {path}", (hit for one in named for hit in hits_of(one)[0] or ()))
    ids = dict.fromkeys(map(str, corpus))
    return Held("score: corpus", lambda doc, name: name in ids, tuple(ids)[:1])


def _hash(text: str) -> str:
    return f"sha256:{text_hash(text)}" if text.strip() else text


def _unwritten(vote: Vote) -> Vote:
    return replace(vote, justification=_hash(vote.justification), reply=vote.reply and _hash(vote.reply))


def _hashed(doc: Mapping[str, Any], kept: Sequence[str]) -> dict[str, Any]:
    """Return a row as it is logged with hashes for its texts; of ``extra`` only the keys ``kept`` stay."""
    out = {**doc, "query": _hash(doc["query"]), "answers": [_hash(text) for text in doc["answers"]]}
    if "choices" in doc:
        out["choices"] = [_hash(text) for text in doc["choices"]]
    out["extra"] = {key: doc["extra"][key] for key in kept if key in doc.get("extra", {})}
    out["passages"] = [{**hit, "text": _hash(hit["text"]), "title": _hash(hit["title"])} for hit in doc["passages"]]
    return out


# Keys of ``extra`` without texts that records are made of, besides those that scores are broken down by.
_NO_TEXT = (UNSURE_LANGUAGE, "question_id")
