"""An index from vectors that exist: read, checked against their embedder, and written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrag_eval.core import NO_SPACES, Passage, base_language
from mrag_eval.platform import ConfigError, CorpusError, Count, DataError, MissingExtraError, build_lock, room_on_disk
from mrag_eval.retrievers.build._building import DRAWN
from mrag_eval.retrievers.build._index_writer import IndexWriter
from mrag_eval.retrievers.build._progress import Progress
from mrag_eval.retrievers.build._replacing import check_target
from mrag_eval.retrievers.build._settings import BuildSettings, specified
from mrag_eval.retrievers.build._windows import Made
from mrag_eval.retrievers.chunking._chunking import ChunkConfig
from mrag_eval.retrievers.corpora._reading import Reading
from mrag_eval.retrievers.embedding._embedder_spec import EmbedderSpec, parse_spec
from mrag_eval.retrievers.embedding._embedders import Embedder, batch_size_for, load_embedder, vectors_arriving
from mrag_eval.retrievers.imports._blocks import PassageBlock, check_ids, checked_vectors, read_ahead, without_empty
from mrag_eval.retrievers.imports._drawn import SEED, Drawn, PassageSample
from mrag_eval.retrievers.imports._presets import preset_of
from mrag_eval.retrievers.imports._sources import ImportRequest, Opened, open_source
from mrag_eval.retrievers.imports._texts import HUNDRED_WORDS
from mrag_eval.retrievers.index._hashing import SeenIds
from mrag_eval.retrievers.index._index import Index
from mrag_eval.retrievers.index._load import load_index
from mrag_eval.retrievers.shards._manifest import EmbedderRecord, ImportRecord, SelectionRecord


def import_vectors(
    source: str | None,
    path: str | Path,
    *,
    embedder: str | Mapping[str, Any] | EmbedderSpec | Embedder | None = None,
    preset: str | None = None,
    vectors: str = "",
    keys: Mapping[str, str] | None = None,
    texts: str | None = None,
    store: str = "float32",
    langs: tuple[str, ...] = (),
    lang: str | None = None,
    limit: Count | None = None,
    skip_empty: bool = False,
    unverified: bool = False,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    device: str = "cpu",
) -> Index:
    """Write an index of passages whose vectors are read from files, and open it.

    100 passages, drawn with a seed over all of them, are embedded again; each must have a cosine of at least .99 with
    the vector that was read, or nothing is published. How the texts were fed (with the title in front or not) is found
    on the first rows. Vectors that do not have unit length are scaled to it if the embedder's have it.

    Args:
        source: ``hub:ORG/NAME`` with ``@REVISION`` if wanted, a Parquet file or a folder of them, a ``.npy`` or
            ``.f16bin`` file beside JSON Lines, or ``bergen:FOLDER`` (torch chunks); None for that of the preset.
        path: the folder to make.
        embedder: The embedder that made the vectors, as in `mrag-eval index build`. A preset knows its own.
        preset: A published set: upstash-bge-m3, cohere-v3, cohere-v3-int8 or bergen (docs/corpora.md).
        vectors: The column of the vectors, if it is not called embedding or emb.
        keys: columns of the fields ``id``, ``doc_id``, ``title``, ``text`` and ``lang``; an empty name means none, and
            ids are then made.
        texts: The passages of a .npy or .f16bin file (JSON Lines, a row each; by default beside it); for bergen: the
            copy of Wikipedia that its passages are cut from.
        store: The numbers of dense vectors: float32, float16 or int8 (a quarter of the size).
        langs: the languages to import; files of others are not read.
        lang: The language of all passages, if neither a folder nor a column names it.
        limit: Passages of each language to import; the default is all.
        skip_empty: Leave out rows without text, and count them.
        unverified: Write the index although the embedder does not give the same vectors, or cannot be run. Manifest and
            results then say: not verified.
        resume: Continue an interrupted import.
        overwrite: Replace an index that is already at INDEX.
        progress: as in ``build_index``.
        device: Where the embedder runs: cpu, cuda, cuda:N, mps or auto.

    Raises DataError, naming file and row, for a missing column, a wrong dimension, values that are not finite, repeated
    ids, texts that are empty, files that are cut off, and vectors that are not those of the passages.
    """
    if embedder is None:
        if preset is None:
            raise ConfigError("--embedder is missing", "name the embedder that made the vectors, such as BAAI/bge-m3")
        embedder = preset_of(preset).embedder
    asked = ImportRequest(source, preset, vectors, keys or {}, texts, tuple(langs), lang, limit)
    target = Path(path).resolve()
    with build_lock(target):
        check_target(target, overwrite=overwrite)
        opened = open_source(asked)
        again = f"free some space, then give the same command with --resume; {target}.building keeps the finished part"
        with room_on_disk(target, again):
            work = _Import(asked, opened, target, skip_empty=skip_empty, unverified=unverified)
            work.run(embedder, store=store, resume=resume, progress=progress, device=device)
    own = specified(embedder)
    return load_index(target, device=device, embedder=None if own else embedder, embedders=own)  # type: ignore[arg-type]


@dataclass
class _Import:
    """One import; ``left_out`` counts the rows without text."""

    asked: ImportRequest
    opened: Opened
    target: Path
    skip_empty: bool
    unverified: bool
    left_out: int = field(default=0, init=False)

    @property
    def label(self) -> str:
        """Return the source's name for the manifest, which may leave this machine: of a path, the last part."""
        name = self.opened.source.name
        return name if name.startswith("hub:") else Path(name).resolve().name

    def run(self, embedder: Any, *, store: str, resume: bool, progress: bool, device: str) -> None:
        source = self.opened.source
        limit = self.asked.limit
        first = next(self._with_text(source.blocks(0, Reading())), None)
        if first is None:
            raise DataError(f"{source.name} holds no passages", "name another source, or other languages")
        checked = checked_first(first, embedder, device=device, unverified=self.unverified)
        chunking = ChunkConfig(method="none", title_in_front=checked.form != ALONE)
        settings = BuildSettings(
            store=store,
            embedder=embedder,
            chunker=HUNDRED_WORDS if self.opened.hundred_words else chunking,
            resume=resume,
            progress=progress,
            device=device,
            source=self.label if source.revision is None else f"{self.label}@{source.revision}",
            selection=None if limit is None else SelectionRecord(rule=f"the first {limit:,} passages"),
        )
        writer = IndexWriter(self.target, settings, checked.record)
        reading = Reading()
        shown = Progress(f"import {self.target.name}", None, lambda: reading.share, shown=progress)
        writer.run(lambda: self._made(writer, checked, reading, shown), shown)

    def _with_text(self, blocks: Iterator[PassageBlock]) -> Iterator[PassageBlock]:
        """Yield the blocks with passages that have text."""
        self.left_out = 0
        for block in blocks:
            kept = without_empty(block, skip=self.skip_empty)
            self.left_out += len(block) - len(kept)
            if len(kept):
                yield kept

    def _made(self, writer: IndexWriter, checked: Checked, reading: Reading, shown: Progress) -> Iterator[Made]:
        """Yield the blocks that are not written yet; then check the sample, and give the writer its record."""
        building = writer.building
        done = building.done
        sample = None if building.is_complete else PassageSample(writer.folder / DRAWN, done)
        started = False
        seen = SeenIds()
        blocks = self._with_text(read_ahead(self.opened.source.blocks(done, reading)))
        for block in self._left(writer, blocks, seen):
            if not started:
                shown.start(done)
                started = True
            vectors, norms, _ = checked_vectors(block, checked.record.dim, unit=checked.unit)
            if sample is not None:
                sample.add(block.passages, vectors)
            shown.take(len(block))
            yield Made(block.passages, vectors, norms=norms)
            shown.add(len(block))
        if sample is not None:
            shown.phase(f"embedding {len(sample.drawn)} passages again")
            writer.imported = (self._record(writer, checked, sample.drawn),)

    def _left(self, writer: IndexWriter, blocks: Iterator[PassageBlock], seen: SeenIds) -> Iterator[PassageBlock]:
        """Yield the rows that are not written yet; raise CorpusError if those before are others than the written."""
        current: PassageBlock | None = None
        row = 0

        def before() -> Iterator[Passage]:
            nonlocal current, row
            for current in blocks:
                check_ids(current, seen)
                row = 0
                for passage in current.passages:
                    row += 1
                    yield passage

        writer.skip(before())
        if current is not None and row < len(current):
            yield current.of(range(row, len(current)))
        for block in blocks:
            check_ids(block, seen)
            yield block

    def _record(self, writer: IndexWriter, checked: Checked, drawn: list[Drawn]) -> ImportRecord:
        """Return the record of the import; raise DataError if the check fails and may not."""
        source, counts = self.opened.source, writer.building.counts
        verdict = None if checked.form is None else verdict_on(drawn, checked.model, checked.form)
        if verdict is not None and not verdict.holds and not self.unverified:
            fix = f"finish the import as it is, without reading the vectors again: --resume {UNVERIFIED}"
            raise refused(verdict, checked.record.name, source.name, fix)
        return ImportRecord(
            source=self.label,
            revision=source.revision,
            preset=self.asked.preset,
            column=self.opened.layout.vectors or None,
            passages=sum(counts.values()),
            languages=tuple(sorted(counts)),
            agree=None if verdict is None else verdict.agree,
            drawn=len(drawn),
            form=checked.form,
            least=None if verdict is None else verdict.least,
            seed=SEED,
            scaled=checked.scaled,
            left_out=self.left_out,
        )


