"""Prompts of the pipelines: built in, or replaced by path; a step's settings hold the hash of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from mrag_eval.platform import ConfigError, did_you_mean
from mrag_eval.prompts import Conversation, PromptTemplate, load_template, template_source


class Prompts:
    """Templates ``build_<name>.jinja`` by ``name``; ``replaced`` gives paths for some of ``names``."""

    def __init__(self, names: Sequence[str], replaced: Mapping[str, str] | None = None) -> None:
        for name in replaced or {}:
            if name not in names:
                raise ConfigError(f"prompts: unknown prompt '{name}'{did_you_mean(name, names)}")
        self._paths = {name: str(Path((replaced or {})[name]).expanduser()) for name in replaced or {}}
        for name in names:
            self.template(name)

    def template(self, name: str) -> PromptTemplate:
        """Return the compiled template; raise ConfigError for an invalid file."""
        path = self._paths.get(name, name)
        if name in self._paths and "/" not in path and not path.endswith(".jinja"):
            path = f"./{path}"
        return load_template(path, role="build")

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of the template's source."""
        return sha256(template_source(self._paths.get(name, name), "build").encode()).hexdigest()

    @staticmethod
    def judge_sha256() -> str:
        """Return the SHA-256 of the judge's prompt for the correctness of an answer."""
        return sha256(template_source("correctness", "judge").encode()).hexdigest()

    def hashes(self, *names: str) -> dict[str, str]:
        """Return the hashes for a step's settings and for datasheets."""
        return {name: self.sha256(name) for name in names}

    def conversation(
        self,
        name: str,
        texts: Mapping[str, str | Sequence[str]],
        *,
        lang: str = "en",
        passages: Sequence[Mapping[str, Any]] = (),
    ) -> Conversation:
        """Return the messages of a rendered template.

        Each of ``passages`` has ``text`` and ``lang``, and optionally ``title`` and ``date``.
        """
        system, user = self.template(name).render({"query": "", "query_lang": lang}, passages, texts)
        turns = [{"role": "system", "content": system}] if system else []
        return [*turns, {"role": "user", "content": user}]
