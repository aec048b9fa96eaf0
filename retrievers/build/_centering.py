"""The mean vector of each language, from the stored vectors of an index: one pass, in blocks.

The means lie beside the files of the manifest, so they change neither the index nor its fingerprint. Until they are
whole they are in a file beside the folder, with the vectors read so far: a killed pass continues from there.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mrag_eval.platform import CorpusError, Wait, build_lock, room_on_disk, write_whole
from mrag_eval.retrievers.build._dense_files import vectors_name
from mrag_eval.retrievers.index._means import MEANS, LanguageMeans, means_of, saved_means, vectors_key
from mrag_eval.retrievers.shards._faiss_shard import FaissShard
from mrag_eval.retrievers.shards._manifest import Manifest, check_files, manifest_bytes, parse_manifest

# blocks of vectors after which the sums are saved
_SAVED = 64


def center_index(path: str | Path, *, memory: int = 16 << 20) -> LanguageMeans:
    """Compute the mean vector of each language of an index, and keep them in its folder; return them.

    Nothing is embedded, and no other file changes. Means that are there are not computed again; an interrupted call
    is continued. ``memory`` is that of the vectors read at a time, in bytes.

    Raises CorpusError for an index without dense vectors, and for one that is missing or damaged.
    """
    folder = Path(path).resolve()
    manifest = parse_manifest(folder, manifest_bytes(folder))
    if manifest.kind != "dense":
        raise CorpusError(
            f"index {folder} is of kind '{manifest.kind}': only a dense index is ranked by its vectors alone",
            "name a dense index, or build one: mrag-eval index build --kind dense ...",
        )
    check_files(folder, manifest)
    with build_lock(folder), room_on_disk(folder, "free some space, then give the same command again"):
        return write_means(folder, manifest, memory)


def write_means(folder: Path, manifest: Manifest, memory: int = 16 << 20) -> LanguageMeans:
    """Do as :func:`center_index` for a dense index that nobody else writes to."""
    found = means_of(folder, manifest)
    if found is not None:
        return found
    assert manifest.embedder is not None
    dimension = manifest.embedder.dim
    unfinished = folder.with_name(f"{folder.name}.centering")
    earlier = saved_means(unfinished, manifest) or LanguageMeans("", {}, {})
    done, sums = dict(earlier.counts), {lang: total.copy() for lang, total in earlier.sums.items()}
    means = LanguageMeans(vectors_key(manifest), done, sums)
    rows, blocks = max(1, memory // (4 * dimension)), 0
    with Wait(f"means of {folder.name}", manifest.passages, "vectors", done=sum(done.values())) as wait:
        for lang, record in sorted(manifest.languages.items()):
            path = folder / vectors_name(lang)
            shard = FaissShard(path, record.passages, dimension, store=manifest.store)
            sums.setdefault(lang, np.zeros(dimension))
            while (first := done.setdefault(lang, 0)) < record.passages:
                block = shard.vectors(np.arange(first, min(first + rows, record.passages)))
                # row after row, so that the sum is the same whatever the size of the blocks
                sums[lang] = np.add.reduce(np.concatenate([sums[lang][None], block]), axis=0)
                done[lang] = first + len(block)
                blocks += 1
                if blocks % _SAVED == 0:
                    write_whole(unfinished, json.dumps(means.to_json()))
                wait.add(len(block))
    write_whole(unfinished, json.dumps(means.to_json()))
    unfinished.replace(folder / MEANS)
    return means
