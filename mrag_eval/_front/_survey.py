"""What a log holds, and what can be scored of it: its questions, read once without their contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrag_eval._front._arguments import Block
from mrag_eval._front._logs import UNREAD, Log
from mrag_eval.config import GROUNDED, SHOWN, Judge, check_grounded, judged_metrics, relevance_measures, validated
from mrag_eval.core import UNSURE_LANGUAGE, Failure, Hit, RagDoc, normalize_language, same_language
from mrag_eval.platform import ConfigError, DataError, Wait, beside, did_you_mean, json_value, part_files, uncollected
from mrag_eval.systems import LogReading, check_passages, hits_of, in_own_terms, text_hash, told_languages

if TYPE_CHECKING:
    from pandas import DataFrame

# Rows, and characters of their texts, that are in memory together.
ROWS, CHARACTERS = 500, 16 << 20
# Key of ``extra``: how the language of the question is known.
LANG_BY = "query_lang_by"
# The default metrics, by what the rows must have.
_DEFAULTS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("answer",), ("correct_language", "language_mix", "refused")),
    (("context", "language of a context"), ("passages_in_language",)),
    (
        ("answer", "text of a context"),
        ("verbatim_quote", "quote_elsewhere", "quote_stitched", "quote_nowhere", "copied"),
    ),
    (("answer", "reference"), ("char3gram_recall", "match_unicode", "f1_unicode")),
    (("answer", "choices"), ("acc",)),
    (("context", "relevant_ids", "id of a context"), (SHOWN, "hit@5", "mrr@10", "ndcg@10")),
)


@dataclass(frozen=True)
class GivenRow:
    """A row that is scored: its question, its reply (None: the log has none), and its contexts, best first.

    ``unread`` is why nothing of it can be read.
    """

    doc: RagDoc
    reply: str | None
    passages: tuple[Hit, ...] | None
    unread: Failure | None = None


@dataclass
class Survey:
    """What a log holds, and its rows.

    Attributes:
        log: where they are.
        lang: the language of questions that name none; None: it is detected.
        benchmark: the benchmark whose rows the log answers, by name; None without one.
        docs: the questions by id.
        known: the benchmark's rows by their ids, and by those that its languages share.
        counts: how many rows have something.
        sought: quotes of replies that are in none of the contexts of their rows.
        longest: the most contexts of a row.
        first: the place of the first row.
        unread: the rows that cannot be read, by id, with the error.
        max_unread: how many there may be; None: a hundredth of all, and at least ten.
        relevant_from: the lowest grade of a relevant document.
        texts: what the corpus holds of the contexts that the log gives by their ids alone.
        corpus: what the system searched.
    """

    log: Log
    lang: str | None = None
    benchmark: str | None = None
    known: dict[str, list[RagDoc]] = field(default_factory=dict, repr=False)
    breakdowns: tuple[str, ...] = ()
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    run: Mapping[str, Sequence[Any]] = field(default_factory=dict, repr=False)
    docs: dict[str, RagDoc] = field(default_factory=dict, repr=False)
    counts: Counter[str] = field(default_factory=Counter)
    sought: dict[str, None] = field(default_factory=dict, repr=False)
    longest: int = 0
    first: str = ""
    unread: dict[str, DataError] = field(default_factory=dict, repr=False)
    max_unread: int | None = None
    relevant_from: int = 1
    texts: dict[str, Mapping[str, Any]] = field(default_factory=dict, repr=False)
    corpus: Iterable[str] | str | Path | None = field(default=None, repr=False)

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield place and content of each row, with its id."""
        rows = self.log.rows()
        numbered = ((where, {**row, "id": n} if row.get("id") is None else row) for n, (where, row) in enumerate(rows))
        for where, row in numbered:
            if self.run and row.get("passages") is None:
                # a run leaves out the questions for which nothing was found
                listed = self.run.get(str(row["id"]), ())
                row = {**row, "passages": [{"id": line.passage, "score": line.score} for line in listed]}
            if self.texts and row.get("passages"):
                row["passages"] = [{**self.texts.get(str(one.get("id")), {}), **one} for one in row["passages"]]
            yield where, row

    def chunks(self) -> Iterator[list[tuple[str, dict[str, Any]]]]:
        """Yield rows that fit into memory together."""
        chunk: list[tuple[str, dict[str, Any]]] = []
        size = 0
        for where, row in self.rows():
            chunk.append((where, row))
            size += sum(len(text) for text in _texts(row))
            if len(chunk) == ROWS or size > CHARACTERS:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def given(self) -> Iterator[list[GivenRow]]:
        """Yield the rows with their contexts, as many at a time as fit into memory."""
        for chunk in self.chunks():
            asked = [self.docs[str(row["id"])].query_lang for _, row in chunk]
            listed = [None if str(row["id"]) in self.unread else row.get("passages") for _, row in chunk]
            places = (where for where, _ in chunk)
            shown = hits_of(list(zip(places, asked, listed, strict=True)))
            yield [self._given(row, hits) for (_, row), hits in zip(chunk, shown, strict=True)]

    def _given(self, row: Mapping[str, Any], hits: tuple[Hit, ...] | None) -> GivenRow:
        from mrag_eval.scoring import context_pair

        doc = self.docs[str(row["id"])]
        if (fault := self.unread.get(doc.id)) is not None:
            return GivenRow(doc, None, None, Failure("search", "", "row not read", fault.message[:200]))
        doc = replace(doc, extra={**doc.extra, **context_pair(doc.query_lang, hits or ())})
        return GivenRow(doc, row.get("reply"), hits)

    def default_metrics(self) -> tuple[list[str], dict[str, list[str]]]:
        """Return the metrics of what the rows hold, and those left out, by what no row has."""
        names: list[str] = []
        left: dict[str, list[str]] = {}
        for needs, metrics in _DEFAULTS:
            missing = next((need for need in needs if not self.counts[need]), None)
            (names if missing is None else left.setdefault(missing, [])).extend(metrics)
        return names, left


