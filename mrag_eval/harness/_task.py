"""The harness's task class, reduced to what a task of ours is asked for."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple

from lm_eval.api.instance import Instance
from lm_eval.api.metrics import mean
from lm_eval.api.task import ConfigurableTask
from lm_eval.config.task import TaskConfig

from mrag_eval.core import ModelReply
from mrag_eval.harness._command import collect_less
from mrag_eval.harness._models import keep_keys_of
from mrag_eval.harness._result_files import watch_trackers
from mrag_eval.harness._running import Running, watch_evaluate
from mrag_eval.platform import DataError, check_file_name, limited

# Gathers the ranks' records. Its value is the largest share of rows that a metric could not score.
UNSCORED = "unscored"
# Below the harness's logger, so that its command shows our lines as it shows its own.
log = logging.getLogger(f"lm_eval.{__name__}")


class _Rows(list[dict[str, Any]]):
    """The rows as the harness handles them: a list with the one attribute that it asks of a dataset."""

    features: Mapping[str, Any] = {}


class RowResult(NamedTuple):
    """The scores of one row: its record, the judges' votes on it if there are any, its values by metric."""

    record: dict[str, Any]
    votes: dict[str, Any] | None
    values: Mapping[str, float]


class _Mean:
    """An aggregation that equals the harness's mean, because so the harness finds the standard error of a mean.

    ``found`` gives the score, and the values whose mean it is. These take the place of those in the list, because the
    standard error is computed from the same list next.
    """

    def __init__(self, found: Callable[[list[float | None]], tuple[float | None, list[float]]]) -> None:
        self._found = found

    def __call__(self, values: list[float | None]) -> float | None:
        score, values[:] = self._found(values)
        return score

    def __eq__(self, other: object) -> bool:
        return other is self or other is mean

    def __hash__(self) -> int:
        return hash(mean)


def _of_scored(values: list[float | None]) -> tuple[float | None, list[float]]:
    """Return the mean over the ranks' lists, in which they left None where a row has no value.

    A list of nothing but None does not get here: the first rank leaves such a metric out.
    """
    scored = [value for value in values if value is not None]
    return float(mean(scored)), scored


class _SampleValues(dict[str, Any]):
    """The values of a row as its sample shows them.

    The harness updates its sample from this mapping, and averages its ``items()``: the row's values and, under
    :data:`UNSCORED`, its record. In the sample, the record and the votes have names of their own, which are no metrics.
    """

    def __init__(self, row: RowResult, values: Mapping[str, float | None]) -> None:
        super().__init__(rows=row.record, **({} if row.votes is None else {"votes": row.votes}), **values)
        self._averaged = {UNSCORED: row.record, **values}

    def items(self) -> Any:
        return self._averaged.items()


