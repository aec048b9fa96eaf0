"""Files of BordIRlines (the hub repository's folder ``data``): queries, published hits, documents, annotations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mrag_eval.core import Passage, is_language, majority_of, normalize_language
from mrag_eval.datasets._borderlines import Question
from mrag_eval.datasets._files import iter_csv, read_json, sha256_file
from mrag_eval.platform import DataError

# Folder of a mode -> its name in this package.
FOLDERS = {"qlang": "qlang", "qlang_en": "qlang+en", "en": "en_only", "rel_langs": "rel_langs"}
_HITS = ("query_id", "rank", "score", "doc_id", "doc_lang")
# Folder of the English control queries; the folder "en" repeats those of English-speaking claimants.
_CONTROL = "control"


@dataclass(frozen=True, slots=True)
class FileHit:
    """A line of a hits file; ``passage`` is our passage id."""

    rank: int
    score: float
    passage: str


@dataclass(frozen=True, slots=True)
class _Query:
    """A line of ``queries.tsv``; ``code`` is its language as given, ``control`` for an English control query."""

    id: str
    territory: str
    code: str
    lang: str
    text: str


# mode -> row id -> hits
Hits = dict[str, dict[str, list[FileHit]]]


def read_queries(root: Path, questions: Sequence[Question], hashes: dict[str, str]) -> tuple[dict[str, str], int]:
    """Return hub id (``Q<n>``) -> our row id, and the number of texts that differ.

    Rule: a line belongs to the question on the same territory (underscores are spaces) in the same language, where
    ``control`` is English. A line with another spelling of the territory belongs to the question with the same text in
    that language. An English question may have two lines on the hub, one ``control`` and one ``en``.
    """
    file = root / "queries.tsv"
    hashes[file.name] = sha256_file(file) if file.is_file() else ""
    by_place = {(_spaced(q.territory.name), q.lang): q for q in questions}
    by_text = {(q.text, q.lang): q for q in questions}
    joined: dict[str, str] = {}
    other_text = 0
    for where, query in _queries(file):
        found = by_place.get((_spaced(query.territory), query.lang)) or by_text.get((query.text, query.lang))
        if found is None:
            raise DataError(f"{where}: no BorderLines question on '{query.territory}' in '{query.code}'")
        if query.id in joined:
            raise DataError(f"{where}: query id '{query.id}' occurs twice")
        joined[query.id] = found.id
        other_text += query.text != found.text
    return joined, other_text


def _queries(file: Path) -> Iterator[tuple[str, _Query]]:
    """Yield the lines of ``queries.tsv``, each with its place in the file."""
    for number, row in iter_csv(file, ("query_id", "territory"), delimiter="\t"):
        where = f"{file}, row {number}"
        code = _first(row, ("language", "query_lang", "lang"), where)
        text = _first(row, ("query_text", "query"), where).strip()
        lang = "en" if code == _CONTROL else _lang(code, where)
        yield where, _Query(row["query_id"], row["territory"], code, lang, text)


def _spaced(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def _first(row: Mapping[str, str], names: Sequence[str], where: str) -> str:
    for name in names:
        if name in row:
            return row[name]
    raise DataError(f"{where}: no column '{names[0]}'; found: {', '.join(row)}")


def _lang(code: str, where: str) -> str:
    if not is_language(code):
        raise DataError(f"{where}: unknown language '{code:.40}'")
    return normalize_language(code)


class Documents:
    """The texts of ``all_docs.json``, by our passage id ``<language>:<the file's id>``."""

    def __init__(self, root: Path, hashes: dict[str, str]) -> None:
        self._file = root / "all_docs.json"
        content, hashes[self._file.name] = read_json(self._file)
        if not isinstance(content, dict) or not all(isinstance(docs, dict) for docs in content.values()):
            raise DataError(f"{self._file}: expected an object of languages, each an object of documents")
        self._texts: dict[str, dict[str, str]] = {
            _lang(code, str(self._file)): docs for code, docs in content.items() if code != _CONTROL
        }
        self.passages: dict[str, Passage] = {}

    def named(self, name: str, lang: str, where: str) -> str:
        """Return the id of a passage that a hits file names; raise DataError for a missing document."""
        texts = self._texts.get(lang, {})
        text = texts.get(name)
        if text is None:
            # Chinese ids have their script as a prefix, in one of the two files or in both
            prefix, _, bare = name.rpartition(".")
            spelt = [bare] if prefix else [f"{code}.{name}" for code in ("zhs", "zht")]
            text = next((texts[other] for other in spelt if other in texts), None)
        if not isinstance(text, str):
            raise DataError(f"{where}: document '{name}' in '{lang}' is not in {self._file}")
        passage = f"{lang}:{name}"
        if passage not in self.passages:
            article = name.rpartition("_p")[0] or name
            self.passages[passage] = Passage(passage, lang, text, "", f"{lang}:{article}")
        return passage

    def paragraphs(self) -> Counter[str]:
        """Return page (as :func:`bare_page`) -> number of its paragraphs in the file, found by a retriever or not."""
        return Counter(
            bare_page(f"{lang}:{name.rpartition('_p')[0] or name}")
            for lang, docs in self._texts.items()
            for name in docs
        )


