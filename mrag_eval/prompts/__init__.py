"""Prompt templates and their rendering."""

from mrag_eval.prompts.render import PromptTemplate, builtin_names, defuse, fence, load_template

__all__ = ["PromptTemplate", "builtin_names", "defuse", "fence", "load_template"]