UNVERIFIED = "--unverified"
# Rows that are embedded, spread over the first block.
_ROWS = 8


@dataclass(frozen=True)
class Checked:
    """The embedder and what the first rows say of it.

    ``record`` is for the manifest. ``unit``: vectors must be normalised; ``scaled``: they are not yet. ``form`` is how
    texts are fed, None if the embedder cannot be run.
    """

    model: Embedder
    record: EmbedderRecord
    unit: bool
    scaled: bool
    form: str | None


def checked_first(first: PassageBlock, embedder: Any, *, device: str, unverified: bool) -> Checked:
    """Return what the first block says; ``embedder`` as in ``load_embedder``, or an object.

    Raises DataError for vectors of another dimension and, unless ``unverified``, if none of the rows has the vector
    that the embedder gives it; ConfigError if the embedder cannot be run.
    """
    spec = parse_spec(embedder) if isinstance(embedder, str | Mapping | EmbedderSpec) else None
    model: Embedder = embedder if spec is None else load_embedder(spec, device=device)
    assert first.vectors is not None
    dimension, form = first.vectors.shape[1], None
    unit = bool(getattr(model, "normalize", True))
    try:
        dimension = model.dim
        # another dimension is a fault of the source, which no flag allows
        verdict, unit = best_form(_spread(first, dimension), model)
        form = verdict.form
    except (ConfigError, CorpusError, MissingExtraError) as error:
        if not unverified:
            raise ConfigError(
                f"embedder {model.name} cannot be run, so the vectors cannot be checked: {error.message}",
                f"{error.next_step}; or import them unchecked: {UNVERIFIED}",
            ) from None
    else:
        if not verdict.agree and not unverified:
            raise refused(verdict, model.name, first.file, f"import it all the same: {UNVERIFIED}")
    scaled = checked_vectors(first, dimension, unit=unit)[2]
    identity = None if spec is None else spec.identity()
    if identity is not None and (commit := getattr(model, "commit", None)):
        # queries must be embedded with the commit that was checked
        identity["revision"] = commit
    record = EmbedderRecord(name=model.name, revision=model.revision, dim=dimension, spec=identity)
    return Checked(model, record, unit, scaled, form)