def bare_page(page: str) -> str:
    """Return ``<language>:<page>`` without the prefix of a script, which Chinese ids have in some files only."""
    lang, _, name = page.partition(":")
    return f"{lang}:{name.rpartition('.')[2]}"


def read_hits(
    root: Path, embedder: str, joined: Mapping[str, str], documents: Documents, hashes: dict[str, str]
) -> Hits:
    """Return the hits of one embedder in every mode, best first; for an English query those of the folder
    ``control``.
    """
    out: Hits = {mode: {} for mode in FOLDERS.values()}
    folders = sorted((p for p in root.iterdir() if p.is_dir()), key=lambda p: (p.name != _CONTROL, p.name))
    for folder in folders:
        for name, mode in FOLDERS.items():
            file = folder / embedder / name / f"{folder.name}_query_hits.tsv"
            if not file.is_file():
                continue
            hashes[file.relative_to(root).as_posix()] = sha256_file(file)
            known = set(out[mode])
            for row_id, hit in _file_hits(file, joined, documents):
                if row_id not in known:
                    out[mode].setdefault(row_id, []).append(hit)
    for runs in out.values():
        for row_id, hits in runs.items():
            hits.sort(key=lambda hit: hit.rank)
            if len({hit.passage for hit in hits}) < len(hits):
                raise DataError(f"bordirlines: a document is listed twice among the {embedder} hits of '{row_id}'")
    return out


def _file_hits(file: Path, joined: Mapping[str, str], documents: Documents) -> list[tuple[str, FileHit]]:
    out = []
    for number, row in iter_csv(file, _HITS, delimiter="\t"):
        where = f"{file}, row {number}"
        if row["query_id"] not in joined:
            raise DataError(f"{where}: query '{row['query_id']}' is not in queries.tsv")
        passage = documents.named(row["doc_id"], _lang(row["doc_lang"], where), where)
        rank, score = _number(row["rank"], int, where, "rank"), _number(row["score"], float, where, "score")
        out.append((joined[row["query_id"]], FileHit(int(rank), score, passage)))
    return out


def _number(value: str, kind: Callable[[str], float], where: str, key: str) -> float:
    try:
        return kind(value)
    except ValueError:
        raise DataError(f"{where}: '{key}' is not a number: {value!r}") from None


@dataclass(frozen=True)
class PublishedLabels:
    """Annotations as read. ``labels``: (row id, the file's document id) -> label.

    ``contradictory`` counts people's labels that were left out (BordIRlines, H.1.3), ``undecided`` the pairs whose
    remaining labels have no majority for relevance, ``unclear`` the relevant ones with none for a viewpoint, and
    ``blank`` the lines without a label.
    """

    labels: Mapping[tuple[str, str], Label]
    contradictory: int
    undecided: int
    unclear: int
    blank: int


# Whose labels: people's, or those of a model prompted without or with examples.
AnnotatedBy = Literal["human", "llm_zeroshot", "llm_fewshot"]
_COLUMNS: Mapping[AnnotatedBy, tuple[str, str, str]] = {
    "human": ("human_annotations.tsv", "relevant", "territory"),
    "llm_zeroshot": ("llm_annotations.tsv", "relevant_zeroshot", "territory_zeroshot"),
    "llm_fewshot": ("llm_annotations.tsv", "relevant_fewshot", "territory_fewshot"),
}


