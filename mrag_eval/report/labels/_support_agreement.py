"""Agreement of a checker of support with people's labels of the sentences or spans of answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mrag_eval.platform import DataError
from mrag_eval.report.labels._labelled_answers import read_labelled_answers
from mrag_eval.report.labels._panel_agreement import names_of, no_row, pooled_answers, records_of
from mrag_eval.scoring import SupportAgreement, against_labels

_CHECK = "score the file of the labels: mrag-eval score FILE --grounded MODEL --output_path FOLDER"


def support_agreement(paths: Sequence[Path], human: Sequence[Path]) -> SupportAgreement:
    """Compare the claims in the sample files ``paths`` with people's labels in ``human``.

    See :func:`~mrag_eval.report.labels._labelled_answers.read_labelled_answers` for the files of labels, and
    :func:`mrag_eval.scoring.against_labels`. Answers of several runs are pooled, as those to be judged are. Raises
    DataError if samples hold no claims, if no label belongs to one of their rows, for an id that several runs have, and
    for labels of another answer than the one that was scored.
    """
    lack = "no checker of support read these answers"
    pooled = pooled_answers(paths, lambda sample: sample.record.grounding is not None, lack, _CHECK)
    given = read_labelled_answers(human)
    names = names_of(given, pooled, human)
    for key, (where, label) in given.items():
        _, sample = pooled.get(names[key], ("", None))
        if sample is not None and sample.answer != label.text:
            raise DataError(
                f"{where}: the answer of '{key}' is not the one that was scored, {sample.answer!r:.40}",
                "score this very file (mrag-eval score FILE --grounded MODEL), without --hash-texts",
            )
    labels = {names[key]: label for key, (_, label) in given.items()}
    if not labels.keys() & pooled.keys():
        raise no_row(paths, human, pooled, len(labels), "scored")
    return against_labels(records_of(paths, pooled), labels)
