"""Front of all backends: skips, caches, checks and counts translations."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from mrag_eval.core import Failure, TextKind, is_language, normalize_language, same_language
from mrag_eval.models._seat import Seat
from mrag_eval.models.translate._backend import Backend, Text, Translated
from mrag_eval.models.translate._pieces import packed
from mrag_eval.models.translate._table import add_to_table
from mrag_eval.platform import Store, content_key

# A child of the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")

_FORMAT = "translation/1"
# Number of translations written to disk at a time.
_COMMIT = 64
# Outcomes of a text, in the order of reports. The first three are regular; all others are failures.
OUTCOMES = (
    "translated",
    "cached",
    "same_language",
    "empty",
    "wrong_language",
    "refusal",
    "missing",
    "unsupported",
    "failed",
)
_REGULAR = OUTCOMES[:3]
_WORDS = {
    "translated": "translated",
    "cached": "from cache",
    "same_language": "in that language already",
    "empty": "empty",
    "wrong_language": "in the wrong language",
    "refusal": "refused",
    "missing": "missing in the table",
    "unsupported": "in a language that the translator does not have",
    "failed": "failed",
}
# A detector's result rejects texts longer than this, or, if no letter is in a script of the target language, longer
# than the second figure. On XQuAD's 11,900 questions in ten languages it rejects 5, of which 3 are indeed in another
# language than their file's.
_JUDGED_FROM, _JUDGED_FROM_OFF_SCRIPT = 40, 10
_OFF_SCRIPT = 0.95
# Code points of the parts of a long translation, none of which may be in the language of the original. Parts with fewer
# letters than the second figure are not judged: tables, and lists of names. Of five paragraphs each of XQuAD, between
# its ten languages, none of 4,320 is rejected; with 1,200 characters of the original among them 97 % are.
_PART, _LETTERS = 500, 200


@dataclass(frozen=True, slots=True)
class Translation:
    """A text in the target language or, if there is none, the original.

    Attributes:
        text: the translation, or the original.
        lang: the language of ``text``.
        outcome: one of :data:`OUTCOMES`.
        detail: the known cause of a failure.
        by: the translator's label.
        texts: what the text is.
    """

    text: str
    lang: str
    outcome: str
    detail: str | None = None
    by: str = ""
    texts: TextKind = "queries"

    @property
    def is_translation(self) -> bool:
        """Return whether ``text`` was translated."""
        return self.outcome in ("translated", "cached")

    @property
    def failure(self) -> Failure | None:
        """Return why the text is not in the target language; None if it is."""
        if self.outcome in _REGULAR:
            return None
        if self.outcome == "failed" and self.detail:
            return Failure.of("translation", self.by, self.detail, self.texts)
        return Failure("translation", self.by, self.outcome, self.detail or "", self.texts)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class Translator:
    """Translator of texts in batches. ``label`` names it in messages; with a ``store``, no text is translated twice.

    A text in the target language is unchanged. A translation that is empty or in another language (by
    ``metrics.language_detection``, for texts long enough), or of which a part is still in the language of the original,
    is rejected. A text without a translation stays as it is, and has a ``failure``. Accepted translations are added to
    the table ``save``. ``counts`` holds, for every kind of text (``queries``, ``documents``, ``answers``), the number
    of distinct texts by outcome.
    """

    def __init__(
        self,
        backend: Backend,
        label: str,
        *,
        store: Store | None = None,
        check_language: bool = True,
        save: Path | None = None,
    ) -> None:
        self.label = label
        self._save = save
        self.counts: dict[str, Counter[str]] = {}
        self._backend, self._store, self._check = backend, store, check_language
        self._known: dict[Text, Translation] = {}
        self._counted: dict[str, set[Text]] = {}

    def translate(
        self, texts: Sequence[str], sources: Sequence[str], targets: str | Sequence[str], *, kind: TextKind = "queries"
    ) -> list[Translation]:
        """Translate each text into its target language; the result is aligned with ``texts``.

        ``sources`` and ``targets`` are language codes, one per text (or one target for all). A failure of a single text
        is an outcome with its reason; a failure of all (no model of that name, no credentials, a gap in a strict table)
        is raised. ``kind`` is what the texts are.
        """
        goals = [targets] * len(texts) if isinstance(targets, str) else list(targets)
        wanted = [
            Text(text, normalize_language(source), normalize_language(target))
            for text, source, target in zip(texts, sources, goals, strict=True)
        ]
        fresh = [text for text in dict.fromkeys(wanted) if text not in self._known]
        found = self._translated(fresh)
        if self._save is not None:
            add_to_table({text: done.text for text, done in found.items() if done.is_translation}, self._save)
        self._known |= found
        self._count(wanted, kind)
        return [replace(self._known[text], texts=kind) for text in wanted]

    def _translated(self, texts: Sequence[Text]) -> dict[Text, Translation]:
        out: dict[Text, Translation] = {}
        asked: list[Text] = []
        for text in texts:
            if same_language(text.source, text.target) or not text.text.strip():
                out[text] = Translation(text.text, text.source, "same_language", by=self.label)
            else:
                asked.append(text)
        keys = {text: self._key(text) for text in asked}
        stored = self._store.get_many((k for k in keys.values() if k), _is_text) if self._store else {}
        raw = {text: Translated(stored[key]) for text, key in keys.items() if key in stored}
        cached = set(raw)
        raw |= self._translated_by_backend([text for text in asked if text not in cached], keys)
        wrong = self._in_wrong_language(raw) if self._check else set()
        for text, outcome in raw.items():
            if outcome.text is not None and outcome.text.strip() and text not in wrong:
                kind = "cached" if text in cached or outcome.kept else "translated"
                out[text] = Translation(outcome.text, text.target, kind, by=self.label)
                continue
            kind, _, detail = (outcome.reason or "failed").partition(": ")
            if outcome.text is not None:
                kind = "wrong_language" if text in wrong else "empty"
            out[text] = Translation(text.text, text.source, kind, detail or None, self.label)
        return out

    def _key(self, text: Text) -> str | None:
        fingerprint = self._backend.fingerprint(text)
        return None if fingerprint is None else content_key(_FORMAT, fingerprint, text.text, text.source, text.target)

    def _translated_by_backend(self, texts: Sequence[Text], keys: Mapping[Text, str | None]) -> dict[Text, Translated]:
        """Return the backend's outcomes, stored as they arrive, so that nothing is paid for twice."""
        out: dict[Text, Translated] = {}
        if not texts:
            return out
        coming = self._backend.translate(texts)
        while batch := list(islice(coming, _COMMIT)):
            out |= {texts[position]: outcome for position, outcome in batch}
            # an empty translation may be a temporary fault, and is requested again
            kept = {keys[texts[p]]: o.text for p, o in batch if o.text and o.text.strip()}
            if self._store:
                self._store.put_many({key: text for key, text in kept.items() if key})
        return out

    def _in_wrong_language(self, raw: Mapping[Text, Translated]) -> set[Text]:
        from mrag_eval.metrics import code_switch_share, correct_language_rate

        texts = [(text, outcome.text) for text, outcome in raw.items() if outcome.text]
        rate = correct_language_rate(
            [found for _, found in texts], [text.target for text, _ in texts], min_chars=_JUDGED_FROM_OFF_SCRIPT
        )
        wrong: set[Text] = set()
        for (text, found), correct in zip(texts, rate.correct, strict=True):
            if correct is False:
                off_script = code_switch_share(found, text.target).share or 0.0
                if len(found) > _JUDGED_FROM or off_script >= _OFF_SCRIPT:
                    wrong.add(text)
        # a text of which one piece came back unchanged is in the target language as a whole
        parts = [(text, p) for text, found in texts if len(found) > _PART for p in packed(found, text.target, _PART)]
        parts = [(text, part) for text, part in parts if sum(map(str.isalpha, part)) > _LETTERS]
        rate = correct_language_rate([part for _, part in parts], [text.target for text, _ in parts], min_chars=None)
        return wrong | {
            text
            for (text, _), label, correct in zip(parts, rate.detected, rate.correct, strict=True)
            if correct is False and label and is_language(label) and same_language(label, text.source)
        }

    def _count(self, texts: Sequence[Text], kind: str) -> None:
        counted = self._counted.setdefault(kind, set())
        new = [text for text in dict.fromkeys(texts) if text not in counted]
        counted.update(new)
        if not new:
            return
        counts = Counter(self._known[text].outcome for text in new)
        self.counts.setdefault(kind, Counter()).update(counts)
        log.info("%s, by %s: %s", kind, self.label, counts_line(counts))
        left = [text for text in new if self._known[text].failure is not None]
        if left:
            first = left[0]
            why = self._known[first].detail
            log.warning(
                "%d of %d %s are left untranslated; the first one, %s into %s%s: %.80s",
                len(left),
                len(new),
                kind,
                first.source,
                first.target,
                f" ({why})" if why else "",
                " ".join(first.text.split()),
            )

    def asked_again(self, earlier: Mapping[str, Any]) -> dict[str, Any]:
        """Return :meth:`as_dict` of an earlier process, all of whose failures were asked for again here.

        Its failures are left out of it, and of the counts here what it has counted: all that needed no call.
        """
        self.counts = {
            kind: Counter({o: n for o, n in of.items() if o not in _REGULAR[1:]}) for kind, of in self.counts.items()
        }
        left = {kind: {o: n for o, n in of.items() if o in _REGULAR} for kind, of in earlier["counts"].items()}
        return {**earlier, "counts": left}

    @property
    def identity(self) -> dict[str, Any]:
        """Return everything that affects the translations."""
        return {**self._backend.identity(), "check_language": self._check}

    @property
    def seat(self) -> Seat | None:
        """Return the seat that translates; None if no model is asked."""
        return getattr(self._backend, "seat", None)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form for results files: the translator's label, the counts of each kind, and the cost."""
        counts = {kind: {o: counts[o] for o in OUTCOMES if counts[o]} for kind, counts in self.counts.items()}
        out: dict[str, Any] = {"translator": self.label, "counts": counts}
        cost = self._backend.cost()
        if cost is not None:
            out["cost"] = cost
        return out


def counts_line(counts: Mapping[str, int]) -> str:
    """Return one line: ``3,570 translated, 1,190 in that language already, 2 empty``."""
    return ", ".join(f"{counts[o]:,} {_WORDS[o]}" for o in OUTCOMES if counts.get(o)) or "nothing to translate"