def read_annotations(
    root: Path, who: AnnotatedBy, joined: Mapping[str, str], questions: Mapping[str, Question], hashes: dict[str, str]
) -> PublishedLabels | None:
    """Return the labels of people (by majority for a pair with several) or of a model; None without a file."""
    name, relevance, viewpoint = _COLUMNS[who]
    file = root / name
    if not file.is_file():
        return None
    hashes[name] = sha256_file(file)
    given: dict[tuple[str, str], list[Label]] = defaultdict(list)
    blank = 0
    for number, row in iter_csv(file, ("query_id", "doc_id", relevance, viewpoint), delimiter="\t"):
        where = f"{file}, row {number}"
        if row["query_id"] not in joined:
            raise DataError(f"{where}: query '{row['query_id']}' is not in queries.tsv")
        if not row[relevance].strip():
            blank += 1
            continue
        question = questions[joined[row["query_id"]]]
        supports = read_viewpoint(row[viewpoint], question.territory.claimants, where, question.options)
        given[question.id, row["doc_id"]].append(Label(read_relevance(row[relevance], where), supports))
    if who == "human":
        contradictory = sum(label.contradictory for listed in given.values() for label in listed)
        labels = {pair: found for pair, listed in given.items() if (found := majority(listed)) is not None}
    else:
        contradictory = 0
        labels = {pair: listed[-1] for pair, listed in given.items()}
    unclear = sum(not label.viewpoint for label in labels.values())
    return PublishedLabels(labels, contradictory, len(given) - len(labels), unclear, blank)


@dataclass(frozen=True, slots=True)
class AskedRow:
    """A row of a run: its id, and territory, language and text of its question."""

    id: str
    territory: str
    lang: str
    text: str


@dataclass(frozen=True, slots=True)
class PublishedLabel:
    """A line of a file of annotations as given, with its place in the file and the row that it belongs to."""

    where: str
    row: str
    document: str
    relevant: str
    viewpoint: str


def read_published_labels(file: Path, who: AnnotatedBy, rows: Sequence[AskedRow]) -> Iterator[PublishedLabel]:
    """Yield the labels of a published file on the questions of the rows, without lines that have none.

    ``who`` selects the columns. Questions are found as in :func:`read_queries`. Raises DataError if ``queries.tsv`` is
    not in the same folder, or lacks a query, and for a file without the columns.
    """
    _, relevant, viewpoint = _COLUMNS[who]
    if not (file.parent / "queries.tsv").is_file():
        raise DataError(
            f"{file}: no queries.tsv in the same folder, so its query ids are unknown",
            "name the file in the folder data of a copy of the hub repository borderlines/bordirlines",
        )
    by_place = {(_spaced(row.territory), row.lang): row.id for row in rows}
    by_text = {(row.text, row.lang): row.id for row in rows}
    joined = {
        query.id: by_place.get((_spaced(query.territory), query.lang)) or by_text.get((query.text, query.lang))
        for _, query in _queries(file.parent / "queries.tsv")
    }
    for number, line in iter_csv(file, ("query_id", "doc_id", relevant, viewpoint), delimiter="\t"):
        where = f"{file}, row {number}"
        if line["query_id"] not in joined:
            raise DataError(f"{where}: query '{line['query_id']}' is not in queries.tsv")
        row = joined[line["query_id"]]
        if row is not None and line[relevant].strip():
            yield PublishedLabel(where, row, line["doc_id"], line[relevant], line[viewpoint])


def names_of_document(name: str) -> tuple[str, str]:
    """Return the file's id of a document, as it is and without a script: Chinese ids may lack it in one file."""
    return name, name.rpartition(".")[2]


def data_folder(path: Path) -> Path:
    """Return the folder with ``queries.tsv``: ``path`` itself, or its subfolder ``data``."""
    root = next((p for p in (path, path / "data") if (p / "queries.tsv").is_file()), None)
    if root is None:
        raise DataError(
            f"bordirlines: no queries.tsv in {path} or {path / 'data'}",
            "data.path is a copy of the hub repository borderlines/bordirlines",
        )
    return root


