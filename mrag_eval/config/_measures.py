"""Names of metrics that settings and several stages must recognise."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from mrag_eval.core import LABEL_SHARE, VERDICTS, VerdictScale
from mrag_eval.platform import ConfigError, did_you_mean

if TYPE_CHECKING:
    from mrag_eval.config._judge import Judge

RANKING_MEASURE = re.compile(r"(hit|recall|precision|mrr|ndcg|map)@([1-9][0-9]*)$")
# The same measures on the reranked list.
RERANKED = "rerank_"
# Whether a relevant passage is in the prompt, which holds the block's k.
SHOWN = "shown@k"
SUFFICIENCY = "context_sufficiency"
# Metrics of 0 and 1 that say whether an answer is right, the most trustworthy first.
CORRECT = ("acc", "judged_accuracy", "judge_correct", "sem_b", "match", "exact_match")
# Metrics that need a classifier of support, or a panel: of claims, and of rows that are also right or wrong.
GROUNDED = ("grounded", "right_supported", "right_unsupported", "wrong_supported", "wrong_unsupported")
# Metrics of 0 and 1 that say whether an answer is in the language asked for, the most trustworthy first.
RIGHT_LANGUAGE = ("language_check", "correct_language")
# Metrics whose 1 says that the reply holds a reference answer, whatever else a verdict asks for.
HOLDS_ANSWER = (
    *("judge_correct", "sem_b", "match", "match_unicode", "match_translated", "exact_match", "exact_match_unicode"),
    *("exact_match_mkqa", "char3gram_recall", "char3gram_recall_aliases", "char3gram_recall_unicode"),
    *("char3gram_recall_translated", "word_recall"),
)
# Metrics that need a translator.
TRANSLATED = ("char3gram_recall_translated", "match_translated")


def verdict_metrics(names: Iterable[str]) -> list[str]:
    """Return the names of metrics that are verdicts on answers, on any scale."""
    return [n for n in names if n.partition(".")[0] in VERDICTS]


def judged_metrics(names: Iterable[str], judge: Judge | None = None) -> list[str]:
    """Return the names of metrics that a panel decides, of claims if the block says so."""
    claims = () if judge is None or judge.claims_prompt is None else GROUNDED
    return [n for n in names if n == SUFFICIENCY or n in claims or verdict_metrics([n])]


def on_scale(names: Sequence[str], scale: VerdictScale, task: str) -> tuple[str, ...]:
    """Return the names with a metric for each label in place of :data:`LABEL_SHARE`.

    Raises ConfigError for a metric of verdicts on another scale.
    """
    found = [part for n in names for part in (scale.metrics if n == LABEL_SHARE and scale.worst is None else (n,))]
    for name in verdict_metrics(found):
        if name not in scale.metrics:
            raise ConfigError(
                f"task {task}, metrics: '{name}' is no metric of judge.scale, whose verdicts are {scale.words}",
                f"name {LABEL_SHARE if scale.worst is None else ' or '.join(scale.metrics)}, or change judge.scale",
            )
    return tuple(dict.fromkeys(found))


def ranking_measures(names: Sequence[str]) -> list[str]:
    """Return the names that are measured on the retrieved list."""
    return [n for n in names if RANKING_MEASURE.match(n)]


def rerank_measures(names: Sequence[str]) -> list[str]:
    """Return the names that are measured on the reranked list."""
    return [n for n in names if n.startswith(RERANKED) and RANKING_MEASURE.match(n.removeprefix(RERANKED))]


def relevance_measures(names: Sequence[str]) -> list[str]:
    """Return the names that are measured by which passages are relevant."""
    return [n for n in names if n == SHOWN or RANKING_MEASURE.match(n.removeprefix(RERANKED))]


def unmeasured(names: Sequence[str], mode: str, *, searched: bool, reranked: bool, shows: bool) -> dict[str, list[str]]:
    """Return the names that a run in ``mode`` cannot measure, by the reason."""
    found: dict[str, list[str]] = {}
    if not shows:
        found[f"mode {mode} shows no passages"] = [name for name in names if name == SHOWN]
    if not searched:
        found[f"mode {mode} searches no corpus"] = [*ranking_measures(names), *rerank_measures(names)]
    elif not reranked:
        found["nothing is reranked"] = rerank_measures(names)
    return {reason: left_out for reason, left_out in found.items() if left_out}


# What measures the same here, or comes closest -> what other programs call it.
ELSEWHERE = {
    "grounded, the share of claims that a passage shown supports": "faithfulness, groundedness, attribution",
    "wrong_unsupported, or abstention_hallucination if no passage answers": "hallucination, hallucination_rate",
    "context_sufficiency, told by judges, or recall@k and shown@k, of known relevance": (
        "context_recall, contextual_recall, context_relevance, context_relevancy, contextual_relevancy"
    ),
    "precision@k or ndcg@k, such as ndcg@5": "context_precision, contextual_precision",
    "a rubric of your own (judge.prompt); refused and correct_language tell of replies beside the question": (
        "answer_relevancy, answer_relevance, response_relevancy"
    ),
    "judge_correct, or match and f1": "answer_correctness, factual_correctness, correctness, g_eval",
    "char3gram_f1, or f1": "answer_similarity, semantic_similarity, bleu, rouge, chrf",
    "exact_match, match, or acc where an option is chosen": "em, accuracy",
}


def deepest_cutoff(names: Sequence[str]) -> int:
    """Return the largest k of the ranking measures, those on the reranked list excluded; 0 without any."""
    return max((int(n.rpartition("@")[2]) for n in ranking_measures(names)), default=0)


def check_metrics(names: Sequence[str], known: Collection[str], where: str) -> None:
    """Raise ConfigError for a name that is neither in ``known`` nor a ranking measure."""
    for metric in names:
        # a name that is not known is looked for among installed packages
        if RANKING_MEASURE.match(metric.removeprefix(RERANKED)) or metric in known:
            continue
        if metric.startswith("shown@"):
            raise ConfigError(
                f"{where}: unknown metric '{metric}'", f"write {SHOWN}: retrieval.k is the number of passages shown"
            )
        examples = ["hit@20", "recall@20", "precision@20", "mrr@20", "ndcg@20", "map@20"]
        examples += ["rerank_hit@5", "rerank_ndcg@5", "rerank_mrr@5"]
        if step := called_here(metric):
            raise ConfigError(f"{where}: unknown metric '{metric}'", step)
        raise ConfigError(f"{where}: unknown metric '{metric}'{did_you_mean(metric, [*known, *examples])}")


def called_here(metric: str, otherwise: str = "") -> str:
    """Return the next step for an unknown metric: what it is called here, if another program has one of that name."""
    # however it is written, as a class, too: ContextRecall, AnswerRelevancyMetric
    plain = re.sub("[^a-z]|(metric|score)$", "", metric.lower())
    ours = (ours for ours, theirs in ELSEWHERE.items() if plain in theirs.replace("_", "").split(", "))
    return next((f"use {name}" for name in ours), otherwise)


def check_grounded(names: Sequence[str], by: object, where: str, fix: str) -> None:
    """Raise ConfigError for a metric of support without what tells it, or without a metric of what is right."""
    asked = [name for name in names if name in GROUNDED]
    if asked and by is None:
        raise ConfigError(f"{where}: metric '{asked[0]}' needs a classifier of support, or a panel", fix)
    if {*asked} - {*GROUNDED[:1]} and not {*CORRECT} & {*names}:
        raise ConfigError(
            f"{where}: metric '{asked[-1]}' needs one that says whether an answer is right",
            f"name one of {', '.join(CORRECT)} beside it",
        )
