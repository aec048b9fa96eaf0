"""Prompts: Jinja templates with two blocks, ``system`` and ``user``, rendered in a sandbox.

Questions, options and passages are values, never template source, and cannot close the tags that fence them in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mrag_eval.errors import ConfigError, did_you_mean
from mrag_eval.languages import is_known, name

_FOLDER = Path(__file__).parent
# Where a built-in template asks for the answer, unless the task says otherwise.
_ANSWER_FORMATS = {"articles": "tag", "multiple_choice": "line"}
# Our own tags, and the turn markers of common chat templates, which tokenizers read as special tokens in any text.
_FENCED = re.compile(
    r"<(?=\s*/?\s*(?:documents?|questions?|options|answers?|articles?|text_\d+|date_\d+)\b"
    r"|\||/?s>|(?:start|end)_of_turn>|(?:bos|eos)>)",
    re.IGNORECASE,
)


def fence(text: str) -> str:
    """``text`` with brackets that open a template tag or a chat turn replaced by ``‹``, so that it closes none."""
    return _FENCED.sub("‹", text) if "<" in text else text


def builtin_names() -> list[str]:
    """Names of the templates that come with the package."""
    return sorted(path.stem for path in _FOLDER.glob("*.jinja"))


class PromptTemplate:
    """A compiled template.

    Variables in both blocks: ``query``, ``lang`` (BCP 47), ``language`` (its English name), ``options`` (list of
    ``letter``, ``text``), ``passages`` (list of ``index`` from 1, ``title``, ``text``, ``lang``, ``date``).
    """

    def __init__(self, source: str, name_: str, system: str | None = None) -> None:
        env = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
        )
        self.name = name_
        self.answer_format = _ANSWER_FORMATS.get(name_, "plain")
        self._system = system
        try:
            self._template = env.from_string(source)
        except jinja2.TemplateSyntaxError as err:
            raise ConfigError(f"prompt template {name_}, line {err.lineno}: {err.message}") from None
        if "user" not in self._template.blocks:
            raise ConfigError(
                f"prompt template {name_} has no block 'user'", "write {% block user %} ... {% endblock %} into it"
            )

    def render(self, doc: Mapping[str, Any], passages: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
        """``(system, user)`` for one row; ``system`` is empty where the template has none."""
        values = {
            "query": fence(doc["query"]),
            "lang": doc["query_lang"],
            "language": _language_name(doc["query_lang"]),
            "options": [
                {"letter": chr(65 + i), "text": fence(text)} for i, text in enumerate(doc.get("choices") or ())
            ],
            "passages": [
                {
                    "index": i,
                    "title": fence(p.get("title", "")),
                    "text": fence(p["text"]),
                    "lang": p["lang"],
                    "date": fence(p.get("date", "")),
                }
                for i, p in enumerate(passages, 1)
            ],
        }
        return (self._block("system", values) if self._system is None else self._system), self._block("user", values)

    def _block(self, block: str, values: Mapping[str, Any]) -> str:
        render = self._template.blocks.get(block)
        if render is None:
            return ""
        try:
            return "".join(render(self._template.new_context(dict(values)))).strip()
        except jinja2.TemplateError as err:
            raise ConfigError(f"prompt template {self.name}, block '{block}': {err.message}") from None


@lru_cache(maxsize=512)
def _language_name(code: str) -> str:
    return name(code) if is_known(code) else code


@lru_cache(maxsize=64)
def load_template(template: str, system: str | None = None) -> PromptTemplate:
    """The built-in template of that name, or the file at that path; ``system`` as in the ``prompt`` block."""
    path = _FOLDER / f"{template}.jinja" if "/" not in template and not template.endswith(".jinja") else Path(template)
    if not path.is_file():
        known = builtin_names()
        raise ConfigError(
            f"prompt.template: no built-in template and no file '{template}'{did_you_mean(template, known)}",
            "give a built-in name or a path that contains '/' or ends in .jinja",
        )
    return PromptTemplate(path.read_text(encoding="utf-8"), template, _system_text(system))


def _system_text(system: str | None) -> str | None:
    if system is None or "\n" in system or len(system) > 255:
        return system
    path = Path(system).expanduser()
    if path.is_file():
        return path.read_text(encoding="utf-8").strip()
    if path.suffix in (".txt", ".md", ".jinja"):
        raise ConfigError(f"prompt.system: no file '{system}'", "give an existing file, or the text itself")
    return system
