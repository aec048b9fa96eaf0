"""Rows of a dataset on the Hugging Face hub, one after another, without downloading the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mrag_eval.core import DataError
from mrag_eval.retrievers.corpora._reading import Reading


def stream_rows(
    dataset: str,
    config: str | None = None,
    *,
    split: str = "train",
    revision: str | None = None,
    reading: Reading | None = None,
) -> Iterator[dict[str, Any]]:
    """The dataset's rows in their order; arguments as in ``datasets.load_dataset``; ``reading`` is told how far it is.

    Raises DataError where it cannot be opened, and, naming the row, where the stream breaks off.
    """
    import datasets

    name = dataset if config is None else f"{dataset}, {config}"
    try:
        stream = datasets.load_dataset(dataset, config, split=split, revision=revision, streaming=True)
        rows = iter(stream)
    except Exception as error:  # the network fails in the words of whichever client the libraries use
        raise DataError(
            f"dataset {name} cannot be opened: {said(error)}", "check its name, config and split, and the network"
        ) from error
    read = 0
    splits = getattr(getattr(stream, "info", None), "splits", None) or {}
    count = getattr(splits.get(split), "num_examples", None)
    if reading is not None and count:
        reading.count(count, lambda: read)
    while True:
        try:
            row = next(rows, None)
        except Exception as error:  # as above
            raise DataError(
                f"{name}: the stream broke off after row {read:,}: {said(error)}",
                "give the same command again (index build: with --resume): it goes on where it stopped",
            ) from error
        if row is None:
            return
        read += 1
        yield row


def said(error: Exception) -> str:
    """The first line of an error of a library, or its kind."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