def provenance(hashes: Mapping[str, str]) -> dict[str, Any]:
    """Return the hashes to record: one per file, and for the hundreds of hits files their number."""
    plain = {name: value for name, value in hashes.items() if not name.endswith("_query_hits.tsv")}
    hits = {name: value for name, value in hashes.items() if name not in plain}
    return plain | ({"query_hits": f"{len(hits)} files, {combined(hits)}"} if hits else {})


def combined(hashes: Mapping[str, str]) -> str:
    """Return one SHA-256 over names and hashes."""
    import hashlib

    return hashlib.sha256("\n".join(f"{k} {v}" for k, v in sorted(hashes.items())).encode()).hexdigest()


NEUTRAL = "Neutral"
NOT_RELEVANT = "Not relevant"
_LETTER = re.compile(r"([A-Z])\)\s*")
_YES = {"true", "yes", "1", "relevant"}
_NO = {"false", "no", "0", "not relevant", "irrelevant", "non-relevant"}
_NEUTRAL = {"neutral"}
_IRRELEVANT = {"", "not relevant", "irrelevant", "non-relevant", "n/a", "na", "nan", "none"}


@dataclass(frozen=True, slots=True)
class Label:
    """One annotation: ``viewpoint`` is a claimant's English name, :data:`NEUTRAL` or :data:`NOT_RELEVANT`.

    It is "" for a question that is not about a territory, and where people have no majority for any.
    """

    relevant: bool
    viewpoint: str

    @property
    def contradictory(self) -> bool:
        """Return whether it is relevant without a viewpoint, or not relevant with one (BordIRlines, H.1.3).

        Both are left out there.
        """
        return bool(self.viewpoint) and self.relevant == (self.viewpoint == NOT_RELEVANT)

    def as_labels(self) -> dict[str, str]:
        """Return the label in the form of a passage's ``labels``."""
        labels = {"relevant": "yes" if self.relevant else "no"}
        return labels | ({"viewpoint": self.viewpoint} if self.viewpoint else {})


def read_relevance(value: str, where: str) -> bool:
    """Return True or False for ``TRUE`` / ``Yes`` and their opposites; raise DataError for another label."""
    text = value.strip().casefold()
    if text in _YES:
        return True
    if text in _NO:
        return False
    raise DataError(f"{where}: relevance label '{value}' is neither yes nor no", "allowed: TRUE, FALSE, Yes, No")


def read_viewpoint(value: str, claimants: Sequence[str], where: str, native: Sequence[str] = ()) -> str:
    """Return a claimant given by name or as ``A) name`` (English or ``native``), Neutral, or Not relevant; else raise
    DataError.
    """
    letter = _LETTER.match(value.strip())
    name = value.strip()[letter.end() :].strip() if letter else value.strip()
    for names in (claimants, native):
        if name in names:
            return claimants[list(names).index(name)]
    plain = name.casefold().rstrip(".")
    if plain in _NEUTRAL:
        return NEUTRAL
    if plain in _IRRELEVANT and not (letter and not name):
        return NOT_RELEVANT
    if letter and not name and ord(letter[1]) - ord("A") < len(claimants):
        return claimants[ord(letter[1]) - ord("A")]
    allowed = ", ".join([*claimants, NEUTRAL, NOT_RELEVANT])
    raise DataError(f"{where}: viewpoint label '{value}' is not one of this query's", f"allowed: {allowed}")


def majority(labels: Sequence[Label]) -> Label | None:
    """Return what more than half of the annotators say, for each of the two questions (BordIRlines, section 3.3).

    Contradictory labels are ignored. Returns None without a majority for relevance. A relevant document on whose
    viewpoint no majority agrees keeps its relevance, and its viewpoint is "".
    """
    sound = [label for label in labels if not label.contradictory]
    relevant = majority_of([label.relevant for label in sound])
    viewpoint = majority_of([label.viewpoint for label in sound])
    return None if relevant is None else Label(relevant, viewpoint or "")
