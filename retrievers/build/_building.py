"""The unfinished index: append-only files and a record of their valid sizes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from mrag_eval.core import Passage
from mrag_eval.platform import CorpusError, json_value, write_whole
from mrag_eval.retrievers.build._dense_files import WORK, check_range, encoded, norms_of
from mrag_eval.retrievers.build._replacing import UNFINISHED, begin, is_void, move_into_place
from mrag_eval.retrievers.build._stored_recall import kept_rows, sample_name
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.embedding._embedders import Vectors
from mrag_eval.retrievers.index import _passages
from mrag_eval.retrievers.index._hashing import ContentHash
from mrag_eval.retrievers.index._passage_columns import PassageColumns, joined
from mrag_eval.retrievers.shards import _sparse_shard as sparse_shard
from mrag_eval.retrievers.shards._bm25_shard import Postings, chosen, read_vocabulary
from mrag_eval.retrievers.shards._codes import FLOAT16_MAX, FLOAT32
from mrag_eval.retrievers.shards._manifest import MANIFEST, check_files, manifest_bytes, parse_manifest
from mrag_eval.text import Analyzer

AHEAD = f"{WORK}/ahead"
# the sample of an import
DRAWN = f"{WORK}/drawn.jsonl"
_STATE = "state.json"


def lengths_name(lang: str) -> str:
    return f"{WORK}/{lang}.lengths"


def postings_name(lang: str) -> str:
    return f"{WORK}/{lang}.postings"


def vocabulary_name(shard: str) -> str:
    return f"{WORK}/{shard}.vocabulary"


class Building:
    """The folder ``<path>.building`` of an unfinished index.

    A batch is appended file by file, then ``work/state.json`` is replaced. Bytes beyond the sizes recorded there belong
    to an incomplete batch and are removed on resuming.

    Args:
        folder: the folder of the files.
        settings: must be equal when a build is continued.
        analyzer: for a lexical or hybrid index.
        joint: whether all languages share one vocabulary.
    """

    def __init__(self, folder: Path, settings: dict[str, Any], analyzer: Analyzer | None, joint: bool) -> None:
        self.folder, self.settings, self._analyzer, self._joint = folder, settings, analyzer, joint
        self.done = 0
        self.is_complete = False
        self.keeps_sample = settings["store"] != FLOAT32
        self.content = ContentHash()
        self.counts: dict[str, int] = {}
        self.max_norms: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.postings: dict[str, Postings] = {}

    def start(self, *, resume: bool) -> None:
        """Start a new build, or continue an existing one.

        Afterwards ``is_complete`` is true if everything is written and only the renaming is left. Raises CorpusError if
        the existing build has other settings or is damaged.
        """
        state_path = self.folder / WORK / _STATE
        resume &= not is_void(self.folder)
        if resume and state_path.exists():
            try:
                state = json_value(state_path.read_bytes())
            except (OSError, ValueError) as error:
                raise CorpusError(f"{state_path} is damaged", "build again without --resume") from error
            self._check_settings(state["settings"])
            self.done, self.counts, self.max_norms = state["done"], state["counts"], state["max_norms"]
            self.content, self.sizes = ContentHash(state["content_hash"]), state["sizes"]
            self._cut_back()
            for name in self.sizes:
                if name.endswith(".vocabulary"):
                    shard = Path(name).stem
                    self.postings[shard] = self._new_postings(shard, read_vocabulary(self.folder / name))
        elif resume and (self.folder / MANIFEST).exists():
            manifest = parse_manifest(self.folder, manifest_bytes(self.folder))
            check_files(self.folder, manifest)
            self._check_settings(manifest.settings())
            self.done, self.content = manifest.passages, ContentHash(manifest.content_hash)
            self.is_complete = True
        else:
            begin(self.folder)
            for name in ("passages", WORK):
                (self.folder / name).mkdir()
            self._save()
            (self.folder / UNFINISHED).unlink()

    def publish(self, target: Path) -> None:
        """Rename the finished folder to ``target``, replacing an existing index."""
        # a build resumed after this finds the manifest and no state, and only repeats this step
        (self.folder / WORK / _STATE).unlink(missing_ok=True)
        shutil.rmtree(self.folder / WORK, ignore_errors=True)
        move_into_place(self.folder, target)

    def _check_settings(self, settings: dict[str, Any]) -> None:
        # builds that an older release began have no store
        found = {"store": FLOAT32, **settings}
        for key, value in self.settings.items():
            if found.get(key) != value:
                raise CorpusError(
                    f"the interrupted build in {self.folder} has {key} = {found.get(key)!r}, this one {value!r}",
                    "give the same settings, or build again without --resume",
                )

    def _cut_back(self) -> None:
        (self.folder / MANIFEST).unlink(missing_ok=True)
        for name, size in self.sizes.items():
            path = self.folder / name
            actual = path.stat().st_size if path.exists() else -1
            if actual < size:
                raise CorpusError(
                    f"{path} is shorter than the interrupted build recorded", "build again without --resume"
                )
            with path.open("r+b") as file:
                file.truncate(size)
        for path in self.folder.rglob("*"):
            name = path.relative_to(self.folder).as_posix()
            if path.is_file() and name not in (*self.sizes, f"{WORK}/{_STATE}", AHEAD, DRAWN):
                path.unlink()

    def _shard(self, name: str) -> Postings:
        if name not in self.postings:
            self.postings[name] = self._new_postings(name)
        return self.postings[name]

    def _new_postings(self, shard: str, vocabulary: Any = ()) -> Postings:
        assert self._analyzer is not None
        return Postings(self._analyzer.tokenizer(None if self._joint else shard), vocabulary)

    def append(self, made: Made) -> None:
        """Write one batch; it survives a killed process."""
        # writing vectors needs no interpreter, so the texts are hashed meanwhile
        with ThreadPoolExecutor(1, "mrag-eval-vectors") as thread:
            writing = self._append(made, thread)
        for written in writing:
            written.result()
        self.done += len(made.passages)
        self._save()

    def _append(self, made: Made, thread: ThreadPoolExecutor) -> list[Future[None]]:
        writing = []
        columns, vectors, sparse = PassageColumns.of(made.passages), made.vectors, made.sparse
        if self._analyzer is not None and self._joint:
            # encoded together, so that token numbers follow the corpus and not the batch size
            all_lengths, all_postings, words = self._shard("joint").encode(columns.texts.to_pylist())
            self._write(vocabulary_name("joint"), words)
        for lang, positions, own in columns.by_language():
            first = self.counts.get(lang, 0)
            if vectors is not None:
                whole = own is columns
                rows = vectors if whole else vectors[positions]
                norms = made.norms if made.norms is None or whole else made.norms[positions]
                writing.append(thread.submit(self._append_vectors, lang, own, rows, norms, first))
            fields = own.encoded()
            self.content.add_encoded(lang, fields)
            text_name = _passages.text_path(Path(), lang).as_posix()
            text, offsets = joined(fields, self.sizes.get(text_name, 0))
            self._write(text_name, text)
            self._write(_passages.offsets_path(Path(), lang).as_posix(), offsets)
            if sparse is not None:
                lengths, pairs = sparse_shard.encode([sparse[position] for position in positions])
                self._write(lengths_name(lang), lengths)
                self._write(postings_name(lang), pairs)
            if self._analyzer is not None:
                if self._joint:
                    lengths, postings = chosen(all_lengths, all_postings, positions)
                else:
                    lengths, postings, words = self._shard(lang).encode(own.texts.to_pylist())
                    self._write(vocabulary_name(lang), words)
                self._write(lengths_name(lang), lengths)
                self._write(postings_name(lang), postings)
            self.counts[lang] = first + len(own)
        return writing

    def _append_vectors(
        self, lang: str, passages: Sequence[Passage], vectors: Vectors, norms: Vectors | None, first: int
    ) -> None:
        vectors = np.asarray(vectors, dtype=np.float32)
        norm = float((norms_of(vectors) if norms is None else norms).max())
        if not np.isfinite(norm):
            # the squares are too large for float32; in double precision this takes ten times as long
            norm = float(np.sqrt(np.einsum("nd,nd->n", vectors, vectors, dtype=np.float64).max()))
        # `not` also finds values that are no numbers
        if self.settings["store"] != FLOAT32 and not norm <= FLOAT16_MAX:
            check_range(passages, vectors)
        for name, content in encoded(lang, self.settings["store"], vectors, is_first=not first):
            self._write(name, content)
        if self.keeps_sample and len(kept := kept_rows(first, first + len(vectors))):
            self._write(sample_name(lang), vectors[kept - first].astype("<f4", copy=False).tobytes())
        self.max_norms[lang] = max(norm, self.max_norms.get(lang, 0.0))

    def _write(self, name: str, content: bytes | memoryview) -> None:
        path = self.folder / name
        if name not in self.sizes:
            path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(content)
        self.sizes[name] = self.sizes.get(name, 0) + len(content)

    def _save(self) -> None:
        state = {
            "settings": self.settings,
            "done": self.done,
            "content_hash": self.content.hexdigest,
            "counts": self.counts,
            "max_norms": self.max_norms,
            "sizes": self.sizes,
        }
        write_whole(self.folder / WORK / _STATE, json.dumps(state))
