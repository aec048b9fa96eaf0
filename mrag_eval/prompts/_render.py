"""Jinja prompt templates with two blocks, ``system`` and ``user``, rendered in a sandbox that no text can leave.

Questions, options and passages are values, never template source, and cannot close the tags around them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mrag_eval.core import is_language
from mrag_eval.languages import name_in_prompts
from mrag_eval.platform import ConfigError, content_key, did_you_mean
from mrag_eval.prompts._system_prompts import SystemPrompt, system_prompts

_FOLDER = Path(__file__).parent
# The macro that every template may call.
_PASSAGES = _FOLDER / "_passages.jinja"
# Default position of the answer in the built-in templates.
_ANSWER_FORMATS = {
    "articles": "tag",
    "multiple_choice": "choice",
    "short_answer_line": "line",
    "territory_citation": "citation",
}
# A string that can only be the name of a system prompt.
_NAME = re.compile(r"[a-z]+(_[a-z]+)+")
# Brackets around numbers only: a judge's list of passages.
_NUMBERS = re.compile(r"\[([\s\d,;]*)\]")
_BRACES = str.maketrans("{}", "｛｝")
_NEXT_STEP = "correct the template; docs/reference/prompts.md lists its variables"
# Those of every template.
_VARIABLES = ("query", "lang", "language", "name_language", "options", "extra", "passages")
# The reply that a template offers to a model that does not know.
_PASS = "<answer>None</answer>"
# Roles of templates other than the task's own prompt; a template's file name begins with its role.
_ROLES = ("judge", "rerank", "translator", "agent", "annotate", "build")
# Roles whose values are defused: text of a sample must not be parsed as their reply.
_DEFUSED = ("judge", "rerank", "agent", "annotate")
# The tag that may be read in a reply, whether the template names it or an instruction beside it.
_READ = {"": "<answer>", "judge": "<same_meaning>"}


def defuse(text: str) -> str:
    """Return ``text`` with braces and bracketed lists of numbers in full-width characters.

    For prompts whose reply is parsed: sample text repeated verbatim in the reply is then neither JSON nor a list, and
    cannot be mistaken for the model's own output.
    """
    return _NUMBERS.sub(r"［\1］", text.translate(_BRACES))


def builtin_names(role: str = "") -> list[str]:
    """Return the names of the built-in templates: for the task's own prompt, or for a role (judge, agent)."""
    stems = sorted(path.stem for path in _FOLDER.glob("[!_]*.jinja"))
    if role:
        return [stem.removeprefix(f"{role}_") for stem in stems if stem.startswith(f"{role}_")]
    return [stem for stem in stems if not stem.startswith(tuple(f"{r}_" for r in _ROLES))]


def _texts_of(system: str | SystemPrompt | None) -> list[str]:
    """Return the texts of a system prompt, in all languages."""
    if isinstance(system, SystemPrompt):
        return [text for texts in system.texts().values() for text in texts]
    return [] if system is None else [system]


class _Texts(dict[str, str]):
    """Texts by name; Jinja finds an empty text under any other name."""

    def __missing__(self, key: str) -> str:
        return ""


