"""Write the reference pages of the documentation from the code, so that both agree.

python scripts/write_docs.py            writes docs/index.md, docs/reference/*.md and docs/benchmarks/*.md
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from mrag_eval.config._block import Kind
from mrag_eval.core import YES_NO, VerdictScale

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs"


def pages() -> dict[str, str]:
    """Return path below docs/ → text for every page written from the code or from a README."""
    reference = {
        "configuration.md": configuration_page(),
        "metrics.md": metrics_page(),
        "languages.md": languages_page(),
        "models.md": models_page(),
        "commands.md": commands_page(),
        "prompts.md": prompts_page(),
    }
    benchmarks = {f"{folder.parent.name}.md": benchmark_page(folder) for folder in ROOT.glob("tasks/*/README.md")}
    benchmarks["index.md"] = benchmarks_page()
    return (
        {"index.md": index_page()}
        | {f"reference/{name}": text for name, text in reference.items()}
        | {f"benchmarks/{name}": text for name, text in sorted(benchmarks.items())}
    )


def index_page() -> str:
    """Return what the project's README says of it, its doors and its table of pages."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    chosen = [part for part in sections if part.startswith(("## Three doors\n", "## Where to go next\n"))]
    page = re.sub(r"\]\(docs/", "](", "".join([head, *chosen]))
    # files outside docs/ are no pages of the site
    return re.sub(r"\[([\w.]+)\]\(\1\)", r"`\1`", page).rstrip() + "\n"


# ------------------------------------------------------------------ benchmarks


def benchmarks_page() -> str:
    """Return the benchmarks' declarations as a table of their questions and one of their sources."""
    from mrag_eval.cli._catalog import NEEDS, list_benchmarks

    entries = [entry for entry in list_benchmarks() if entry.declaration.tasks is not None]
    lines = [
        "# Benchmarks",
        "",
        "`mrag-eval tasks` prints this list, `mrag-eval tasks NAME` the tasks of one benchmark. Your own questions "
        "need no declaration: [Your own benchmark](../own_benchmark.md).",
        "",
        "| benchmark | asks | languages of the questions | tasks | needs | main metric | broken down by |",
        "|---|---|---|---:|---|---|---|",
    ]
    for entry in entries:
        declared = entry.declaration
        cells = (
            _benchmark_link(declared),
            declared.asks,
            _codes(declared.languages),
            str(entry.tasks),
            ", ".join(declared.needs) or "nothing",
            f"`{declared.main_metric}`",
            ", ".join(f"`{key}`" for key in declared.breakdowns),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *(f"- {need}: {text}" for need, text in NEEDS.items() if need != "files")]
    lines += [
        "",
        "## Sources and licences",
        "",
        "No benchmark's text is part of this package, except the demo's. Exports leave out texts that may not be "
        "redistributed.",
        "",
        "| benchmark | read from | licence | texts may be redistributed | papers |",
        "|---|---|---|---|---|",
    ]
    for entry in entries:
        declared = entry.declaration
        papers = "<br>".join(f"[{paper.authors}, {paper.venue}]({paper.url})" for paper in declared.citations)
        read = "<br>".join(f"[{_place(source.url)}]({source.url})" if source.url else "this package"
                           for source in declared.sources)  # fmt: skip
        terms = "<br>".join(source.terms for source in declared.sources)
        shareable = "yes" if declared.shareable else "no"
        lines.append(f"| {_benchmark_link(declared)} | {read} | {terms} | {shareable} | {papers} |")
    return "\n".join(lines) + "\n"


def _codes(languages: Collection[str]) -> str:
    return str(len(languages)) if len(languages) > 20 else " ".join(f"`{code}`" for code in languages)


def _benchmark_link(declared: Any) -> str:
    return f"[{declared.title}]({declared.tasks}.md), `{declared.name}`"


def _place(url: str) -> str:
    """Return a URL without the prefix shared by a whole site, and without a revision."""
    return re.sub(r"^https://(huggingface\.co/datasets/)?|/tree/\w+$", "", url)


