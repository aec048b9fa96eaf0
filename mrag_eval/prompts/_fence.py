"""The fence around values: no text of a sample opens or closes a tag of the template that it is put into.

The tags are read from the template itself, so that a user's own are fenced as ours are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from jinja2 import nodes

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
