"""Translations from a table: a JSON Lines file, or the parallel texts of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrag_eval.core import base_language, language_name, normalize_language
from mrag_eval.models.translate._backend import Text, Translated
from mrag_eval.platform import ConfigError, DataError, json_line, replaced

KEYS = ("source", "source_lang", "target", "target_lang")

# (text, language, language of the translation) -> translation
Table = Mapping[tuple[str, str, str], str]


def load_table(path: Path) -> Table:
    """Load the translations of a JSON Lines file of ``{source, source_lang, target, target_lang}``; once per process.

    Texts are looked up without outer white space; scripts of one language count as one language, unless a table has
    both. Raises DataError, with the line, for a row of another form, or with a second translation of a text.
    """
    if not path.is_file():
        raise DataError(
            f"retrieval.translator.path: file {path} not found",
            'write one: lines of {"source": ..., "source_lang": ..., "target": ..., "target_lang": ...}',
        )
    return _read(path, path.stat().st_mtime_ns)[0]


def table_hash(path: Path) -> str:
    """Return the SHA-256 of the file as :func:`load_table` read it."""
    return _read(path, path.stat().st_mtime_ns)[1]


@lru_cache(maxsize=4)
def _read(path: Path, _modified: int) -> tuple[Table, str]:
    raw = path.read_bytes()
    table: dict[tuple[str, str, str], str] = {}
    lines: dict[tuple[str, str, str], int] = {}
    for number, line in enumerate(raw.split(b"\n"), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        row = _checked(json_line(line, where, read=KEYS), where)
        key = (row["source"].strip(), row["source_lang"], row["target_lang"])
        if key in table and table[key] != row["target"]:
            raise DataError(f"{where}: gives another translation of the text of line {lines[key]}", "keep one of them")
        table[key] = row["target"]
        lines.setdefault(key, number)
    return table, sha256(raw).hexdigest()


def _checked(row: dict[str, Any], where: str) -> dict[str, str]:
    for key in KEYS:
        if not isinstance(row.get(key), str):
            raise DataError(f"{where}: '{key}' is missing or not text", f"every line has {', '.join(KEYS)}")
    for key in ("source_lang", "target_lang"):
        try:
            row[key] = normalize_language(row[key])
        except ConfigError as err:
            raise DataError(f"{where}: '{key}': {err.message}", err.next_step) from None
    return row


def table_lines(
    parallel: Iterable[Mapping[str, str]], languages: Sequence[str] | None = None
) -> Iterator[dict[str, str]]:
    """Yield the lines of a table from parallel texts (language -> text), every language into every other.

    ``languages`` restricts them. If a text occurs twice with two translations, the first one counts.
    """
    seen: set[tuple[str, str, str]] = set()
    for versions in parallel:
        for source_lang, source in versions.items():
            for target_lang, target in versions.items():
                if source_lang == target_lang or (languages and not {source_lang, target_lang} <= set(languages)):
                    continue
                key = (source.strip(), source_lang, target_lang)
                if key not in seen:
                    seen.add(key)
                    yield dict(zip(KEYS, (source, source_lang, target, target_lang), strict=True))


def write_table(parallel: Iterable[Mapping[str, str]], path: Path, languages: Sequence[str] | None = None) -> int:
    """Write :func:`table_lines` to a file; return their number."""
    count = 0
    with replaced(path) as part, part.open("w", encoding="utf-8") as out:
        for line in table_lines(parallel, languages):
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
            count += 1
    return count


def add_to_table(translations: Mapping[Text, str], path: Path) -> int:
    """Append the translations that the table at ``path`` lacks; return the number of lines written.

    The lines are written in one call, so that the ranks of a run may share the file. Raises DataError if the table has
    a different translation of one of the texts: it then belongs to another translator.
    """
    held = load_table(path) if path.is_file() else {}
    lines = []
    for text, translation in translations.items():
        known = held.get((text.text.strip(), text.source, text.target))
        if known is not None and known != translation:
            shown = " ".join(text.text.split())[:60]
            raise DataError(
                f"retrieval.translator.save: {path} gives '{shown}' another translation than this translator",
                "name another file",
            )
        if known is None:
            values = (text.text, text.source, translation, text.target)
            lines.append(json.dumps(dict(zip(KEYS, values, strict=True)), ensure_ascii=False) + "\n")
    if lines:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write("".join(lines))
    return len(lines)


class TableBackend:
    """A translation table; ``where`` names it in errors. With ``strict`` a missing text is a DataError.

    ``content`` is the SHA-256 of the table's source.
    """

    def __init__(self, table: Table, where: str, strict: bool = False, *, content: str) -> None:
        self._table, self._where, self._strict, self._content = table, where, strict, content
        self._scripts_aside: dict[tuple[str, str, str], str] = {}
        for (text, source, target), translation in table.items():
            self._scripts_aside.setdefault((text, base_language(source), base_language(target)), translation)

    @classmethod
    def of(cls, parallel: Iterable[Mapping[str, str]], where: str, strict: bool = False) -> TableBackend:
        """Return a table of parallel texts, identified by the hash of its lines."""
        table: dict[tuple[str, str, str], str] = {}
        content = sha256()
        for row in table_lines(parallel):
            table[row["source"].strip(), row["source_lang"], row["target_lang"]] = row["target"]
            content.update(json.dumps(row).encode() + b"\n")
        return cls(table, where, strict, content=content.hexdigest())

    def fingerprint(self, text: Text) -> None:
        """Return None: a repeated lookup costs nothing."""

    def identity(self) -> dict[str, Any]:
        return {"backend": "table", "sha256": self._content}

    def translate(self, texts: Sequence[Text]) -> Iterator[tuple[int, Translated]]:
        for position, text in enumerate(texts):
            found = self._find(text)
            if found is None and self._strict:
                shown = " ".join(text.text.split())
                raise DataError(
                    f"{self._where}: no translation from {language_name(text.source)} "
                    f"into {language_name(text.target)} of "
                    f"'{shown[:60]}{'…' if len(shown) > 60 else ''}'",
                    "add it, or leave out translator.strict: its rows are then unscored, and counted",
                )
            yield position, Translated(found, None if found is not None else "missing")

    def _find(self, text: Text) -> str | None:
        source = text.text.strip()
        found = self._table.get((source, text.source, text.target))
        return (
            found
            if found is not None
            else self._scripts_aside.get((source, base_language(text.source), base_language(text.target)))
        )

    def cost(self) -> dict[str, Any] | None:
        return None