def benchmark_page(readme: Path) -> str:
    """Return the README of a task folder as a page, with the number of its tasks by IR mode."""
    from mrag_eval.cli._catalog import list_tasks

    text = readme.read_text(encoding="utf-8")
    text = re.sub(r"\]\(\.\./\.\./docs/", "](../", text)
    text = re.sub(r"\]\(\.\./(\w+)/README\.md", r"](\1.md", text)
    text = re.sub(r"^###", "##", text, flags=re.MULTILINE)
    counts = Counter(entry.mode for entry in list_tasks(readme.parent) if entry.mode)
    lines = ["## IR modes", "", "| mode | tasks |", "|---|---:|"]
    lines += [f"| [`{mode}`](../ir_modes.md) | {count} |" for mode, count in sorted(counts.items())]
    return f"{text.rstrip()}\n\n" + "\n".join(lines) + "\n"


# ------------------------------------------------------------------ configuration


def configuration_page() -> str:
    """Return every block of a task and of the config file, key by key."""
    from mrag_eval.config import Agent, Judge, Prompt, Retrieval
    from mrag_eval.config._file import FileConfig
    from mrag_eval.datasets import LOADERS, DataBlock
    from mrag_eval.report.comparison._gate_rules import GateRules

    parts = [
        "# Configuration\n\n"
        "Blocks of a task's YAML. Each may be overridden on the command line, as JSON or with dots: "
        "`--metadata retrieval.mode=all,retrieval.k=3`, for some tasks with a prefix: `xquad.data.path=FOLDER` "
        "([Settings](../first_number.md#settings)). An unknown key or an impossible value is an error naming it.",
        *_section("retrieval", Retrieval),
        *_section("prompt", Prompt),
        *_section("judge", Judge),
        *_section("agent", Agent),
        *_section("data", DataBlock),
        "`benchmark` names the loader, which may have keys of its own:",
    ]
    for name, loader in sorted(LOADERS.items()):
        parts += [f"### benchmark: {name}", f"{loader.declaration.summary}."]
        parts += list(_section("", loader.block, "", without=set(DataBlock.model_fields)))[1:]
    parts += [
        "## The config file\n\n`$MRAG_CONFIG`, else `./mrag.yaml`, else `~/.config/mrag_eval/config.yaml`.",
        *_section("its keys", FileConfig, "###"),
        *_section("gate.yaml", GateRules),
    ]
    return "\n\n".join(parts) + "\n"