class PromptTemplate:
    """A compiled template.

    Variables in both blocks: ``query``, ``lang`` (BCP 47), ``language`` (its English name), ``options`` (list of
    ``letter``, ``text``), ``passages`` (list of ``index`` from 1, ``title``, ``text``, ``lang``, ``date``), ``extra``
    (the benchmark's own texts of the row; a missing one is false), ``name_language`` (whether the answer's language is
    to be named), and the further texts passed to :meth:`render`.

    Values are fenced against the tags of this template (:class:`~mrag_eval.prompts._render.Fence`), and those of a
    template whose reply is parsed are defused as well.
    """

    def __init__(
        self,
        source: str,
        name_: str,
        system: str | SystemPrompt | None = None,
        name_language: bool = False,
        role: str = "",
    ) -> None:
        self.name = name_
        self.source = source
        self.answer_format = _ANSWER_FORMATS.get(name_, "plain")
        self._system = system
        self._name_language = name_language
        if name_language and "name_language" not in source:
            raise ConfigError(
                f"prompt.name_language: template '{name_}' cannot name the language",
                "docs/first_number.md names the templates that can; one of your own can use name_language",
            )
        try:
            env = _environment()
            tree = env.parse(source)
            other = next(tree.find_all((nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)), None)
            if other is not None:
                # the recorded hash is that of this text
                told = "it reads another file; write that text here, as a prompt is one file"
                raise jinja2.TemplateSyntaxError(told, other.lineno)
            self._template = env.from_string(source)
            self.variables = meta.find_undeclared_variables(tree) - env.globals.keys()
            fence = Fence((*template_texts(tree), *_texts_of(system), _READ.get(role, "")))
        except jinja2.TemplateSyntaxError as err:
            raise ConfigError(f"prompt template {name_}, line {err.lineno}: {err.message}", _NEXT_STEP) from None
        if "user" not in self._template.blocks:
            raise ConfigError(
                f"prompt template {name_} has no block 'user'", "write {% block user %} ... {% endblock %} into it"
            )
        # the prompts of one question follow each other, with the same options
        self.clean = lru_cache(maxsize=64)((lambda text: defuse(fence(text))) if role in _DEFUSED else fence)

    def check_variables(self, further: Iterable[str] = ()) -> None:
        """Raise ConfigError for a variable that neither every template has nor is among the ``further`` ones."""
        known = {*_VARIABLES, *further}
        for name in sorted(self.variables - known):
            raise ConfigError(
                f"prompt template {self.name}: '{name}' is undefined{did_you_mean(name, known)}",
                f"its variables are {', '.join(sorted(known))} (docs/reference/prompts.md)",
            )

    @property
    def sha256(self) -> str:
        """Return the SHA-256 of everything that is the same for every row: template, and system prompt in all
        languages.
        """
        system = self._system
        texts = system.texts() if isinstance(system, SystemPrompt) else system
        return content_key(self.source, _passages_source(), texts, self._name_language)

    def render(
        self,
        doc: Mapping[str, Any],
        passages: Sequence[Mapping[str, Any]],
        texts: Mapping[str, str | Sequence[str]] | None = None,
    ) -> tuple[str, str]:
        """Return ``(system, user)`` for one row; ``system`` is empty if the template has none.

        ``texts`` are further variables: a text, or a list of texts.
        """
        self.check_variables(texts or ())
        clean = self.clean
        more = {
            key: clean(value) if isinstance(value, str) else [clean(text) for text in value]
            for key, value in (texts or {}).items()
        }
        values = more | {
            "query": clean(doc["query"]),
            "lang": clean(doc["query_lang"]),
            "language": clean(_language_name(doc["query_lang"])),
            "name_language": self._name_language,
            "options": [
                {"letter": chr(65 + i), "text": clean(text)} for i, text in enumerate(doc.get("choices") or ())
            ],
            "extra": _Texts({k: clean(v) for k, v in (doc.get("extra") or {}).items() if isinstance(v, str)}),
            "passages": [
                {
                    "index": i,
                    "title": clean(p.get("title", "")),
                    "text": clean(p["text"]),
                    "lang": clean(p["lang"]),
                    "date": clean(p.get("date", "")),
                }
                for i, p in enumerate(passages, 1)
            ],
        }
        context = self._template.new_context(values)
        return self._system_part(doc["query_lang"], bool(passages), context), self._block("user", context)

    def offers_none(self, row: Mapping[str, Any]) -> bool:
        """Return whether the prompt of a row, with its passages, lets the model reply that it does not know."""
        return _PASS in self.source and _PASS in self.render(row, row.get("passages", ()))[1]

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for a question language without a text of the system prompt."""
        if isinstance(self._system, SystemPrompt):
            self._system.check(languages)

    def _system_part(self, language: str, with_documents: bool, context: Context) -> str:
        if isinstance(self._system, SystemPrompt):
            return self._system.text(language, with_documents)
        return self._block("system", context) if self._system is None else self._system

    def _block(self, block: str, context: Context) -> str:
        render = self._template.blocks.get(block)
        if render is None:
            return ""
        try:
            return "".join(render(context)).strip()
        except MemoryError:
            raise
        except Exception as err:  # a template may compute anything from the values
            what = err.message if isinstance(err, jinja2.TemplateError) else f"{type(err).__name__}: {err}"
            line = " ".join(str(what).split())
            raise ConfigError(f"prompt template {self.name}, block '{block}': {line}", _NEXT_STEP) from None


@lru_cache(maxsize=1)
def _passages_source() -> str:
    return _PASSAGES.read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    """Return the environment of all templates, in which the macro ``listed`` writes passages."""
    env = ImmutableSandboxedEnvironment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )
    macros: Any = env.from_string(_passages_source()).module
    env.globals["listed"] = macros.listed
    return env


@lru_cache(maxsize=512)
def _language_name(code: str) -> str:
    return name_in_prompts(code) if is_language(code) else code


@lru_cache(maxsize=64)
def load_template(
    template: str, system: str | None = None, role: str = "", name_language: bool = False
) -> PromptTemplate:
    """Load the built-in template of that name, or the file at that path.

    ``system`` and ``name_language`` are as in the ``prompt`` block.

    ``role`` is its use (``judge``, ``translator``, ``agent``, ``build``). Values in the prompt of a judge or an agent
    are defused, since its reply is parsed for a decision. Those of a translator are only fenced, since its reply
    repeats them; so are those of ``build``.
    """
    return PromptTemplate(template_source(template, role), template, _system_text(system), name_language, role)


def template_source(template: str, role: str = "") -> str:
    """Return the source of the built-in template of that name, or of the file at that path."""
    built_in = "/" not in template and not template.endswith(".jinja")
    path = _FOLDER / f"{f'{role}_' if role else ''}{template}.jinja" if built_in else Path(template)
    known = builtin_names(role)
    if not path.is_file() or (built_in and template not in known):
        raise ConfigError(
            f"{f'{role}.prompt' if role else 'prompt.template'}: no built-in template and no file '{template}'"
            f"{did_you_mean(template, known)}",
            "give a built-in name or a path that contains '/' or ends in .jinja",
        )
    return _read(path, f"{role}.prompt" if role else "prompt.template")


def _read(path: Path, key: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as err:
        raise ConfigError(f"{key}: file '{path}' is not UTF-8 (byte {err.start})", "save it as UTF-8") from None
    except OSError as err:
        raise ConfigError(f"{key}: file '{path}' cannot be read ({err.strerror})", "give a readable file") from None


def _system_text(system: str | None) -> str | SystemPrompt | None:
    if system is None or "\n" in system or len(system) > 255:
        return system
    named = system_prompts()
    if system in named:
        return named[system]
    if _NAME.fullmatch(system):  # one word with underscores is a name, not a prompt
        raise ConfigError(
            f"prompt.system: no system prompt '{system}'{did_you_mean(system, named)}",
            "give one of these names, a file, or the text itself",
        )
    path = Path(system).expanduser()
    if path.is_file():
        return _read(path, "prompt.system").strip()
    if path.suffix in (".txt", ".md", ".jinja"):
        raise ConfigError(f"prompt.system: no file '{system}'", "give an existing file, or the text itself")
    return system


# The control tokens of common chat templates, which tokenizers read as such in any text: ChatML, Llama, Mistral, Gemma,
# DeepSeek, Command R, Qwen, EXAONE, GLM and BERT.
_CONTROL = {
    "<": r"\||/?(?:s|sys|[bse]op|eod|unk|pad|mask|[bc]ls|sep|think(?:ing)?|reasoning|tool_(?:call|response)s?)>"
    r"|(?:bos|eos|pad)(?:_token)?>|(?:start|end)_of_(?:turn|image)>|extra_id_\d+>",
    "[": r"(?-i:/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_(?:CALLS|CONTENT|RESULTS)|ARGS|CALL_ID|THINK|IMG"
    r"|[gs]?MASK|PAD|CLS|SEP|UNK|BOS|EOS)\]|\|/?\w+\|\])",
}
# Stands in the text of a template for what only rendering tells. The macro of passages has it for their number.
_OPEN = "#"
# Names of tags in the text of a template, by their bracket. Square brackets are common, and count where one closes.
_TAGS = {"<": re.compile(r"<[\s/]*([\w#][\w:.#-]*)"), "[": re.compile(r"\[\s*/\s*([\w#][\w:.#-]*)")}
_DIGITS = re.compile("[0-9]+")
# Characters without width, beside those of Unicode's category Cf.
_WIDTHLESS = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_MARKS = ("Cf", "Cc", "Mn", "Me")
_PRINTED = re.compile(r"[\t-\r -~]*")


class _Plain(dict[int, str]):
    """What a character is read as: its compatibility form without marks, and nothing if it has no width."""

    def __missing__(self, code: int) -> str:
        forms = "" if _WIDTHLESS.match(chr(code)) else unicodedata.normalize("NFKD", chr(code))
        return self.setdefault(code, "".join(c for c in forms if c.isspace() or unicodedata.category(c) not in _MARKS))


_PLAIN = _Plain()


def template_texts(tree: nodes.Template) -> list[str]:
    """Return the constant texts of a template, each with a mark of what may follow it in a prompt."""
    texts = [node.data for node in tree.find_all(nodes.TemplateData)]
    texts += [node.value for node in tree.find_all(nodes.Const) if isinstance(node.value, str)]
    return [text + _OPEN for text in texts]


class Fence:
    """Put ``‹`` for every bracket in a text that opens a control token, or a tag of the ``texts`` of a template.

    A tag counts whether it opens or closes, in any case, with blanks, attributes, numbers and characters without width
    in it; full-width brackets and letters count as the plain ones. So does the beginning of a tag at the end of a text,
    which the next text could complete.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        plain = [text.translate(_PLAIN) for text in texts]
        marks = []
        for bracket, tag in _TAGS.items():
            names = {name.partition(_OPEN) for text in plain for name in tag.findall(text)}
            tags = rf"|[\s/]*(?:{'|'.join(sorted(_ways(names)))})" if names else ""
            marks.append(rf"(?<=\{bracket})(?:{_CONTROL[bracket]}{tags})")
        # one class of characters to begin with, for which texts are scanned fast
        self._marks = re.compile(rf"[<\[](?={'|'.join(marks)})", re.IGNORECASE)

    def __call__(self, text: str) -> str:
        """Return the text, fenced."""
        printed = text.isascii() and (("<" not in text and "[" not in text) or _PRINTED.fullmatch(text) is not None)
        plain = text if printed else text.translate(_PLAIN)
        if "<" not in plain and "[" not in plain:
            return text
        starts = [found.start() for found in self._marks.finditer(plain)]
        places = range(len(text)) if printed or not starts else [i for i, c in enumerate(text) for _ in _PLAIN[ord(c)]]
        out = list(text)
        for start in starts:
            out[places[start]] = "‹"
        return "".join(out)


def _ways(names: Iterable[tuple[str, str, str]]) -> set[str]:
    """Return patterns of what makes a bracket one of a tag: its name, or the beginning of it at the end of a text."""
    ways = {r"\Z"}
    for name, is_open, _ in names:
        known = _DIGITS.split(name)[0]
        ways |= {re.escape(known[:end]) + r"\Z" for end in range(1, len(known) + 1)}
        # of a name that begins with what only rendering tells, any letter may be the first
        ways.add((_DIGITS.sub("[0-9]+", re.escape(name)) or r"\w") + ("" if is_open else r"(?!\w)"))
    return ways
