"""Streaming rows of a dataset on the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mrag_eval.platform import DataError
from mrag_eval.retrievers.corpora._reading import Reading


def stream_rows(
    dataset: str,
    config: str | None = None,
    *,
    split: str = "train",
    revision: str | None = None,
    reading: Reading | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the dataset's rows in order and update ``reading``; arguments as in ``datasets.load_dataset``.

    Raises DataError if it cannot be opened or, naming the row, if the stream breaks off.
    """
    import datasets

    name = dataset if config is None else f"{dataset}, {config}"
    try:
        stream = datasets.load_dataset(dataset, config, split=split, revision=revision, streaming=True)
        rows = iter(stream)
    except Exception as error:  # network errors depend on the client that the libraries use
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
                "give the same command again (index build: with --resume); it continues where it stopped",
            ) from error
        if row is None:
            return
        read += 1
        yield row


def said(error: Exception) -> str:
    """Return the first line of a library's error, or its type."""
    return (str(error).splitlines() or [""])[0] or type(error).__name__
