"""From gathered rows to scores: intervals, cells, language pairs, where the errors come from, what was retrieved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from mrag_eval.core import Hit, Judgement, Labels, RagDoc, Ranked, Retrieved, RowScores, is_relevant
from mrag_eval.models import total_counts
from mrag_eval.scoring._agents_table import loop_record, loop_table
from mrag_eval.scoring._panel_table import panel_table
from mrag_eval.scoring._relevance_table import label_table
from mrag_eval.scoring._task_level import task_scores

# Resamples of every interval: 2,000 hold the ends of a 95% interval steady to about a fiftieth of its width.
_RESAMPLES = 2_000
# Every metric of a row lies in it.
_RANGE = (0.0, 1.0)
# Metrics of 0 and 1 that say whether an answer is right, the most trustworthy first.
_CORRECT = ("acc", "judged_accuracy", "judge_correct", "sem_b", "match", "exact_match")

Record = Mapping[str, Any]


def row_record(
    doc: RagDoc,
    scores: RowScores,
    retrieved: Retrieved | None = None,
    judgement: Judgement | None = None,
    labels: Labels | None = None,
    breakdowns: Sequence[str] = (),
) -> dict[str, Any]:
    """What the scores need of one row, and what its line of the sample file shows: identity, cell, values, reasons.

    Where a corpus was searched: whether a relevant document is in the ranking and in the prompt (if relevance is
    known), and how many passages came back, and could have, in each language. Where the row's own passages were shown:
    the places, from 1, of the supporting ones. Where a panel judged: its verdict and votes. Where the ranking was
    labelled: which of its passages are relevant. Where a language model reranked: how many lists it ordered, how many
    of its replies were repaired, and why it failed. Where agents retrieved: how their loop went.

    ``breakdowns`` are the keys of ``extra`` that scores are broken down by.
    """
    cell = {"query_lang": doc.query_lang}
    if doc.gold_doc_lang:
        cell["doc_lang"] = doc.gold_doc_lang
    cell |= {key: str(doc.extra[key]) for key in breakdowns if doc.extra.get(key) is not None}
    gold = [hit.rank for hit in retrieved.passages if hit.is_gold] if retrieved is not None else []
    if gold:
        cell |= {"gold_first": str(gold[0]), "gold_last": str(gold[-1])}
    record: dict[str, Any] = {"row": doc.id, "cell": cell, "values": scores.values}
    if gold:
        record["gold_positions"] = gold
    if doc.group_id is not None:
        record["group"] = doc.group_id
    if "question_id" in doc.extra:
        record["question"] = doc.extra["question_id"]
    if scores.unscored:
        record["unscored"] = scores.unscored
    if judgement is not None:
        record["judge"] = judgement.as_record()
    if labels is not None:
        record["relevance"] = labels.as_record()
    second = retrieved.reranked if retrieved is not None else None
    if second is not None and (second.windows or second.fault):
        record["rerank"] = {"lists": second.windows, "repaired": second.repaired, "fault": second.fault}
    if retrieved is not None and retrieved.trace is not None:
        record["loop"] = loop_record(doc, retrieved.trace, retrieved.passages)
    if retrieved is not None and retrieved.searchable:
        record["languages"] = {
            "retrieved": dict(Counter(place.lang for place in retrieved.ranking)),
            "searchable": dict(retrieved.searchable),
        }
        if doc.relevant_ids if labels is None else labels.fault is None:

            def answers(place: Ranked | Hit) -> bool:
                return is_relevant(place, doc) if labels is None else place.id in labels.relevant

            found = any(answers(place) for place in retrieved.ranking)
            kept = any(answers(hit) for hit in retrieved.passages)
            record["retrieved"], record["kept"] = int(found), int(found and kept)
    return record


def summarize(records: Sequence[Record], seed: int = 0, evaluated: str | None = None) -> dict[str, Any]:
    """Scores with intervals from gathered rows; ``evaluated`` is the name of the model whose answers they are.

    Returns a JSON object::

        rows          number of rows
        metrics       name -> value, low, high, n, method; "by" -> dimension -> cell -> the same; "macro" over pairs
        unscored      name -> reason -> number of rows
        query_langs   language of the question -> number of rows
        attribution   where the errors come from, overall and by language pair (if relevance and correctness are known)
        selection     what was retrieved, and of that kept for the prompt, likewise (if relevance is known)
        relevance     how rankings were labelled (if they were), see :func:`._relevance_table.label_table`
        languages     what was retrieved by language, and the preference for the question's language
        rerank        lists ordered by a language model, replies that were repaired, rows it failed on by reason
        concurrence, citations  scores of the task as a whole, where its metrics name them
        prompts       limit in tokens and where it comes from, number of prompts, and of those with shortened passages
        translation   who translated, and how many texts came to which outcome (if anything is translated)
        loop          how the agents' loop went (if there was one), see :func:`._agents_table.loop_table`
        judge         the panel's table (if there is a panel), see :func:`._panel_table.panel_table`
        sufficiency   the same of what it said on the passages (if it was asked)

    Groups of rows (versions of one question, questions on one document) are resampled together. A row that reached two
    ranks counts once.
    """
    rows = list({str(r["row"]): r for r in records}.values())
    names = list(dict.fromkeys(name for r in rows for name in r["values"]))
    unscored: dict[str, Counter[str]] = defaultdict(Counter)
    for r in rows:
        for name, reason in r.get("unscored", {}).items():
            unscored[name][reason] += 1
    out: dict[str, Any] = {
        "rows": len(rows),
        "metrics": {name: _metric(rows, name, seed) for name in names},
        "unscored": {name: dict(reasons) for name, reasons in unscored.items()},
        "query_langs": dict(sorted(Counter(str(r["cell"]["query_lang"]) for r in rows).items())),
    }
    out |= task_scores(rows, seed)
    parts = {
        "prompts": _prompts(records),
        "attribution": _attribution(rows, seed),
        "selection": _selection(rows, seed),
        "languages": _languages(rows, seed),
        "rerank": _rerank(rows),
        "translation": total_counts(r["translation"] for r in records if "translation" in r),
        "relevance": label_table(records),
        "loop": loop_table(rows, _CORRECT, seed),
        "judge": panel_table(records, evaluated=evaluated, seed=seed),
        "sufficiency": panel_table([_on_passages(r) for r in records], seed=seed),
    }
    for key, part in parts.items():
        if part is not None:
            out[key] = part
    return out


def unscored_lines(unscored: Mapping[str, Mapping[str, int]]) -> list[tuple[str, int, str]]:
    """``(metrics, rows, reason)``: metrics that lack as many rows for the same reason are told together."""
    together: dict[tuple[str, int], list[str]] = {}
    for metric, reasons in unscored.items():
        for reason, count in reasons.items():
            together.setdefault((reason, count), []).append(metric)
    return [(", ".join(metrics), count, reason) for (reason, count), metrics in together.items()]


def _on_passages(record: Record) -> Record:
    """A record with what the panel said on the passages in the place of what it said on the answer."""
    kept = {key: value for key, value in record.items() if key not in ("judge", "panel")}
    moved = {"judge": "sufficiency", "panel": "sufficiency_panel"}
    return kept | {key: record[source] for key, source in moved.items() if source in record}


def _prompts(records: Sequence[Record]) -> dict[str, Any] | None:
    """The ranks' prompts together; see :meth:`mrag_eval.prompts.Budget.fitted`."""
    shares = [r["prompts"] for r in records if "prompts" in r]
    if not shares:
        return None
    shortened = [share["shortened"] for share in shares]
    return {
        **shares[0],
        "prompts": sum(share["prompts"] for share in shares),
        "shortened": None if None in shortened else sum(shortened),
    }