def refused(verdict: VectorCheck, embedder: str, where: str, otherwise: str) -> DataError:
    """Return the error for vectors that are not those of their passages."""
    return DataError(
        f"{where}: {verdict.agree} of {verdict.drawn} passages that were embedded again have the vector that "
        f"{embedder} gives them ({verdict.why})",
        f"correct the source, its columns or the embedder; or {otherwise}",
    )


def _spread(first: PassageBlock, dimension: int) -> list[Drawn]:
    vectors, _, _ = checked_vectors(first, dimension, unit=False)
    rows = np.unique(np.linspace(0, len(first) - 1, _ROWS).astype(int)).tolist()
    return [Drawn(row, first.passages[row], vectors[row]) for row in rows]


# A passage agrees with its vector from this cosine on: float16 and int8 keep more, another title or text loses more.
AGREES = 0.99
_BATCH = 16
# Lengths of an embedder's vectors this close to 1 are meant to be 1.
_UNIT = 0.01
# Mean cosines of different passages: below this they say nothing of the embedder; half of it is no difference.
_ALIKE = 0.1


def _apart(passage: Passage) -> str:
    """Return a passage behind its title with a blank after every character, in languages without spaces."""
    piece = passage.text.removeprefix(f"{passage.title}. ")
    if base_language(passage.lang) not in NO_SPACES:
        return passage.text
    return f"{passage.title}. {' '.join(piece.replace(' ', ''))}"


