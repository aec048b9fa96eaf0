"""Shared state of an XRAG build, and its steps in order."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mrag_eval.building.review._review import ReviewDocument, ReviewItem
from mrag_eval.building.review._review_outcome import Review, reviewed
from mrag_eval.building.steps._asking import model_identity
from mrag_eval.building.steps._records import Outcome, Settle, dropped, each, kept
from mrag_eval.building.steps._steps import Say, Step, read_records, step_records
from mrag_eval.building.steps._templates import Prompts
from mrag_eval.building.xrag import _linked_questions as linked_questions
from mrag_eval.building.xrag._articles import Library, corpus_identity, read_articles, sampled
from mrag_eval.building.xrag._events import article_index, by_model, by_recogniser, described, read_events, recogniser
from mrag_eval.building.xrag._linked_questions import (
    closed_book,
    settle_translations,
    translate,
    translation_item,
    what_each_holds,
    with_people,
)
from mrag_eval.building.xrag._pairing import find_distractors, pair_articles
from mrag_eval.building.xrag._xrag_records import Headline, LinkedQuestion
from mrag_eval.building.xrag._xrag_rows import make_rows
from mrag_eval.building.xrag._xrag_settings import PROMPTS, SEATS, XragSettings
from mrag_eval.datasets import sha256_file
from mrag_eval.models import AuxModel, behind_api
from mrag_eval.retrievers import Embedder, Index, embedder_as_named, load_embedder

# The last step before the human review.
BEFORE_REVIEW = "each_article"
# The last step before the review of translations.
TRANSLATION = "translation"
_NOT_REVIEWED = "nobody has looked at these questions"
# The limits that affect each step.
_LIMITS: Mapping[str, tuple[str, ...]] = {
    "summaries": ("summary_words", "copied"),
    "simple_qa": ("simple_pairs", "simple_question_words", "simple_answer_words"),
    "questions": ("question_words", "questions_per_type"),
}


class XragWork:
    """Shared state of the steps: models, prompts, articles and index."""

    def __init__(
        self,
        files: Sequence[Path],
        folder: Path,
        settings: XragSettings,
        review_sheets: Sequence[Path],
        translation_sheets: Sequence[Path],
        model_named: Callable[[str], AuxModel],
        embedder: Embedder | None,
        say: Say,
    ) -> None:
        self.files, self.folder, self.settings, self.say = files, folder, settings, say
        self.sheets, self.translation_sheets, self.embedder = list(review_sheets), list(translation_sheets), embedder
        self.outcome: Review | None = None
        self.translations: Review | None = None
        self.prompts = Prompts(PROMPTS, settings.prompts)
        self.corpus = corpus_identity(files)
        # created before any work is done, since a missing model or package would end the build half-way
        if self._needs_entities and settings.entities.backend != "lm":
            recogniser(settings.entities)
        if settings.events.path is not None and "multi" in settings.settings:
            read_events(settings.events.path)
        if embedder is None:
            load_embedder(settings.retriever.embedder, device=settings.retriever.device)
        self._models: dict[str, AuxModel] = {}
        self.seats = {seat: self._model(settings.models.seat(seat), model_named) for seat in self._used_seats()}
        self.unknowing = {name: self._model(name, model_named) for name in dict.fromkeys(settings.models.closed_book)}
        for name, model in self._models.items():
            if behind_api(model.spec, name):
                model.check()

    @property
    def _needs_entities(self) -> bool:
        return "mono" in self.settings.settings

    def _used_seats(self) -> list[str]:
        settings = self.settings
        unused = set()
        if not self._needs_entities or settings.entities.backend != "lm":
            unused.add("entities")
        if not settings.models.closed_book:
            unused.add("judge")
        return [seat for seat in SEATS if seat not in unused]

    def _model(self, name: str, model_named: Callable[[str], AuxModel]) -> AuxModel:
        if name not in self._models:
            self._models[name] = model_named(name)
        return self._models[name]

    @property
    def _steps_folder(self) -> Path:
        return self.folder / "steps"

    @cached_property
    def library(self) -> Library:
        return Library(step_records(self._steps_folder, "articles"))

    @cached_property
    def articles(self) -> dict[str, Headline]:
        return {item.id: item for item in read_records(step_records(self._steps_folder, "sample"), Headline)}

    @cached_property
    def index(self) -> Index:
        items = list(self.articles.values())
        self.say(f"index        {len(items):,} articles, embedder {self._embedder_name()[0]}")
        return article_index(items, self.library, self.settings.retriever, self.folder, self.embedder)

    def _embedder_name(self) -> tuple[str, str | None]:
        if self.embedder is not None:
            return self.embedder.name, self.embedder.revision
        return embedder_as_named(self.settings.retriever.embedder)

    def steps(self) -> list[Step]:
        """Return all steps; those that the settings do not request pass everything on, so that step numbers do not
        change.
        """
        s = self.settings
        languages = ["en", *(s.languages if "multi" in s.settings else ())]
        block = s.articles.model_dump(mode="json")
        return [
            Step(
                "articles",
                lambda _, settle: read_articles(self.files, s.articles, languages, settle),
                {"corpus": self.corpus, "languages": languages, **block},
                whole=True,
            ),
            Step(
                "sample",
                lambda items, settle: sampled(items, s.articles.sample, s.seed, settle),
                {"sample": s.articles.sample, "seed": s.seed},
                kind=Headline,
                whole=True,
            ),
            self._entities(),
            Step(
                "pairs",
                lambda items, settle: pair_articles(s, lambda: self.index, self._note, items, settle),
                self._pair_settings(),
                kind=Headline,
                whole=True,
            ),
            self._asking("topic", "topic", linked_questions.topic, self._library_of),
            self._asking("summaries", "summary", linked_questions.summaries, self._settings_of, self._library_of),
            self._asking("simple_qa", "simple_qa", linked_questions.simple_pairs, self._settings_of),
            self._asking("questions", "questions", linked_questions.questions, self._settings_of),
            Step(
                "duplicates",
                lambda items, settle: drop_alike(items, s.limits.alike, settle),
                {"alike": s.limits.alike},
                kind=LinkedQuestion,
                whole=True,
            ),
            self._asking("answers", "answer", linked_questions.answers, self._settings_of, self._library_of),
            self._closed_book(),
            self._asking(BEFORE_REVIEW, "holds", what_each_holds, self._library_of),
            _of_people("review", self._review, self.sheets),
            _of_corrections(self._closed_book()),
            _of_corrections(self._asking(BEFORE_REVIEW, "holds", what_each_holds, self._library_of)),
            self._distractors(),
            self._asking(TRANSLATION, "translation", translate),
            _of_people("translation_review", self._review_translations, self.translation_sheets),
            Step("rows", self._rows, {"seed": s.seed}, kind=LinkedQuestion),
        ]

    def _library_of(self) -> Library:
        return self.library

    def _settings_of(self) -> XragSettings:
        return self.settings

    def _note(self, line: str) -> None:
        self.say(f"{'':<12} {line}")

    def _asking(self, name: str, seat: str, work: Callable[..., None], *given: Callable[[], Any]) -> Step:
        """Return a step that asks the model of a seat with the prompt of that name."""
        model = self.seats[seat]
        s = self.settings
        settings: dict[str, Any] = {
            "model": model_identity(model),
            "prompts": self.prompts.hashes(seat),
            **{key: value for key, value in s.limits.model_dump().items() if key in _LIMITS.get(name, ())},
        }
        if name == "simple_qa":
            settings["types"] = list(s.types)
        if name == "answers":
            settings["answer_from"] = s.answer_from

        def run(items: Sequence[LinkedQuestion], settle: Settle) -> None:
            if items:
                work(model, self.prompts, *(what() for what in given), items, settle)

        return Step(name, run, settings, kind=LinkedQuestion, models=(model,))

    def _entities(self) -> Step:
        block = self.settings.entities
        if not self._needs_entities:
            return Step(
                "entities", lambda items, settle: each(items, _without_entities, settle), {"needed": False}, Headline
            )
        model = self.seats.get("entities")

        def run(items: Sequence[Headline], settle: Settle) -> None:
            english = [item for item in items if item.lang == "en"]
            each([item for item in items if item.lang != "en"], _without_entities, settle)
            if model is not None:
                by_model(model, self.prompts, english, settle)
            else:
                by_recogniser(recogniser(block), english, settle)

        settings = {**described(block), "needed": True}
        if model is None:
            return Step("entities", run, settings, Headline)
        asked = {"model": model_identity(model), "prompts": self.prompts.hashes("entities")}
        return Step("entities", run, settings | asked, Headline, models=(model,))

    def _pair_settings(self) -> dict[str, Any]:
        s = self.settings
        found: dict[str, Any] = {
            "pairs": s.pairs.model_dump(),
            "settings": list(s.settings),
            "languages": list(s.languages),
            "distractors": [s.distractors.count, s.distractors.older_days],
            "seed": s.seed,
        }
        if "multi" in s.settings:
            path = s.events.path
            events = {**s.events.model_dump(exclude={"path"}), "sha256": None if path is None else _hash(path)}
            found |= {"events": events, "retriever": self._retriever_settings()}
        return found

    def _retriever_settings(self) -> dict[str, Any]:
        return {"embedder": list(self._embedder_name()), "lead": self.settings.retriever.lead}

    def _closed_book(self) -> Step:
        judge = self.seats.get("judge")

        def run(items: Sequence[LinkedQuestion], settle: Settle) -> None:
            if judge is None:
                each(items, lambda item: kept(replace(item, unknown_to=())), settle)
            elif items:
                closed_book(self.unknowing, judge, self.prompts, items, settle)

        settings: dict[str, Any] = {"models": {name: model_identity(m) for name, m in self.unknowing.items()}}
        asked: list[AuxModel] = list(self.unknowing.values())
        if judge is not None:
            prompts = {**self.prompts.hashes("closed_book"), "judge": self.prompts.judge_sha256()}
            settings |= {"judge": model_identity(judge), "prompts": prompts}
            asked += [judge] if judge not in asked else []
        return Step("closed_book", run, settings, LinkedQuestion, models=asked)

    def _distractors(self) -> Step:
        s = self.settings
        model = self.seats["holds"] if s.distractors.check else None

        def run(items: Sequence[LinkedQuestion], settle: Settle) -> None:
            if items:
                find_distractors(model, self.prompts, s, self.library, self.index, self.articles, items, settle)

        settings = {
            **s.distractors.model_dump(),
            "model": None if model is None else model_identity(model),
            "prompts": self.prompts.hashes("holds"),
            "retriever": self._retriever_settings(),
            "languages": list(s.languages),
        }
        return Step("distractors", run, settings, LinkedQuestion, models=() if model is None else (model,))

    def _rows(self, items: Sequence[LinkedQuestion], settle: Settle) -> None:
        if items:
            make_rows(self.library, self.settings.seed, items, settle)

    # --- people ------------------------------------------------------------------------------------------------------

    def read_reviews(self) -> Review:
        """Return the annotators' review of the questions."""
        self.outcome = reviewed(self.sheets, self.questions_to_review())
        return self.outcome

    def questions_to_review(self) -> list[ReviewItem]:
        """Return the questions as items of a review sheet."""
        records = read_records(step_records(self._steps_folder, BEFORE_REVIEW), LinkedQuestion)
        return [self._review_item(record) for record in records]

    def _review_item(self, item: LinkedQuestion) -> ReviewItem:
        articles = map(self.library.article, item.ends)
        documents = tuple(ReviewDocument(a.text, a.lang, a.title, a.date) for a in articles)
        return ReviewItem(item.id, item.question, item.answer, "en", documents, linked_questions.KIND_NAMES[item.type])

    def _review(self, items: Sequence[LinkedQuestion], settle: Settle) -> None:
        if not self.sheets or not items:
            each(items, lambda item: kept(replace(item, a_type="original")), settle)
            return
        found = self._said(self.read_reviews())
        for item in items:
            decision = found.decisions[item.id]
            if decision.answer is None:
                settle(item.id, dropped(f"review: {decision.reason}"))
                continue
            item = replace(item, people_holds=decision.holds, reviewed=True)
            if decision.corrected:  # the model's labels are of another answer; later steps ask for new ones
                settle(item.id, kept(replace(item, answer=decision.answer, a_type="corrected")))
            else:
                settle(item.id, with_people(replace(item, a_type="original")))

    def read_translation_reviews(self) -> Review:
        """Return the annotators' review of the translations."""
        self.translations = reviewed(self.translation_sheets, self.translations_to_review())
        return self.translations

    def translations_to_review(self) -> list[ReviewItem]:
        """Return the translations as items of a review sheet."""
        return [
            translation_item(item)
            for item in read_records(step_records(self._steps_folder, TRANSLATION), LinkedQuestion)
        ]

    def _review_translations(self, items: Sequence[LinkedQuestion], settle: Settle) -> None:
        if not self.translation_sheets or not items:
            each(items, kept, settle)
            return
        settle_translations(self._said(self.read_translation_reviews()), items, settle)

    def _said(self, found: Review) -> Review:
        for line in found.lines():
            self.say(line)
        return found

    # --- the datasheet -----------------------------------------------------------------------------------------------

    def languages(self) -> dict[str, int]:
        """Return the number of articles by language."""
        return dict(Counter(article.lang for article in self.articles.values()).most_common())

    def facts(self) -> dict[str, Any]:
        """Return the datasheet's facts on the source, the models and the prompts."""
        days = sorted(article.date for article in self.articles.values())
        source: Mapping[str, Any] = {
            "files": self.corpus,
            "articles": self.languages(),
            "published": f"{days[0]} to {days[-1]}" if days else "no article",
        }
        models = {seat: _shown(model) for seat, model in self.seats.items()}
        models |= {f"without documents: {name}": _shown(model) for name, model in self.unknowing.items()}
        name, revision = self._embedder_name()
        return {
            "source": source,
            "models": {**models, "retriever": f"{name} {revision or ''}".strip()},
            "prompts": {**self.prompts.hashes(*PROMPTS), "judge": self.prompts.judge_sha256()},
            "summaries": self._copied(),
            **({} if self.outcome is not None else {"people": "not yet" if self.sheets else _NOT_REVIEWED}),
        }

    def _copied(self) -> dict[str, Any]:
        """Return how much the remaining summaries copy from their articles."""
        records = read_records(step_records(self._steps_folder, "summaries"), LinkedQuestion)
        shares = [share for record in records for share in record.copied]
        if not shares:
            return {"summaries": 0}
        mean = round(sum(shares) / len(shares), 3)
        return {"summaries": len(shares), "fourgrams of the article, mean share": mean, "highest": max(shares)}


