"""Agreement of a checker of support with people's labels of the sentences or spans of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mrag_eval.core import Span
from mrag_eval.datasets import log_rows
from mrag_eval.platform import DataError
from mrag_eval.report.labels._panel_agreement import names_of, no_row, pooled_answers, records_of
from mrag_eval.scoring import LabelledAnswer, LabelledSentence, SupportAgreement, against_labels
from mrag_eval.systems import in_own_terms, reading_of

_CHECK = "score the file of the labels: mrag-eval score FILE --grounded MODEL --output_path FOLDER"


def support_agreement(paths: Sequence[Path], human: Sequence[Path]) -> SupportAgreement:
    """Compare the claims in the sample files ``paths`` with people's labels in ``human``.

    See :func:`~mrag_eval.report.labels._support_agreement.read_labelled_answers` for the files of labels, and
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


_ENDINGS = (".jsonl", ".json", ".parquet", ".pq")
# Labels of sentences: supported, not supported, or neither.
_FACTUALITY = {"Supported": True, "Not Supported": False, "Challenging to determine": None}
_FIX = "name the file as its authors published it (docs/judges.md)"


def of_whole_answers(paths: Sequence[Path]) -> bool:
    """Return whether files of labels hold whole answers, by their endings; else they are sheets.

    Raises DataError for some of each.
    """
    whole = {path.name.lower().removesuffix(".gz").endswith(_ENDINGS) for path in paths}
    if len(whole) > 1:
        raise DataError(f"{', '.join(map(str, paths))}: sheets, and files of whole answers", "name one kind of the two")
    return True in whole


def read_labelled_answers(paths: Sequence[Path]) -> dict[str, tuple[str, LabelledAnswer]]:
    """Return people's labels by the id of the answer, each with its place (``file, line 3``).

    Files have the columns of MEMERAG (``query_id``, ``answer`` with ``sentence`` and ``factuality``, one label or one
    of each annotator) or those of PsiloQA (``id``, ``llm_answer``, ``labels``, pairs of start and end). Raises
    DataError naming the line for other columns, an unknown label, a span outside its answer, and an id that comes
    twice.
    """
    found: dict[str, tuple[str, LabelledAnswer]] = {}
    first = ""
    for path in paths:
        before = len(found)
        for where, row in log_rows(path, str(path)):
            layout = next(
                (name for name, keys in _KEYS.items() if isinstance(row, Mapping) and {*keys} <= row.keys()), ""
            )
            if not layout:
                keys = ", ".join(map(str, row))[:200] if isinstance(row, Mapping) else type(row).__name__
                raise DataError(f"{where}: neither MEMERAG's columns nor PsiloQA's: {keys or 'none'}", _FIX)
            first = first or layout
            if layout != first:
                raise DataError(f"{where}: the columns of {layout}, after those of {first}", "name files of one layout")
            try:
                own = in_own_terms(row, reading_of([row]), where)
            except DataError as error:
                raise DataError(error.message, _FIX) from None
            key = str(own.get("id", ""))
            if not key or "reply" not in own:
                raise DataError(f"{where}: it has no {'answer' if key else 'id'}", _FIX)
            if key in found:
                raise DataError(f"{where}: the id '{key}' comes a second time", "keep one row for every id")
            found[key] = where, _READERS[layout](row, own["reply"], where)
        if len(found) == before:
            raise DataError(f"{path} holds no labels", _FIX)
    return found


def _sentences(row: Mapping[str, Any], text: str, where: str) -> LabelledAnswer:
    # places are those of the answer that is scored, which begins behind white space
    sentences, end, parts = [], len(text.lstrip()) - len(text), row["answer"]
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise DataError(f"{where}: 'answer' is no list of sentences", _FIX)
    for place, part in enumerate(parts):
        start, end = end, end + len(part["sentence"])
        said = part.get("factuality")
        words = said if isinstance(said, list) and said else [said]
        wrong = [word for word in words if word not in [*_FACTUALITY]]
        if wrong:
            what = f"factuality is {wrong[0]!r:.40}"
            raise DataError(f"{where}, answer[{place}]: {what}", f"write one of {', '.join(_FACTUALITY)}")
        sentences.append(LabelledSentence(start, end, tuple(_FACTUALITY[word] for word in words)))
    return LabelledAnswer(text.strip(), tuple(sentences))


def _spans(row: Mapping[str, Any], text: str, where: str) -> LabelledAnswer:
    pairs = row.get("labels")
    if not isinstance(pairs, list):
        raise DataError(f"{where}: 'labels' is {pairs!r:.40}, no list of spans", "write [] for an answer without one")
    for pair in pairs:
        whole = isinstance(pair, list) and len(pair) == 2 and all(type(place) is int for place in pair)
        if not whole or not 0 <= pair[0] <= pair[1] <= len(text):
            what = f"a span of 'labels' is {pair!r:.40}, in an answer of {len(text)} characters"
            raise DataError(f"{where}: {what}", "write start and end (not included) in code points, such as [0, 12]")
    lead = len(text) - len(text.lstrip())
    return LabelledAnswer(text.strip(), spans=tuple(Span(start - lead, end - lead) for start, end in pairs))


_READERS = {"MEMERAG": _sentences, "PsiloQA": _spans}
_KEYS = {"MEMERAG": ("query", "context", "answer"), "PsiloQA": ("question", "wiki_passage", "llm_answer")}