@uncollected()
def read_log(
    rows: Iterable[Block] | DataFrame | str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    benchmark: str | Block | None = None,
    lang: str | None = None,
    qrels: str | Path | None = None,
    run: str | Path | None = None,
    breakdowns: Sequence[str] = (),
    asked: bool = False,
    at: str = "",
    join: str = "",
    max_unread: int | None = None,
    relevant_from: int = 1,
    corpus: Iterable[str] | str | Path | None = None,
) -> Survey:
    """Return what a log holds; every row is read once, and what is wrong with one is said before anything is scored.

    Args: those of :func:`mrag_eval.score`, and ``asked``: the rows are questions that nobody has answered yet.

    Raises:
        DataError: naming the file, the row and the key.
        ConfigError: for wrong columns, and for an unknown benchmark or language.
    """
    from mrag_eval.datasets import read_judgements
    from mrag_eval.retrieval import is_run, read_run

    if isinstance(rows, str | Path) and is_run(rows):
        if run is not None:
            raise ConfigError(f"{rows}: it is a run itself, beside the run {run}", "leave one of them out")
        # a ranking of questions that its judgements name
        log, run = replace(Log.of([{"id": name} for name in read_run(rows).lists]), name=str(rows)), rows
    else:
        log = Log.of(rows, columns, breakdowns, asked=asked, at=at, join=join)
    language = None if lang is None else normalize_language(lang)
    found = Survey(log, language, breakdowns=tuple(breakdowns), max_unread=0 if asked else max_unread)
    is_folder = isinstance(log.source, Path) and log.source.is_dir() and part_files(log.source, "corpus")
    found.corpus = corpus = log.name if corpus is None and is_folder else corpus
    if benchmark is not None:
        _join(found, benchmark)
    elif not (
        (run or {"contexts", "context_ids"} & log.reading.paths.keys())
        and (qrels or "relevant_ids" in log.reading.paths)
    ):
        # rankings are measured by ids alone
        log.check_question()
    found.qrels = {} if qrels is None else read_judgements(qrels)
    found.relevant_from = relevant_from
    found.run = {} if run is None else read_run(run).lists
    if isinstance(corpus, str | Path):
        if not Path(corpus).exists():
            raise DataError(
                f"{corpus}: no such file or folder{beside(Path(corpus))}",
                "name what the system searched: JSON Lines of passages, or the folder of an index",
            )
        bare = (one for _, row in found.rows() for one in row.get("passages") or () if not one.get("text"))
        found.texts = _texts_of({str(one.get("id")) for one in bare}, Path(corpus))
    with Wait(f"reading {log.name}", unit="rows") as wait:
        for chunk in found.chunks():
            _add(found, chunk)
            wait.add(len(chunk))
    if not asked:
        _check_named(found, breakdowns)
    _check_unread(found)
    sources = ((found.benchmark, found.known), (qrels, found.qrels), (run, found.run))
    for source, ids in sources:
        if source is not None and not ids.keys() & found.docs.keys():
            row, other = next(iter(found.docs)), next((f"'{id}'" for id in ids), "none")
            raise DataError(
                f"{log.name}: no row has an id of {source} (the first row's is '{row}', the first there is {other})",
                "keep its ids in the log, and name their column: --columns id=COLUMN",
            )
    if found.benchmark is not None and not found.counts["joined"]:
        name, doc = next((name, doc) for name, doc in found.docs.items() if name in found.known)
        there = ", ".join(dict.fromkeys(other.query_lang for other in found.known[name]))
        raise DataError(
            f"{log.name}: no row is of the language of its question in {found.benchmark} (the first, '{name}', is "
            f"{doc.query_lang}, there {there})",
            "name the language of all rows with --lang, or that of the benchmark in mrag.yaml, data",
        )
    return found