# How a passage's text was made ready for the embedder: all are tried.
FORMS: Mapping[str, Callable[[Passage], str]] = MappingProxyType(
    {
        "text alone": lambda passage: passage.text,
        "title in front": lambda passage: f"{passage.title}. {passage.text}",
        "title and a line end in front": lambda passage: f"{passage.title}\n{passage.text}",
        "title and a blank line in front": lambda passage: f"{passage.title}\n\n{passage.text}",
        "title and a colon in front": lambda passage: f"{passage.title}: {passage.text}",
        "title and a space in front": lambda passage: f"{passage.title} {passage.text}",
        "characters apart": _apart,
    }
)
ALONE = "text alone"


@dataclass(frozen=True)
class VectorCheck:
    """The outcome for a sample: how many of ``drawn`` passages agree with their vectors if they are fed as ``form``.

    ``least`` is the smallest cosine. ``why`` is the likely reason if some do not agree.
    """

    agree: int
    drawn: int
    form: str
    least: float
    why: str = ""

    @property
    def holds(self) -> bool:
        return self.agree == self.drawn


def best_form(sample: Sequence[Drawn], embedder: Embedder) -> tuple[VectorCheck, bool]:
    """Return the verdict for the form in which most passages of a small sample agree with their vectors.

    Also return whether the embedder gives vectors of unit length.
    """
    texts = {form: [made(drawn.passage) for drawn in sample] for form, made in FORMS.items()}
    fresh: dict[str, NDArray[np.float32]] = {}
    for form, fed in texts.items():
        # passages without a title read alike in several forms
        if all(fed != texts[known] for known in fresh):
            fresh[form] = _embedded(embedder, fed)
    stored = _stored(sample)
    cosines = {form: _cosines(stored, vectors) for form, vectors in fresh.items()}
    best = max(cosines, key=lambda form: (int((cosines[form] >= AGREES).sum()), float(cosines[form].mean())))
    unit = bool(np.abs(np.linalg.norm(fresh[best], axis=1) - 1).max() < _UNIT)
    return _verdict(sample, stored, fresh[best], best), unit


def verdict_on(sample: Sequence[Drawn], embedder: Embedder, form: str) -> VectorCheck:
    """Embed a sample again and compare it with its vectors."""
    fresh = _embedded(embedder, [FORMS[form](drawn.passage) for drawn in sample])
    return _verdict(sample, _stored(sample), fresh, form)


def _verdict(
    sample: Sequence[Drawn], stored: NDArray[np.float32], fresh: NDArray[np.float32], form: str
) -> VectorCheck:
    cosines = _cosines(stored, fresh)
    agree = int((cosines >= AGREES).sum())
    why = "" if agree == len(sample) else _why(sample, cosines, stored, fresh)
    return VectorCheck(agree, len(sample), form, round(float(cosines.min()), 4), why)


def _why(
    sample: Sequence[Drawn], cosines: NDArray[np.float64], stored: NDArray[np.float32], fresh: NDArray[np.float32]
) -> str:
    # vectors of one embedder have a mean cosine of their own, whatever the order of the rows
    among, between = _mean_cosine(fresh, fresh), _mean_cosine(stored, fresh)
    median = float(np.median(cosines))
    if median >= AGREES:
        first = sample[int(np.flatnonzero(cosines < AGREES)[0])].passage.id
        return f"some rows differ, passage '{first}' for one: other titles or texts, or texts cut at another length"
    if median - between > (1 - between) / 2:
        return "nearly the same texts: other titles, another prefix, or texts cut at another length"
    if among > _ALIKE and abs(among - between) < _ALIKE / 2:
        return "vectors of this embedder, but of other passages: rows in another order, or other texts"
    return "vectors of another embedder, or of other passages"


def _mean_cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the mean cosine of different rows of two matrices."""
    if len(a) < 2:
        return 0.0
    products = _unit(a) @ _unit(b).T
    return float((products.sum() - np.trace(products)) / (len(a) * (len(a) - 1)))


def _embedded(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    size = batch_size_for(embedder, _BATCH)
    batches = [texts[start : start + size] for start in range(0, len(texts), size)]
    found = dict(vectors_arriving(embedder, batches))
    return np.concatenate([found[number] for number in range(len(batches))])


def _stored(sample: Sequence[Drawn]) -> NDArray[np.float32]:
    return np.stack([drawn.vector for drawn in sample])


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = vectors.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(norms > 0, norms, 1.0)


def _cosines(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float64]:
    cosines: NDArray[np.float64] = np.einsum("nd,nd->n", _unit(a), _unit(b))
    return cosines
