"""What a verification cannot check: a closed list, of which a run gets the lines that apply to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mrag_eval.config import TRANSLATED, harmless_keys, mode_named
from mrag_eval.core import CUT_OFF
from mrag_eval.datasets import identity_of
from mrag_eval.models import ANSWERED_BY_US
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._row_checks import MadeAgain
from mrag_eval.report.verification._task_here import TaskHere


@dataclass(frozen=True)
class CheckedTask:
    """A task of a run after its checks: what is here of it, and what could be made again."""

    here: TaskHere
    samples: Samples
    again: MadeAgain

    @property
    def searched(self) -> bool:
        """Return whether passages were found by a search that is not repeated."""
        rows = self.here.rows
        return self.here.leaf.config.searches and (rows is None or rows.found is None)

    @property
    def shows_unknown_texts(self) -> bool:
        """Return whether passages were shown whose texts are not on this machine."""
        rows = self.here.rows
        if rows is not None and (rows.found is not None or not self.here.leaf.config.searches):
            return False
        first = next((sample.passages[0] for sample in self.samples if sample.passages), None)
        return first is not None and self.here.passages([first.id]) is None

    @property
    def reads_copy(self) -> bool:
        """Return whether the rows or documents here are a copy that nothing is declared to compare with."""
        source = {} if self.here.rows is None else self.here.rows.source
        return any(identity_of(one).status == "local" for one in (source, source.get("corpus") or {}))

    def has(self, part: str) -> bool:
        """Return whether a row's record has a field."""
        return any(getattr(record, part) is not None for record in self.samples.records)


@dataclass(frozen=True)
class Unchecked:
    """Something that nothing in a run contradicts if it is changed together with all that follows from it.

    Attributes:
        what: the line that is printed.
        applies: whether a task of a run has it.
        keys: keys of samples (``doc.ranking``) and of results (``results:config``), with all keys below them; ``*`` is
            the name of a task, a seat, a language or a model.
    """

    what: str
    applies: Callable[[CheckedTask], bool]
    keys: tuple[str, ...]