class HarnessTask(ConfigurableTask):
    """A task of the harness that asks its subclass for rows, prompts and scores.

    The harness builds a task, iterates over its rows, renders a prompt for each, filters the replies, scores row by
    row and averages. Its callbacks run several times, on all rows, and in its own order; the abstract methods
    are asked once for each thing they do.
    """

    _rows: _Rows
    _results: Mapping[str, RowResult]
    # the rows that --samples names, and (rank, world size)
    _samples: list[int] | None = None
    _checked = False
    _world: tuple[int, int] = (0, 1)
    # what is known of the model's replies to all of our tasks that run together
    answered: Any = None
    # the model's arguments for its key, where the harness's own command started the run
    key_args: Mapping[str, Any] = {}
    # what the harness hands to the building of requests: system instruction, chat template, limit, samples
    _run: Mapping[str, Any] = {}

    def __init__(self, config: dict[str, Any]) -> None:
        self._name = str(config.get("task", "?"))
        self._set = frozenset(config)
        check_file_name(self._name, "the task's name")
        collect_less()
        watch_trackers()
        watch_evaluate(_around)
        super().__init__(config=config)

    # ------------------------------------------------- asked of the subclass

    @abstractmethod
    def load_rows(self) -> list[dict[str, Any]]:
        """Load the benchmark; return its rows, each with a unique ``id``."""

    @abstractmethod
    def retrieved_rows(self, rows: Sequence[str]) -> list[dict[str, Any]]:
        """Return the rows of these ids with their passages."""

    @abstractmethod
    def check(self, *, judged: bool = True) -> None:
        """Raise for what would end the run after a retrieval; ``judged``: replies are scored, too."""

    @abstractmethod
    def begin(self, model: Any) -> None:
        """Prepare for a run; ``model`` is the harness's object, None where it is unknown."""

    @abstractmethod
    def rendered(self) -> None:
        """Note that all prompts are rendered."""

    @abstractmethod
    def conversation(
        self, row: Mapping[str, Any], system: str | None, chat_template: Callable[..., Any] | None, prefix: str | None
    ) -> Any:
        """Return the prompt of a row: a string, or what ``chat_template`` makes of its turns."""

    @abstractmethod
    def option_texts(self, row: Mapping[str, Any]) -> list[str]:
        """Return the texts whose likelihoods are compared (``output_type: multiple_choice``)."""

    @abstractmethod
    def user_turn(self, row: Mapping[str, Any]) -> str:
        """Return the user turn of a row, without its passages if it has none yet."""

    @abstractmethod
    def reference(self, row: Mapping[str, Any]) -> str:
        """Return the answer that the sample file shows as the target."""

    @abstractmethod
    def score_replies(self, replies: Mapping[str, Sequence[Any]]) -> dict[str, RowResult]:
        """Score all rows of this rank, given each row's filtered replies by id."""

    @abstractmethod
    def value_names(self) -> dict[str, bool | None]:
        """Return the metrics that the harness averages, each with whether higher is better."""

    @abstractmethod
    def summarize_records(self, records: Sequence[Mapping[str, Any]]) -> float:
        """Compute all scores from the gathered records; return the share of rows without a score (:data:`UNSCORED`)."""

    @abstractmethod
    def task_score_names(self) -> dict[str, bool | None]:
        """Return the scores that only the task as a whole has, each with whether higher is better."""

    @abstractmethod
    def task_score(self, name: str) -> tuple[float | None, list[float]]:
        """Return such a score, and the values whose mean it is, if any; asked after :meth:`summarize_records`."""

    @abstractmethod
    def published_config(self, harness: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the result file shows in addition to the harness's own configuration of the task."""

    # ------------------------------------------------------------------ rows

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **_: Any) -> None:
        """Load the benchmark (called by the base class while it is built)."""
        self._rows = _Rows(self.load_rows())
        self.dataset = {"test": self._rows}

    def has_training_docs(self) -> bool:
        return False

    def has_validation_docs(self) -> bool:
        return False

    def has_test_docs(self) -> bool:
        return True

    def test_docs(self) -> _Rows:
        return self._rows

    def fewshot_docs(self) -> None:
        """Return None: the base class would load and keep every row for shots that this task never takes."""

    def doc_iterator(
        self, *, rank: int = 0, limit: int | None = None, world_size: int = 1, samples: list[int] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Iterate over the base class's rows, with their passages; retrieval runs once, for those rows alone.

        ``samples`` keep the order they are given in, which is the order in which the harness names them afterwards.
        """
        self._samples = list(samples) if samples else None
        numbered = self._numbered(rank, limit, world_size, samples)
        rows = self.retrieved_rows([row for _, row in numbered])
        return iter(list(zip((number for number, _ in numbered), rows, strict=True)))

    def _numbered(
        self, rank: int, limit: int | None, world_size: int, samples: list[int] | None
    ) -> list[tuple[int, str]]:
        """Return the rows' ids under the numbers that the harness gives them."""
        if samples:
            numbered: list[tuple[int, Any]] = list(enumerate(self._chosen(samples)))[rank::world_size]
        else:
            numbered = list(super().doc_iterator(rank=rank, limit=limit, world_size=world_size))
        return [(number, str(row["id"])) for number, row in numbered]

    def rows_to_run(self, limit: float | None = None, samples: Mapping[str, list[int]] | None = None) -> list[str]:
        """Return the ids of the rows that a run with these flags of the harness has; nothing is retrieved for them."""
        chosen = (samples or {}).get(self._name)
        return [row for _, row in self._numbered(0, limited(len(self._rows), limit), 1, chosen)]

    def _chosen(self, samples: Sequence[int]) -> list[dict[str, Any]]:
        n = len(self._rows)
        if len(set(samples)) < len(samples):
            twice = next(s for i, s in enumerate(samples) if s in samples[:i])
            raise DataError(f"task {self._name}: --samples names row {twice} twice", "name every row once")
        for number in samples:
            if not 0 <= number < n:
                raise DataError(f"task {self._name}: --samples names row {number}, there are {n}", f"use 0 to {n - 1}")
        return [self._rows[number] for number in samples]

    # --------------------------------------------------------------- prompts

    def build_all_requests(self, **kwargs: Any) -> None:
        """Render the prompts of this rank's rows.

        The harness's request cache is never used: it ignores ``--samples`` and knows nothing of the passages.
        """
        asked = kwargs.pop("cache_requests", False), kwargs.pop("rewrite_requests_cache", False)
        if any(asked):
            log.warning("[%s] the request cache is not used: prompts depend on what is retrieved", self._name)
        self._run = dict(kwargs)
        # together with the others of the run, if the harness's evaluation is known
        check_tasks([self], judged=not self.predict_only)
        self._world = (kwargs.get("rank", 0), kwargs.get("world_size", 1))
        self._results = {}
        self.begin(getattr(kwargs.get("chat_template"), "__self__", None))
        super().build_all_requests(cache_requests=False, rewrite_requests_cache=False, **kwargs)
        self.rendered()

    def answering(self, asked: Any, tasks: Mapping[str, HarnessTask]) -> AbstractContextManager[Any]:
        """Return a block in which ``asked``, the object that the harness asks, answers the requests of our ``tasks``.

        It is entered once in a run, by the first of them.
        """
        return nullcontext()

    def receive(self, replies: Mapping[str, Sequence[Any]]) -> None:
        """Take what came with the replies to each row of this rank, by id, before they are scored."""
        return

    def in_vain(self, doc: Mapping[str, Any]) -> bool:
        """Return whether the model's answer for a row would not be scored, as a step before it failed."""
        return False

    @property
    def complete(self) -> bool:
        """Return whether no row failed in a way that a repetition of the run may mend."""
        return True

    def check_once(self, *, judged: bool) -> None:
        """Check the task, unless it was checked together with one before it."""
        if not self._checked:
            self.check(judged=judged)
            self._checked = True

    def fewshot_context(
        self,
        doc: Mapping[str, Any],
        num_fewshot: int = 0,
        system_instruction: str | None = None,
        apply_chat_template: bool = False,
        fewshot_as_multiturn: bool = False,
        chat_template: Callable[..., Any] | None = None,
        gen_prefix: str | None = None,
    ) -> Any:
        """Return the prompt of one row; as chat turns where a chat template is applied."""
        if num_fewshot:
            raise DataError(
                f"task {self._name}: {num_fewshot} shots asked for, but a retrieval task has none to draw from",
                "leave --num_fewshot out",
            )
        return self.conversation(doc, system_instruction, chat_template if apply_chat_template else None, gen_prefix)

    def construct_requests(self, doc: dict[str, Any], ctx: Any, **kwargs: Any) -> Any:
        """Return one request a row for its reply, or one an option for their likelihoods."""
        if not self.by_likelihood:
            return super().construct_requests(doc, ctx, **kwargs)
        kept = {key: kwargs[key] for key in ("metadata",) if key in kwargs}
        return [
            Instance(request_type="loglikelihood", doc=dict(doc), arguments=(ctx, text), idx=i, **kept)
            for i, text in enumerate(self.option_texts(doc))
        ]

    def doc_to_text(self, doc: Mapping[str, Any], doc_to_text: Any = None) -> str:
        return self.user_turn(doc)

    def doc_to_target(self, doc: Mapping[str, Any], doc_to_target: Any = None) -> str:
        return self.reference(doc)

    # --------------------------------------------------------------- scoring

    @property
    def by_likelihood(self) -> bool:
        """Return whether the options' likelihoods are compared instead of reading a reply."""
        return bool(self.OUTPUT_TYPE == "multiple_choice")

    @property
    def predict_only(self) -> bool:
        """Return whether replies are only written to the samples (``--predict_only``)."""
        return "bypass" in self._metric_fn_list

    @property
    def prompts(self) -> int:
        """Return the number of requests of this rank."""
        return len(self._instances or ())

    def apply_filters(self) -> Any:
        """Filter the replies, then judge and score all rows of this rank in one batch."""
        out = super().apply_filters()
        self.receive({instance.doc["id"]: instance.resps for instance in self._instances or ()})
        if self.predict_only or not self._instances:
            return out
        replies: dict[str, list[Any]] = {}
        for instance in self._instances:
            (reply,) = instance.filtered_resps.values()
            replies.setdefault(instance.doc["id"], []).append(_with_fate(reply, instance.resps))
        self._results = self.score_replies(replies)
        return out

    def process_results(self, doc: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """Return the row's values: numbers for the harness's averages, one record for ours, and the judges' votes."""
        if self.predict_only:
            return {"bypass": 999}
        row = self._results[doc["id"]]
        out: dict[str, float | None] = {}
        rank, world_size = self._world
        for name in self.value_names():
            if name in row.values:
                out[name] = row.values[name]
            elif world_size > 1 and (rank != 0 or any(name in other.values for other in self._results.values())):
                # The harness joins the ranks' lists by the first rank's keys, and breaks where another lacks one.
                out[name] = None
        return _SampleValues(row, out | dict.fromkeys(self.task_score_names()))

    def aggregation(self) -> dict[str, Callable[[Sequence[Any]], Any]]:
        """Return the harness's own mean where every value is a number (it brings ±), ours where ranks hold None."""
        if self.predict_only:
            return dict(self._aggregation_list)
        average: Callable[[Any], Any] = mean if self._world[1] == 1 else _Mean(_of_scored)
        averages: dict[str, Callable[[Any], Any]] = dict.fromkeys(self.value_names(), average)
        for name in self.task_score_names():
            # the score of the task as a whole, which no row has: every row leaves None in the list
            averages[name] = _Mean(partial(self._task_score, name))
        return {UNSCORED: self.summarize_records, **averages}

    def _task_score(self, name: str, _: list[float | None]) -> tuple[float | None, list[float]]:
        return self.task_score(name)

    def higher_is_better(self) -> dict[str, bool | None]:
        if self.predict_only:
            return dict(self._higher_is_better)
        return {UNSCORED: False, **self.value_names(), **self.task_score_names()}

    def chosen_config(self) -> dict[str, Any]:
        """Return the harness's keys of the task that its file sets, or that are not the harness's defaults any more."""
        # of this type no generation settings are made up, which the harness would warn of
        defaults = TaskConfig(task=self._name, output_type="loglikelihood").to_dict()
        found: dict[str, Any] = self.config.to_dict()
        return {key: value for key, value in found.items() if key in self._set or value != defaults.get(key)}

    def dump_config(self) -> dict[str, Any]:
        """Return the harness's configuration of the task and ours; called after all rows are aggregated."""
        out: dict[str, Any] = self.config.to_dict()
        return out | self.published_config(out)


@contextmanager
def _around(begun: Running) -> Iterator[None]:
    """Check all of our tasks before the first of them retrieves, and answer their requests."""
    ours = {name: task for name, task in begun.tasks.items() if isinstance(task, HarnessTask)}
    for task in ours.values():
        task.check_once(judged=not task.predict_only)
    first = next(iter(ours.values()), None)
    if first is None:
        yield
        return
    keep_keys_of(begun.lm)
    with first.answering(begun.asked, ours) as answered:
        for task in ours.values():
            task.answered = answered
        yield
    if answered is not None:
        answered.end(well=all(task.complete for task in ours.values()))


def _with_fate(filtered: Any, given: Sequence[Any]) -> Any:
    """Return a filtered reply with what is known of the reply it was made from: a filter keeps only the text."""
    reply = next((reply for reply in given if isinstance(reply, ModelReply)), None)
    if reply is None:
        return filtered
    text = filtered[0] if isinstance(filtered, list) and filtered else filtered
    return reply.with_text(text if isinstance(text, str) else "")


def check_tasks(tasks: Iterable[Any], *, judged: bool) -> None:
    """Check those of the tasks that are ours, before anything is retrieved for the first of them."""
    for task in tasks:
        if isinstance(task, HarnessTask):
            task.check_once(judged=judged)
