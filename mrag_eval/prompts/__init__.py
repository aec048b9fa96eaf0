"""Prompt templates and their rendering."""

from mrag_eval.prompts.render import PromptTemplate, builtin_names, defuse, fence, load_template, template_source
from mrag_eval.prompts.system_prompts import SystemPrompt, prompt_languages, system_prompts

__all__ = [
    "PromptTemplate",
    "SystemPrompt",
    "builtin_names",
    "defuse",
    "fence",
    "load_template",
    "prompt_languages",
    "system_prompts",
    "template_source",
]