def _of_people(name: str, work: Callable[[Sequence[LinkedQuestion], Settle], None], sheets: Sequence[Path]) -> Step:
    return Step(name, work, {"sheets": [_hash(path) for path in sheets]}, LinkedQuestion, whole=True)


def _of_corrections(step: Step) -> Step:
    """Return the step for questions whose answer was corrected in the review; the others pass."""

    def run(items: Sequence[LinkedQuestion], settle: Settle) -> None:
        each([item for item in items if item.a_type != "corrected"], kept, settle)
        corrected = [item for item in items if item.a_type == "corrected"]
        if corrected:
            step.work(corrected, settle)

    return replace(step, name=f"{step.name}_corrected", work=run)


def _without_entities(item: Headline) -> Outcome:
    return kept(replace(item, entities=()))


def _hash(path: Path) -> str | None:
    return sha256_file(path) if path.is_file() else None


def _shown(model: AuxModel) -> str:
    args = model.spec.model_args
    return f"{model.name} ({model.spec.model} {args.get('model') or args.get('pretrained') or ''})".replace(" )", ")")


def drop_alike(items: Sequence[LinkedQuestion], threshold: float, settle: Settle) -> None:
    """Drop every question whose set of words is similar to that of an earlier one of its setting and language.

    Similar means a Jaccard similarity (shared words by all words) of at least ``threshold``, on normalised words in any
    script. Only the rarest words of a question are looked up: two similar sets share one of the first ``n - ⌈t·n⌉ +
    1``.
    """
    from mrag_eval.metrics import word_tokens

    sets = [frozenset(word_tokens(item.question, normalize="unicode", lang="en")) for item in items]
    frequency = Counter(word for words in sets for word in words)
    kept_by: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for position, (item, words) in enumerate(zip(items, sets, strict=True)):
        if not words:
            settle(item.id, dropped("empty question"))
            continue
        ranked = sorted(words, key=lambda word: (frequency[word], word))
        prefix = ranked[: len(ranked) - math.ceil(threshold * len(ranked) - 1e-9) + 1]
        near = {other for word in prefix for other in kept_by[item.setting, item.lang, word]}
        like = next((n for n in sorted(near) if len(words & sets[n]) >= threshold * len(words | sets[n]) - 1e-9), None)
        if like is not None:
            settle(item.id, dropped("like another question", items[like].id))
            continue
        for word in prefix:
            kept_by[item.setting, item.lang, word].append(position)
        settle(item.id, kept(item))
