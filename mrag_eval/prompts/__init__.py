"""Prompt templates and their rendering."""

from typing import TYPE_CHECKING

from mrag_eval.platform import lazy_door

if TYPE_CHECKING:
    from mrag_eval.prompts._budget import LONGEST_REPLY, Budget, budget_for, fit, longest_reply
    from mrag_eval.prompts._chat import Conversation, folded, knows_system_role, plain_prompt, renderer
    from mrag_eval.prompts._render import PromptTemplate, builtin_names, defuse, load_template, template_source
    from mrag_eval.prompts._system_prompts import prompt_languages, system_prompts
else:
    __getattr__, __dir__ = lazy_door(__name__)