def _section(title: str, block: type[BaseModel], level: str = "##", *, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the block's own docstring and keys (except ``without``), then the blocks that are values in it."""
    yield f"{level} {title}"
    if block.__doc__:
        yield _prose(inspect.cleandoc(block.__doc__))
    rows = ["| key | values | default |", "|---|---|---|"]
    inner: dict[str, type[BaseModel]] = {}
    for key, field in block.model_fields.items():
        if key in without:
            continue
        shown, blocks = _values(field.annotation)
        inner |= {f"{title}.{key}{_kind(found)}": found for found in blocks}
        limits = "; ".join(_limit(item) for item in field.metadata if _limit(item))
        rows.append(f"| `{key}` | {shown}{f' ({limits})' if limits else ''} | {_default(field)} |")
    if len(rows) > 2:
        yield "\n".join(rows)
    for name, found in inner.items():
        yield from _section(name, found, "###" if level == "##" else "####")


def _kind(block: type[BaseModel]) -> str:
    """The kind of a block that has several, as an addition to its title."""
    return f", {block.label()}" if issubclass(block, Kind) else ""


def _values(annotation: Any) -> tuple[str, list[type[BaseModel]]]:
    """Return a type in words, and the blocks in it."""
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _values(args[0])
    if origin is typing.Literal:
        return ", ".join(f"`{value}`" for value in args), []
    if origin in (typing.Union, types.UnionType):
        parts = [_values(arg) for arg in args if arg is not type(None)]
        return " or ".join(dict.fromkeys(text for text, _ in parts)), [block for _, blocks in parts for block in blocks]
    if origin is tuple:
        text, blocks = _values(args[0])
        return f"list of {text}", blocks
    if origin is not None and issubclass(origin, dict):
        text, blocks = _values(args[1])
        return f"name → {text}", blocks
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        return "a block, see below", [annotation]
    names = {str: "text", int: "whole number", float: "number", bool: "true, false", Path: "path", Any: "anything"}
    names[VerdictScale] = "list of grades, or `{labels: [...]}`"
    return names.get(annotation, getattr(annotation, "__name__", str(annotation))), []


def _limit(item: Any) -> str:
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<", "min_length": "at least", "max_length": "at most"}
    found = ((signs[name], getattr(item, name)) for name in signs if getattr(item, name, None) is not None)
    return ", ".join(f"{sign} {value}" for sign, value in found)


def _default(field: Any) -> str:
    value = field.default
    if value is PydanticUndefined:
        value = field.default_factory() if field.default_factory is not None else value
    if value is PydanticUndefined:
        return "needed"
    if value is None or value in ((), {}, []):
        return "none"
    if isinstance(value, BaseModel):
        return "its defaults"
    if value == YES_NO:
        return "yes or no"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


# ------------------------------------------------------------------ metrics, languages, models


def metrics_page() -> str:
    """Names for a task's ``metrics``, and the functions behind them."""
    from mrag_eval import metrics as functions
    from mrag_eval.config import ELSEWHERE
    from mrag_eval.scoring import METRICS

    lines = [
        "# Metrics\n\n"
        "## Names\n\n"
        "For `metrics: [...]` in a task. Values are 0 to 1 in files. Ranking measures are `hit`, `recall`, "
        "`precision`, `mrr`, `ndcg` and `map` at any depth (`hit@20`).\n",
        "| name | what | better |",
        "|---|---|---|",
    ]
    better = {True: "higher", False: "lower", None: ""}
    lines += [f"| `{name}` | {m.summary} | {better[m.higher_is_better]} |" for name, m in METRICS.items()]
    lines += ["", "## Names elsewhere", "", "| elsewhere | here |", "|---|---|"]
    lines += [f"| {theirs} | {ours} |" for ours, theirs in ELSEWHERE.items()]
    lines += ["", "## Functions", "", "All in `mrag_eval.metrics`; each docstring gives formula and source.", ""]
    for name in sorted(functions.__all__):
        found = getattr(functions, name)
        if not inspect.isfunction(found):
            continue
        lines += [f"### {name}", "", f"```python\n{name}{_signature(found)}\n```", ""]
        lines += [_prose(inspect.cleandoc(found.__doc__ or "")), ""]
    return "\n".join(lines).rstrip() + "\n"


def languages_page() -> str:
    """Return which languages of the benchmarks each detector knows, and all that it knows."""
    from mrag_eval.cli._catalog import list_benchmarks
    from mrag_eval.core import base_language
    from mrag_eval.metrics import FastTextDetector, LinguaDetector, counted_together
    from mrag_eval.metrics._language_detection import lingua_languages
    from mrag_eval.metrics._language_rate import unknown_to

    # language -> titles, each once
    asked: dict[str, dict[str, None]] = {}
    for entry in list_benchmarks():
        for code in sorted({base_language(code) for code in entry.declaration.languages}):
            asked.setdefault(code, {})[entry.declaration.title] = None
    lines = [
        "# Language detection",
        "",
        "`correct_language` needs a detector that knows the language of the question. Replies to questions in another "
        "language are unscored, with that reason (`the detector fasttext does not know Hausa`); nothing else changes "
        "for these rows. `judge.correct_language` sets the detector and the least confidence (`min_confidence`): a "
        "reply of whose language the detector is less sure is unscored, too.",
    ]
    lingua = 'lingua (`pip install "mrag-eval[lingua]"`), which chooses among the languages of the task'
    detectors: list[tuple[str, str, FastTextDetector | LinguaDetector]] = [
        ("fasttext", "fastText's `lid.176.ftz`, the default", FastTextDetector()),
        ("lingua", lingua, LinguaDetector(list(lingua_languages()))),
    ]
    lines += [
        "",
        "## Languages of the benchmarks",
        "",
        "| language | fasttext | lingua | counts as one with | asked by |",
        "|---|---|---|---|---|",
    ]
    for code in sorted(asked, key=_named):
        known_to = ["no" if unknown_to(detector, code) else "yes" for _, _, detector in detectors]
        together = ", ".join(_named(other) for other in counted_together(code))
        lines.append(f"| {_named(code)} | {' | '.join(known_to)} | {together} | {', '.join(asked[code])} |")
    lines += [
        "",
        "Detectors cannot tell some languages apart in a short text: a reply in one counts as the other. Norwegian "
        "(`no`, `nb`, `nn`), the varieties of Arabic and the scripts of Chinese are one language.",
    ]
    for name, title, detector in detectors:
        known = sorted({code for code in map(_base, detector.supported) if code}, key=_named)
        lines += ["", f"## {name}", "", f"{title}. It knows {len(known)} languages:", ""]
        lines += [", ".join(map(_named, known)) + "."]
    lines += [
        "",
        "## A fastText model by path",
        "",
        "GlotLID (`cis-lmu/glotlid`, Apache-2.0, over 2,000 languages) and OpenLID (`laurievb/OpenLID-v2`, GPL-3.0, "
        "189 languages) know more languages, Hausa and Tigrinya among them. Download the model and name the file. "
        "OpenLID is trained on lower-case letters alone, which `letters_only` shows it:",
        "",
        "```yaml",
        "judge: {correct_language: {detector: models/openlid_v2.bin, letters_only: true}}",
        "```",
        "",
        "Labels such as `hau_Latn` are read as languages. A reply is unscored if the file has no label for that. "
        "Labels for noise (`und_Latn`, `zxx_Latn`) are no language. Our tests read a small model file with such "
        "labels. The published models have not been run here.",
    ]
    return "\n".join(lines) + "\n"


def models_page() -> str:
    """Return the recipes of embedders and rerankers as tables."""
    from mrag_eval.retrievers.recipes._recipe import recipes

    lines = [
        "# Model recipes",
        "",
        "Each family of models is given its texts as its publisher does it. The first family whose pattern is found in "
        "a model's name (in lower case) decides; your own settings come first. ⏎ is a line break, and *code* marks "
        "models that need `trust_remote_code: true`.",
        "",
        "## Embedders",
        "",
        "| family | pattern | before a query | before a passage | task | pooling | similarity | tokens | licence |",
        "|---|---|---|---|---|---|---|---:|---|",
    ]
    for recipe in recipes("embedders"):
        cells = (
            _cell(recipe.query_prefix()),
            _cell(recipe.passage),
            ", ".join(f"`{task}`" for task in dict.fromkeys(recipe.tasks or ())),
            recipe.pooling or ("" if recipe.licence == "hosted" else "the model's own"),
            recipe.similarity,
        )
        lines.append(f"| {_family(recipe)} | {' | '.join(cells)} | {recipe.longest or ''} | {recipe.licence} |")
    lines += ["", "## Rerankers", "", "| family | pattern | input, piece by piece | score | tokens | licence |"]
    lines.append("|---|---|---|---|---:|---|")
    for recipe in recipes("rerankers"):
        pieces = "<br>".join(_cell(piece.replace("{instruct}", recipe.instruct)) for piece in recipe.pieces)
        score = " − ".join(f"logit of `{answer}`" for answer in recipe.answers) or "the model's own, of a whole list"
        row = (pieces or "by its own code", score, str(recipe.longest or ""), recipe.licence)
        lines.append(f"| {_family(recipe)} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def _family(recipe: Any) -> str:
    code = ", *code*" if recipe.custom_code else ""
    return f"[{recipe.family}]({recipe.source}){code} | {_cell(recipe.pattern)}"


def _cell(text: str) -> str:
    """Return a text as code in a cell of a table."""
    return "" if not text else "`" + text.replace("\n", "⏎").replace("|", "\\|") + "`"


def _base(label: str) -> str | None:
    """Return the base code of a detector's label; None if the label names no language."""
    from mrag_eval.core import base_language, is_language

    return base_language(label) if is_language(label) else None


def _named(code: str) -> str:
    from mrag_eval.core import language_name

    return f"{language_name(code)} (`{code}`)"


def _signature(function: Any) -> str:
    return re.sub(r"\b(typing|collections\.abc|mrag_eval(\.\w+)*)\.", "", str(inspect.signature(function))).replace(
        "'", ""
    )


def _prose(docstring: str) -> str:
    """Return a docstring as Markdown: roles become code, sections become bold words, indented parts lists."""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", docstring).replace("``", "`")
    out: list[str] = []
    listing = False
    for line in text.split("\n"):
        if re.fullmatch(r"(Args|Raises|Returns|Attributes):", line):
            out += ["", f"**{line[:-1]}**", ""]
            listing = True
        elif listing and re.match(r"    \S", line):
            out.append(f"- {line.strip()}")
        elif listing and line.startswith("    "):
            out.append(f"  {line.strip()}")
        else:
            listing = listing and not line.strip()
            out.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


# ------------------------------------------------------------------ commands


def commands_page() -> str:
    """Return every command with its arguments and options."""
    import typer

    from mrag_eval.cli._app import app

    parts = ["# Commands\n\nExit codes: 0 done; 1 a check failed; 2 wrong usage, configuration or data."]
    for name, command in _commands(typer.main.get_command(app), "mrag-eval"):
        text = inspect.cleandoc(command.help or command.short_help or "")
        parts.append(f"## {name}\n\n{text}")
        rows = [
            f"| `{_written(parameter)}` | {getattr(parameter, 'help', None) or ''} |"
            for parameter in command.params
            if parameter.name != "help"
        ]
        if rows:
            parts.append("\n".join(["| argument | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for key, found in sorted(inner.items()):
        yield from _commands(found, f"{name} {key}")


def _written(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return (parameter.metavar or parameter.name or "").upper().strip("{}.")
    names = [*parameter.opts, *parameter.secondary_opts]
    return ", ".join(names).replace("|", "\\|")


# ------------------------------------------------------------------ prompts


def prompts_page() -> str:
    """Return the variables of prompt templates, and which of them each built-in template uses."""
    from jinja2 import Environment, meta

    from mrag_eval.prompts import PromptTemplate
    from mrag_eval.prompts import __file__ as room

    lines = [
        "# Template variables",
        "",
        "A prompt template is a Jinja file with the blocks `user` and, optionally, `system`, rendered in a sandbox "
        "([how to choose one](../first_number.md#prompts)).",
        "",
        _prose(inspect.cleandoc(PromptTemplate.__doc__ or "").split("\n\n")[1]),
        "",
        "`listed(passages, above, below)` writes passages one after another between two lines, in which `#` is the "
        "passage's number: the title, unless the text begins with it, and the text.",
        "",
        "| built-in template | variables |",
        "|---|---|",
    ]
    for path in sorted(Path(room).parent.glob("[!_]*.jinja")):
        used = meta.find_undeclared_variables(Environment().parse(path.read_text(encoding="utf-8"))) - {"listed"}
        lines.append(f"| `{path.stem}` | {', '.join(f'`{name}`' for name in sorted(used))} |")
    return "\n".join(lines) + "\n"


def on_config(config: Any) -> Any:
    """List the page of every benchmark after the page of all; MkDocs calls this first."""
    from mrag_eval.datasets import LOADERS

    declared = [loader.declaration for loader in LOADERS.values() if loader.declaration.tasks is not None]
    titles = Counter(one.title for one in declared)
    listed = [
        {one.title if titles[one.title] == 1 else f"{one.title} ({one.name})": f"benchmarks/{one.tasks}.md"}
        for one in declared
    ]
    section = next(entry["Benchmarks"] for entry in config.nav if "Benchmarks" in entry)
    section[1:1] = listed
    return config


def write() -> list[Path]:
    """Write the pages and return their paths; leave unchanged pages alone."""
    paths = []
    for name, text in pages().items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


if __name__ == "__main__":
    for path in write():
        print(path.relative_to(ROOT))
