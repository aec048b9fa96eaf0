"""The one room that knows lm-evaluation-harness: its task class, its registry, its command and its result files.

Everything here was written against lm-eval 0.4.13. Nothing else in this package imports ``lm_eval``; a new release of
the harness is met here first. The model objects that it builds are also used in :mod:`mrag_eval.models`. Importing this
room takes seconds; import it inside functions.
"""

from typing import TYPE_CHECKING

# first: the harness looks for its own models only while none is registered
import lm_eval.models

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM, CachingLM
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager
    from lm_eval.utils import sanitize_model_name, setup_logging

    from mrag_eval.harness._command import command_line, end_with_1, is_stock_command, without_traceback
    from mrag_eval.harness._groups import group_rules, group_scores
    from mrag_eval.harness._models import (
        check_local_weights,
        check_model,
        known_model_types,
        model_class,
        model_faults,
        model_type_of,
        parse_arguments,
        register_model_type,
        runs_here,
        sends_by_http,
        settings_of_weights,
        warnings_only,
    )
    from mrag_eval.harness._result_files import run_files
    from mrag_eval.harness._run import (
        config_file_settings,
        evaluate,
        metadata_of_command,
        run_parser,
        run_settings,
        score_table,
        setting_types,
    )
    from mrag_eval.harness._running import Running, blank_half_groups, running
    from mrag_eval.harness._task import HarnessTask, RowResult, check_tasks
    from mrag_eval.harness._task_files import listed_tasks, load_tasks, read_task_file, task_keys, task_manager
    from mrag_eval.harness._under_way import TaskLoading, loading
else:
    __getattr__, __dir__ = lazy_door(__name__)