def _metric(rows: Sequence[Record], name: str, seed: int) -> dict[str, Any]:
    out = _estimate(rows, name, seed)
    by: dict[str, dict[str, Any]] = {}
    for dimension in dict.fromkeys(d for r in rows for d in r["cell"]):
        cells: dict[str, list[Record]] = defaultdict(list)
        for r in rows:
            if dimension in r["cell"]:
                cells[r["cell"][dimension]].append(r)
        if len(cells) > 1:
            by[dimension] = {cell: _estimate(members, name, seed) for cell, members in sorted(cells.items())}
    paired = [r for r in rows if "doc_lang" in r["cell"]]
    if paired:
        from mrag_eval.metrics import language_pair_matrix

        matrix = language_pair_matrix(
            [r["values"].get(name) for r in paired],
            [r["cell"]["query_lang"] for r in paired],
            [r["cell"]["doc_lang"] for r in paired],
            groups=_groups(paired),
            n_resamples=_RESAMPLES,
            seed=seed,
            bounds=_RANGE,
        ).as_dict()
        by["pair"] = matrix["cells"]
        out["macro"] = {key: matrix[key] for key in ("same_language", "cross_language")}
        if matrix["unscored"]:
            out["unscored_by_pair"] = matrix["unscored"]
    if by:
        out["by"] = by
    return out