def _under(prefix: str, *keys: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{key}" for key in keys)


_UNUSED = (
    *("test_split", "unsafe_code", "description", "target_delimiter", "fewshot_delimiter", "fewshot_config"),
    *("metric_list", "repeats", "should_decontaminate", "tag"),
)
# Harmless in a comparison, and still compared with what is here.
_HARMLESS = {one.key.replace("{secret}", "*") for one in harmless_keys()} - {
    "source.published",
    "source.corpus.published",
    "source.corpus.recipe",
}
UNCHECKED = (
    Unchecked("that the replies are the model's", lambda run: True, ("resps", "filtered_resps")),
    Unchecked(
        "which calls for passages failed, why a call did, and what a provider said of a reply",
        lambda run: any(r.failures or r.outcome or r.fate == CUT_OFF for r in run.samples.records),
        (
            *("rows.failures", "rows.fate", "rows.outcome"),
            *_under("results:configs.*.scores.", "failures", "outcomes", "by_language", "cut_off"),
        ),
    ),
    Unchecked(
        "which model replied, with which arguments and chat template",
        lambda run: True,
        (
            *_under("results:", "config", "model_name", "fewshot_as_multiturn", "max_length", "eot_token_id"),
            *_under("results:tokenizer_", "pad_token", "eos_token", "bos_token"),
            *_under("results:configs.*.", "metadata", "measurement.outcome.asked"),
            *_under("results:configs.*.measurement.subject.", "chat_template_name", "code", "generation"),
        ),
    ),
    Unchecked(
        "what calls to the model cost, and how providers say that its replies ended",
        lambda run: run.here.leaf.config.transport == ANSWERED_BY_US,
        _under("results:configs.*.measurement.outcome.", "ledger", "finish_reasons", "answered_by"),
    ),
    Unchecked(
        "settings of the models that judged, planned, translated or reranked, and the names that nothing repeats",
        lambda run: bool(run.here.leaf.measurement.instrument),
        ("rows.came_back", "rows.asked", *_under("results:configs.*.measurement.", "instrument", "outcome.seats")),
    ),
    Unchecked(
        "settings of a search, in a mode that searches nothing",
        lambda run: not run.here.leaf.config.searches,
        ("results:configs.*.measurement.setting.retrieval",),
    ),
    Unchecked(
        "when and on what machine it ran, and with which packages",
        lambda run: True,
        (
            *_under("results:", "date", "start_time", "end_time", "total_evaluation_time_seconds", "git_hash"),
            *_under("results:", "upper_git_hash", "pretty_env_info"),
            "results:configs.*.measurement.environment",
        ),
    ),
    Unchecked(
        "where files were, their hashes, how settings were given, and keys of the harness that our tasks do not use",
        lambda run: True,
        (
            *_under("results:configs.*.", "provenance", *_UNUSED),
            *_under("results:configs.*.measurement.", *(f"*.{key}" for key in ("retrieved", *sorted(_HARMLESS)))),
        ),
    ),
    Unchecked(
        "the context length by which prompts were shortened",
        lambda run: run.has("prompts"),
        ("rows.prompts.limit", "rows.prompts.source", "results:configs.*.scores.prompts"),
    ),
    Unchecked("that the local copy of the data holds the published rows", lambda run: run.reads_copy, ()),
    Unchecked(
        "questions, reference answers, and which rows there are",
        lambda run: run.here.rows is None,
        (
            *("doc", "doc_id", "target", "rows.skipped", "results:n-samples"),
            *_under("results:configs.*.measurement.data.", "left_out", "source"),
        ),
    ),
    Unchecked(
        "what the search returns: the ranking was not made again",
        lambda run: run.searched,
        (
            *_under("doc.", "ranking", "reranked", "searched_with", "passages.score", "passages.rerank_score"),
            *("rows.languages.searchable", "rows.rerank", "results:configs.*.measurement.data.index"),
        ),
    ),
    Unchecked(
        "the contexts: they are the system's own",
        lambda run: mode_named(run.here.leaf.config.mode).asks_system,
        ("doc.passages", "doc.absent_ids"),
    ),
    Unchecked("the texts of passages: the corpus is not here", lambda run: run.shows_unknown_texts, ("doc.passages",)),
    Unchecked(
        "what the agents said, and what that cost",
        lambda run: run.has("loop"),
        ("doc.trace", "doc.passages.critic", "rows.loop", "results:configs.*.measurement.setting.agent"),
    ),
    Unchecked(
        "translations, and what they cost",
        lambda run: run.has("translation"),
        (
            *(
                "rows.translation",
                "rows.answer_translated",
                "doc.passages.text",
                "doc.passages.title",
                "doc.passages.lang",
            ),
            *("results:configs.*.scores.translation",),
        ),
    ),
    Unchecked(
        "replies in the language of the references: their translations",
        lambda run: any(name in TRANSLATED for name in run.here.leaf.config.metrics),
        ("rows.answer_translated",),
    ),
    Unchecked(
        "which claims of an answer are supported: no classifier is asked again",
        lambda run: run.has("grounding") and not run.has("claims_panel"),
        ("rows.grounding",),
    ),
    Unchecked(
        "which claims an answer makes",
        lambda run: run.has("claims_panel"),
        ("rows.grounding",),
    ),
    Unchecked(
        "votes of judges without a reply that can be read again here",
        lambda run: run.again.compared < run.again.cast,
        ("votes", "rows.judge", "rows.sufficiency", "rows.sufficiency_votes"),
    ),
    Unchecked("that the replies of judges are theirs", lambda run: bool(run.again.cast), ("votes.*.reply",)),
    Unchecked(
        "relevance labels of judges, of translated answers, and of texts that are not here",
        lambda run: (
            (not run.again.labels_repeated and run.has("relevance"))
            or any(r.relevance is not None and r.relevance.by == "judge" for r in run.samples.records)
        ),
        ("rows.relevance", "rows.labelling"),
    ),
    Unchecked(
        "how many calls to judges were made, and what they cost",
        lambda run: run.has("panel") or run.has("sufficiency_panel") or run.has("claims_panel") or run.has("labelling"),
        _under("rows.", "panel.ledger", "sufficiency_panel.ledger", "claims_panel.ledger", "labelling.ledger"),
    ),
)


def unchecked(run: CheckedTask) -> Iterator[str]:
    """Return the lines that apply to a task of a run."""
    for entry in UNCHECKED:
        if entry.applies(run):
            yield entry.what
