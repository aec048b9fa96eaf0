"""The room's metrics in the shape of Hugging Face ``evaluate``, without needing that package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mrag_eval.core import MetricError, did_you_mean

Compute = Callable[..., dict[str, Any]]


@dataclass(frozen=True, slots=True)
class EvaluateMetric:
    """A metric with the interface of ``evaluate.EvaluationModule``: a name, a description and :meth:`compute`."""

    name: str
    description: str
    _compute: Compute

    def compute(self, *, predictions: Sequence[Any], references: Sequence[Any], **options: Any) -> dict[str, Any]:
        """Score predictions against references, one each.

        Returns the score under the metric's name and the number of rows it rests on under ``scored``; where rows were
        left out, ``skipped`` counts them, and where nothing could be scored the score is None and ``reason`` says why.
        Raises MetricError on unequal lengths, unknown options, and whatever the metric itself refuses.
        """
        if len(predictions) != len(references):
            raise MetricError(f"{len(predictions)} predictions but {len(references)} references")
        allowed = [name for name in inspect.signature(self._compute).parameters if name not in _COLUMNS]
        for option in options:
            if option not in allowed:
                raise MetricError(f"{self.name}: unknown option '{option}'" + did_you_mean(option, allowed))
        found = self._compute(predictions, references, **options)
        return {self.name if key == "score" else key: value for key, value in found.items()}


_COLUMNS = ("predictions", "references")


def as_evaluate(name: str) -> EvaluateMetric:
    """The metric of that name as an object with ``.compute(predictions=..., references=..., **options)``.

    References are a gold answer or a list of them for ``exact_match``, ``match``, ``word_*`` and ``char_ngram_*``; the
    expected language for ``correct_language_rate`` and ``code_switch_share``; the index or letter of the right option
    for ``choice_accuracy``; a human's labels for ``cohen_kappa`` and ``label_f1``.

    Raises:
        MetricError: no metric of that name has this shape; the message lists those that do.
    """
    if name not in _METRICS:
        raise MetricError(f"no metric '{name}' with predictions and references" + did_you_mean(name, _METRICS))
    description, compute = _METRICS[name]
    return EvaluateMetric(name, description, compute)


def _mean(values: Sequence[float | None], reason: str) -> dict[str, Any]:
    scored = [value for value in values if value is not None]
    found: dict[str, Any] = {"score": sum(scored) / len(scored) if scored else None, "scored": len(scored)}
    if len(scored) < len(values):
        found["skipped"] = len(values) - len(scored)
    if not scored:
        found["reason"] = reason if values else "no rows"
    return found


def _answers(references: Sequence[str | Sequence[str]]) -> list[Sequence[str]]:
    return [[reference] if isinstance(reference, str) else reference for reference in references]


def _by_answer(function_name: str) -> Compute:
    def compute(
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        normalize: str = "paper",
        lang: str | None = None,
    ) -> dict[str, Any]:
        from mrag_eval.metrics import _text as text

        score = getattr(text, function_name)
        rows = zip(predictions, _answers(references), strict=True)
        return _mean([score(p, golds, normalize=normalize, lang=lang) for p, golds in rows], "")

    return compute


def _by_gram(measure: str) -> Compute:
    def compute(
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        n: int = 3,
        normalize: Any = "paper",
        lang: str | None = None,
    ) -> dict[str, Any]:
        from mrag_eval.metrics._char_ngram import char_ngram_scores_batch

        columns = char_ngram_scores_batch(predictions, _answers(references), n, normalize=normalize, lang=lang)
        return _mean(getattr(columns, measure).tolist(), "")

    return compute


def _language_rate(
    predictions: Sequence[str | None], references: Sequence[str], min_chars: int | None = 20, detector: Any = None
) -> dict[str, Any]:
    from mrag_eval.metrics._language_rate import correct_language_rate

    found = correct_language_rate(predictions, references, min_chars=min_chars, detector=detector)
    result: dict[str, Any] = {"score": found.rate, "scored": found.scored, "skipped": found.skipped}
    return result if found.reason is None else {**result, "reason": found.reason}


def _code_switch(predictions: Sequence[str], references: Sequence[str]) -> dict[str, Any]:
    from mrag_eval.metrics._code_switch import code_switch_share

    rows = zip(predictions, references, strict=True)
    return _mean([code_switch_share(text, language).share for text, language in rows], "no response has letters")


def _choice_accuracy(
    predictions: Sequence[str],
    references: Sequence[int | str],
    n_choices: int | Sequence[int] = 4,
    options: Sequence[Sequence[str]] | None = None,
) -> dict[str, Any]:
    from mrag_eval.metrics._choices import extract_choice

    counts = [n_choices] * len(predictions) if isinstance(n_choices, int) else list(n_choices)
    texts: list[Sequence[str] | None] = [None] * len(predictions) if options is None else list(options)
    if options is not None:
        counts = [len(row) for row in options]
    if not len(counts) == len(texts) == len(predictions):
        raise MetricError(f"{len(predictions)} predictions but {len(counts)} counts and {len(texts)} lists of options")
    chosen = [extract_choice(p, n, row) for p, n, row in zip(predictions, counts, texts, strict=True)]
    right = [ord(gold.upper()) - 65 if isinstance(gold, str) else gold for gold in references]
    found = _mean([float(a == b) for a, b in zip(chosen, right, strict=True)], "")
    # a response without a readable choice is wrong, as in the papers, but not in silence
    return {**found, "unreadable": chosen.count(None)}


def _kappa(predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, Any]:
    from mrag_eval.metrics._agreement import cohen_kappa

    return _estimate(cohen_kappa(predictions, references), len(predictions))


def _label_f1(predictions: Sequence[Any], references: Sequence[Any]) -> dict[str, Any]:
    from mrag_eval.metrics._agreement import label_f1

    return _estimate(label_f1(predictions, references).macro_f1, len(predictions))


def _estimate(estimate: Any, rows: int) -> dict[str, Any]:
    found: dict[str, Any] = {"score": estimate.value, "scored": estimate.n}
    if estimate.n < rows:
        found["skipped"] = rows - estimate.n
    if estimate.value is None:
        found["reason"] = estimate.reason
    return found


_METRICS: dict[str, tuple[str, Compute]] = {
    "exact_match": ("Share of predictions equal to a gold answer after normalisation.", _by_answer("exact_match")),
    "match": ("Share of predictions that contain a gold answer after normalisation.", _by_answer("match")),
    "word_recall": ("Mean share of the best gold answer's words in the prediction.", _by_answer("word_recall")),
    "word_precision": ("Mean share of the prediction's words in the best gold answer.", _by_answer("word_precision")),
    "word_f1": ("Mean word F1 against the best gold answer.", _by_answer("word_f1")),
    "char_ngram_recall": ("Mean character n-gram recall of the best gold answer.", _by_gram("recall")),
    "char_ngram_precision": ("Mean character n-gram precision, best gold answer.", _by_gram("precision")),
    "char_ngram_f1": ("Mean character n-gram F1 against the best gold answer.", _by_gram("f1")),
    "correct_language_rate": ("Share of responses in the expected language.", _language_rate),
    "code_switch_share": ("Mean share of letters outside the expected script(s).", _code_switch),
    "choice_accuracy": ("Share of responses that choose the right option.", _choice_accuracy),
    "cohen_kappa": ("Cohen's kappa of predicted and human labels.", _kappa),
    "label_f1": ("Macro F1 of predicted labels against human labels.", _label_f1),
}
