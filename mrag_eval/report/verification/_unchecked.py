"""What a verification cannot check: a closed list, of which a run gets the lines that apply to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mrag_eval.report.files._samples import Sample
from mrag_eval.report.verification._task_here import TaskHere

_Applies = Callable[[TaskHere, Sequence[Sample]], bool]


@dataclass(frozen=True)
class Unchecked:
    """Hold something that nothing in a run contradicts if it is changed together with all that follows from it.

    Attributes:
        what: the line that is printed.
        applies: whether a task of a run has it.
        keys: keys of samples (``doc.ranking``) and of results (``results:config``), with all keys below them.
    """

    what: str
    applies: _Applies
    keys: tuple[str, ...]


def _always(here: TaskHere, samples: Sequence[Sample]) -> bool:
    return True


def _searched(here: TaskHere, samples: Sequence[Sample]) -> bool:
    return here.leaf.config.searches and (here.rows is None or here.rows.found is None)


def _without_corpus(here: TaskHere, samples: Sequence[Sample]) -> bool:
    shown = [passage.id for sample in samples for passage in sample.passages]
    if not shown or (here.rows is not None and (here.rows.found is not None or here.rows.repeated is not None)):
        return bool(shown) and _searched(here, samples) and here.passages(shown[:1]) is None
    return True


def _has(part: str) -> _Applies:
    return lambda here, samples: any(getattr(sample.record, part) is not None for sample in samples)


UNCHECKED = (
    Unchecked("that the replies are the model's", _always, ("resps", "filtered_resps")),
    Unchecked(
        "which model replied, with which arguments, and when",
        _always,
        (
            *(f"results:{key}" for key in ("config", "model_source", "model_name", "date", "start_time", "end_time")),
            *(f"results:{key}" for key in ("model_name_sanitized", "total_evaluation_time_seconds", "max_length")),
            *("results:configs.metadata", "results:chat_template_sha", "results:system_instruction_sha"),
            *("results:chat_template", "results:fewshot_as_multiturn", "results:eot_token_id"),
            *(f"results:tokenizer_{name}_token" for name in ("pad", "eos", "bos")),
        ),
    ),
    Unchecked(
        "the machine and the versions of packages there",
        _always,
        (
            *(f"results:{key}" for key in ("pretty_env_info", "git_hash", "upper_git_hash", "transformers_version")),
            *("results:lm_eval_version", "results:configs.provenance.versions"),
        ),
    ),
)


def unchecked(here: TaskHere, samples: Sequence[Sample]) -> Iterator[str]:
    """Return the lines that apply to a task of a run."""
    for entry in UNCHECKED:
        if entry.applies(here, samples):
            yield entry.what