def _texts_of(ids: Collection[str], corpus: Path) -> dict[str, Mapping[str, Any]]:
    """Return what an index, or a file of passages, holds under these ids."""
    if not ids or part_files(corpus, "corpus"):
        return {str(item["id"]): item for _, item in passages_in(corpus) if str(item["id"]) in ids} if ids else {}
    from mrag_eval.retrievers import load_index

    held = load_index(corpus).passages_named(ids)
    keys = ("text", "lang", "doc_id")
    return {one.id: {key: getattr(one, key) for key in keys} for listed in held.values() for one in listed}


# Passages under any names, not our own alone.
_OF_ANY = LogReading({"contexts": ("passages",)}, named={"contexts": "passages"})


def passages_in(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the passages of a file or a folder, each with its place, in the terms of any shape's contexts.

    Raises DataError naming the line of one without an id.
    """
    from mrag_eval.datasets import log_rows

    for where, row in (row for file in part_files(path, "corpus") for row in log_rows(file, str(file), documents=True)):
        held = [item for item in in_own_terms({"passages": [row]}, _OF_ANY, where)["passages"] if "id" in item]
        if not held:
            raise DataError(f"{where}: it has no id", 'e.g. {"id": "p1", "doc_id": "d1", "lang": "en", "text": "..."}')
        yield from ((where, item) for item in held)


def _check_unread(found: Survey) -> None:
    """Raise DataError if too many rows cannot be read: the error of the first if all cannot, or none may."""
    allowed = max(10, len(found.docs) // 100) if found.max_unread is None else found.max_unread
    bad = len(found.unread)
    if bad and (allowed == 0 or bad == len(found.docs)):
        raise next(iter(found.unread.values()))
    if bad > allowed:
        first = next(iter(found.unread.values()))
        raise DataError(
            f"{found.log.name}: {bad:,} of {len(found.docs):,} rows cannot be read, the first: {first.message}",
            f"{first.next_step or 'correct them'}; or score the others: --max-unread {bad}",
        )


def _check_named(found: Survey, breakdowns: Sequence[str]) -> None:
    """Raise DataError for a column that the user names and that neither a row nor the benchmark has."""
    known = {key for doc in found.docs.values() for key in doc.extra} if breakdowns else set()
    for name, path in found.log.absent():
        if name.startswith("contexts.") and not found.counts["context"]:
            continue
        if name or path not in known:
            there = {*found.log.mapping.values(), *found.log.unread, *known} - {LANG_BY, UNSURE_LANGUAGE, path}
            hint = did_you_mean(path, there)
            raise DataError(f"{found.log.name}: no row has '{path}'{hint}", "name one that is there, or leave it out")


def _join(found: Survey, benchmark: str | Block) -> None:
    from mrag_eval.datasets import LOADERS, data_of_config, load_benchmark

    block: dict[str, Any] = {"benchmark": benchmark} if isinstance(benchmark, str) else dict(benchmark)
    name = str(block.get("benchmark"))
    block = {**data_of_config().get(name, {}), **block}
    if name in LOADERS and "parallel" in LOADERS[name].block.model_fields:
        # a log may ask any question in any language
        block.setdefault("parallel", True)
    loaded = load_benchmark(block)
    for doc in loaded.docs:
        for shared in dict.fromkeys((doc.id, str(doc.extra.get("question_id", doc.id)))):
            found.known.setdefault(shared, []).append(doc)
    found.benchmark = name
    found.breakdowns = (*found.breakdowns, *loaded.breakdowns)


def _add(found: Survey, chunk: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Add the questions of rows to what is known, and count what the rows hold."""
    found.first = found.first or chunk[0][0]
    open_ones = [(where, row) for where, row in chunk if row.get("lang") is None and isinstance(row.get("query"), str)]
    told = told_languages([row["query"] for _, row in open_ones]) if found.lang is None else []
    marks = dict(zip((where for where, _ in open_ones), told, strict=False))
    for where, row in chunk:
        name = str(row["id"])
        if name in found.docs:
            raise DataError(
                f"two rows have the id '{name}', the second is {where}",
                "give each row its own id, or leave out all ids: a row without one has its number, from 0"
                + ("" if found.log.asked else f"; the lines of one question: --join {found.log.mapping.get('id')}"),
            )
        try:
            if UNREAD in row:
                raise row[UNREAD]
            found.docs[name] = doc = _doc(found, name, row, where, marks.get(where))
            _count(found, doc, row, where)
        except DataError as error:
            step = error.next_step or "correct that row, leave it out, or name another column: --columns PART=COLUMN"
            found.unread[name] = DataError(error.message, step)
            found.docs[name] = RagDoc(name, "", found.lang or "en", extra={UNSURE_LANGUAGE: "the row was not read"})


def _doc(found: Survey, name: str, row: Mapping[str, Any], where: str, told: tuple[str, str | None] | None) -> RagDoc:
    """Return the question of a row; ``told`` is its detected language. Raises DataError for what is wrong with it."""
    from mrag_eval.datasets import as_question, with_grades

    reply = row.get("reply")
    if reply is not None and not isinstance(reply, str):
        raise DataError(f"{where}: 'reply' must be text, found {type(reply).__name__}", "an empty reply is ''")
    question = {key: value for key, value in row.items() if key not in ("reply", "passages")}
    code, unsure = (found.lang, None) if found.lang is not None else told or (None, None)
    is_told = question.get("lang") is None and code is not None
    if is_told:
        question["lang"] = code
        question |= {LANG_BY: "detected"} if found.lang is None else {}
        question |= {UNSURE_LANGUAGE: unsure} if unsure else {}
    try:
        doc = _of_benchmark(found, name, question)
    except ConfigError as error:
        raise DataError(f"{where}: 'lang': {error.message}", error.next_step) from None
    if doc is None:
        is_ranked = row.get("passages") is not None or bool(found.run)
        bare = question.get("query") is None and is_ranked and bool(row.get("relevant_ids") or found.qrels)
        if bare:
            # rankings are measured by ids alone
            question |= {"query": "?", "lang": question.get("lang") or found.lang or "en"}
            question[UNSURE_LANGUAGE] = "the log has no question"
        if question.get("query") is None:
            asks = found.benchmark is None and not found.log.asked
            step = "the benchmark: --benchmark NAME" if asks else "its language: --lang CODE"
            raise DataError(f"{where}: it has no question", f"name its column, or {step}")
        found.counts["detected"] += is_told and found.lang is None
        doc = as_question(question, where)
        doc = replace(doc, query="") if bare else doc
    grades = found.qrels.get(name, doc.grades or None)
    return doc if grades is None else with_grades(doc, grades, found.relevant_from)


def _of_benchmark(found: Survey, name: str, question: Mapping[str, Any]) -> RagDoc | None:
    """Return the benchmark's row that a row answers, and count how they agree; None if none is of its language.

    Languages may share an id: the row is the one that asks in the language which the log or the user gives. A language
    that was detected must be relied on, unless the words are the same.
    """
    held = found.known.get(name)
    if held is None:
        return None
    asked, lang = str(question.get("query") or "").split(), question.get("lang")
    fitting = [doc for doc in held if lang is None or same_language(doc.query_lang, str(lang))]
    alike = [doc for doc in (held if LANG_BY in question else fitting) if doc.query.split() == asked]
    those = alike or ([] if UNSURE_LANGUAGE in question else fitting)
    those = [doc for doc in those if doc.id == name] or those
    found.counts["joined" if len(those) == 1 else "other language"] += 1
    if len(those) != 1:
        return None
    found.counts["other words"] += bool(asked) and not alike
    kept = {key: question[key] for key in found.log.kept if key in question}
    return replace(those[0], id=name, extra={**those[0].extra, **kept})


def _count(found: Survey, doc: RagDoc, row: Mapping[str, Any], where: str) -> None:
    from mrag_eval.metrics import verbatim_quotes

    listed = row.get("passages")
    check_passages(listed or (), f"{where}, {found.log.mapping.get('contexts', 'passages')}")
    texts = [str(item["text"]) for item in listed or () if item.get("text")]
    quotes = verbatim_quotes(row.get("reply") or "", texts).found
    found.sought |= dict.fromkeys(quote for quote, place in quotes if place != "shown")
    found.longest = max(found.longest, len(listed or ()))
    found.counts.update(
        {
            "answer": row.get("reply") is not None,
            "context": bool(listed),
            "contexts given": listed is not None,
            "text of a context": bool(texts),
            "language of a context": any(item.get("text") or item.get("lang") for item in listed or ()),
            "id of a context": any(item.get("id") not in (None, "") for item in listed or ()),
            "reference": bool(doc.answers),
            "choices": bool(doc.choices),
            "relevant_ids": bool(doc.relevant_ids),
        }
    )


def _texts(row: Mapping[str, Any]) -> Iterator[str]:
    reply, passages = row.get("reply"), row.get("passages")
    yield reply if isinstance(reply, str) else ""
    for item in passages if isinstance(passages, list | tuple) else ():
        yield str(item.get("text") or "") if isinstance(item, Mapping) else ""


# The name of the judges, in place of a classifier.
PANEL = "panel"
# Keys of the panel that a block may have beside ``by: panel``.
_OF_PANEL = ("panel", "repeats", "tie")


def grounded_judge(grounded: str | Block | None) -> Judge:
    """Return the block of judges with what tells support: ``panel``, a classifier by name or folder, or a block.

    A block may be written as JSON. Beside ``by: panel`` it may have what a ``judge`` block says of the panel.
    """
    if isinstance(grounded, str) and grounded.lstrip().startswith("{"):
        try:
            grounded = dict(json_value(grounded))
        except ValueError as error:
            example = """e.g. '{"by": "panel", "tie": "abstain"}'"""
            raise ConfigError(f"--grounded: {grounded} is not JSON ({error})", example) from None
    if isinstance(grounded, str):
        grounded = {"by": PANEL} if grounded == PANEL else {"model": grounded}
    of_panel = {}
    if isinstance(grounded, Mapping) and grounded.get("by") == PANEL:
        of_panel = {key: grounded[key] for key in _OF_PANEL if key in grounded}
        grounded = {key: value for key, value in grounded.items() if key not in of_panel}
    return validated(Judge, {"grounded": grounded, **of_panel}, "score")


def measured_names(found: Survey, metrics: str | Sequence[str] | None, judge: Judge | None = None) -> list[str]:
    """Return the metrics to compute, by default those of what the rows hold; support, if ``judge`` says what tells it.

    Raises ConfigError for one that needs a model or is unknown, DataError for one that no row, or not every row, can
    have.
    """
    from mrag_eval.scoring import METRIC_NAMES

    if metrics is None:
        names, _ = found.default_metrics()
        if not found.counts["answer"] and SHOWN not in names:
            is_folder = isinstance(found.log.source, Path) and found.log.source.is_dir()
            fix = (
                "name the system's run: --run FILE"
                if is_folder
                else "name the answers' column: --columns answer=COLUMN"
            )
            raise DataError(f"{found.first}: 'reply' is missing", fix)
        return [*names, *GROUNDED[:1]] if judge is not None and judge.grounded is not None else names
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    names = [METRIC_NAMES.named(name, "score, metrics") if ":" in name else name for name in names]
    _check_scorable(names)
    classifier = None if judge is None else judge.grounded
    check_grounded(names, classifier, "score", "name one: --grounded MODEL (a hub name or a folder), or panel")
    ranked = relevance_measures(names)
    if len(ranked) < len(names) and not found.counts["answer"]:
        raise DataError(f"{found.first}: 'reply' is missing", f"metrics {', '.join(names)} need it")
    if ranked and found.counts["contexts given"] < len(found.docs) - len(found.unread):
        read = ((where, row) for where, row in found.rows() if str(row["id"]) not in found.unread)
        where = next(where for where, row in read if row.get("passages") is None)
        key = found.log.mapping.get("contexts") or found.log.mapping.get("context_ids", "passages")
        raise DataError(f"{where}: '{key}' is missing", f"metrics {', '.join(ranked)} need it; [] is an empty list")
    return names


def _check_scorable(names: Sequence[str]) -> None:
    from mrag_eval.config import RANKING_MEASURE, TRANSLATED, check_metrics
    from mrag_eval.scoring import METRIC_NAMES

    if not names:
        raise ConfigError("score: no metric is named", 'e.g. metrics=["char3gram_recall"]')
    check_metrics(names, METRIC_NAMES, "score")
    for name in names:
        if judged_metrics([name]) or name in TRANSLATED:
            raise ConfigError(
                f"score: metric '{name}' needs a model, and score runs none",
                "leave it out; mrag-eval judge scores the samples of a run by a panel",
            )
        if name not in METRIC_NAMES and RANKING_MEASURE.match(name) is None:
            raise ConfigError(f"score: metric '{name}' needs a reranked list", "name the measure without rerank_")


def quotes_elsewhere(found: Survey) -> frozenset[str]:
    """Return the quotes of all replies that are not in their own contexts and stand in another row's."""
    from mrag_eval.metrics import held_elsewhere

    if not found.sought:
        return frozenset()
    seen: set[str] = set()

    def unseen(text: str) -> bool:
        known = len(seen)
        seen.add(text_hash(text))
        return len(seen) > known

    with Wait("looking for quotes in other rows", len(found.docs), "rows") as wait:
        # many rows of a log show the same contexts
        texts = (text for _, row in wait.over(found.rows()) for text in [*_texts(row)][1:] if unseen(text))
        return held_elsewhere(found.sought, texts)