def _estimate(rows: Sequence[Record], name: str, seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import interval_for

    values = [r["values"].get(name) for r in rows]
    return interval_for(values, groups=_groups(rows), n_resamples=_RESAMPLES, seed=seed, bounds=_RANGE).as_dict()


def _groups(rows: Sequence[Record]) -> list[str] | None:
    """The groups to resample; None where every row is its own."""
    groups = [str(r.get("group", r["row"])) for r in rows]
    return groups if len(set(groups)) < len(groups) else None


def _attribution(rows: Sequence[Record], seed: int) -> dict[str, Any] | None:
    """Retrieval, selection and generation as a chain of conditionals (Cross-Lingual Cost, Tables 1 and 3)."""
    known = [r for r in rows if "retrieved" in r]
    correct = next((m for m in _CORRECT if any(m in r["values"] for r in known)), None)
    if correct is None:
        return None
    return {"correct_by": correct, **_by_pair(known, partial(_part, correct=correct, seed=seed))}


def _selection(rows: Sequence[Record], seed: int) -> dict[str, Any] | None:
    """The first two links of that chain, which need no verdict on the answers."""
    known = [r for r in rows if "retrieved" in r]
    return _by_pair(known, partial(_retrieval_part, seed=seed)) if known else None


def _by_pair(rows: Sequence[Record], part: Callable[[Sequence[Record]], dict[str, Any]]) -> dict[str, Any]:
    pairs: dict[str, list[Record]] = defaultdict(list)
    for r in rows:
        if "doc_lang" in r["cell"]:
            pairs[f"{r['cell']['query_lang']}->{r['cell']['doc_lang']}"].append(r)
    out: dict[str, Any] = {"overall": part(rows)}
    if len(pairs) > 1:
        out["by_pair"] = {pair: part(members) for pair, members in sorted(pairs.items())}
    return out


def _part(rows: Sequence[Record], *, correct: str, seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import error_attribution

    return error_attribution(
        [r["retrieved"] for r in rows],
        [r["kept"] for r in rows],
        [r["values"].get(correct) for r in rows],
        right_language=[r["values"].get("language_check", r["values"].get("correct_language")) for r in rows],
        groups=_groups(rows),
        n_resamples=_RESAMPLES,
        seed=seed,
    ).as_dict()


def _retrieval_part(rows: Sequence[Record], *, seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import conditional_rate

    found, kept = [r["retrieved"] for r in rows], [r["kept"] for r in rows]
    settings: dict[str, Any] = {"groups": _groups(rows), "n_resamples": _RESAMPLES, "seed": seed}
    return {
        "retrieved": conditional_rate(found, [1] * len(found), **settings).as_dict(),
        "kept_if_retrieved": conditional_rate(kept, found, **settings).as_dict(),
    }


def _rerank(rows: Sequence[Record]) -> dict[str, Any] | None:
    """What became of the replies of a reranker that orders lists."""
    parts = [r["rerank"] for r in rows if "rerank" in r]
    if not parts:
        return None
    return {
        "rows": len(parts),
        "lists": sum(part["lists"] for part in parts),
        "repaired": sum(part["repaired"] for part in parts),
        "faults": dict(Counter(part["fault"] for part in parts if part["fault"])),
    }


def _languages(rows: Sequence[Record], seed: int) -> dict[str, Any] | None:
    """Languages of what was retrieved (BordIRlines, section 6.1)."""
    searched = [r for r in rows if "languages" in r]
    if not searched:
        return None
    from mrag_eval.metrics import in_language_preference

    found = in_language_preference(
        [r["cell"]["query_lang"] for r in searched],
        [[lang for lang, n in r["languages"]["retrieved"].items() for _ in range(n)] for r in searched],
        [r["languages"]["searchable"] for r in searched],
        groups=_groups(searched),
        n_resamples=_RESAMPLES,
        seed=seed,
    )
    return {
        "retrieved": {f"{query}->{document}": n for (query, document), n in found.counts.items()},
        "preference": {
            lang: {"ratio": p.ratio_interval.as_dict(), "normalised": p.normalised, "n_queries": p.n_queries}
            for lang, p in [*found.by_language.items(), ("overall", found.overall)]
        },
    }
