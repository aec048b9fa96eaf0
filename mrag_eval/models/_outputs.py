"""Replies in the body of a provider's response: text, thinking, end, tokens, and what came in place of an answer.

The harness's classes know each provider's format; they lose what they do not expect. A reply's text is what they read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mrag_eval.core import split_thinking
from mrag_eval.models._lenient_json import storable
from mrag_eval.models._reply import CUT, Reply
from mrag_eval.platform import BROKEN_AGAIN, HttpFault, error_fault, json_answer, redact, refuse_error

# Ends in lower case, as providers name them: by a filter (with anything after), and by the model itself. Any other end
# that is no limit broke the reply off.
_FILTERS = (
    "content_filter", "safety", "sensitive", "prohibited_content", "blocklist", "recitation", "guardrail",
    "error_toxic", "spii",
)  # fmt: skip
_BY_MODEL = frozenset(
    {"complete", "completed", "end", "end_id", "end_of_text", "end_turn", "endoftext", "eos", "eos_token", "finished",
     "function_call", "refusal", "stop", "stop_sequence", "stop_words", "stopped", "tool_call", "tool_calls",
     "tool_use"}
)  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """What a body holds for one prompt.

    Attributes:
        outputs: the body with this part alone and its content as text, as the harness's reader takes it.
        written: the content as text.
        thinking: the thinking that came apart from it.
        refusal: the words of a refusal that came apart from it.
        finish: the provider's word for its end, None without one.
    """

    outputs: Any
    written: str
    thinking: str
    refusal: str
    finish: str | None


def malformed(detail: str) -> HttpFault:
    """Return the fault of a body without a reply that can be read."""
    return HttpFault("malformed", detail, again=BROKEN_AGAIN)


def read_replies(lm: Any, body: str, count: int = 1) -> list[Reply]:
    """Return the replies to the ``count`` prompts of one request, in order.

    A part that cannot be read is a reply with an ``error``. Raises HttpFault if none can be read.
    """
    return _replies(lm, json_answer(body), count)


def completion_reply(completion: Mapping[str, Any]) -> Reply:
    """Return the reply of a chat completion that a system returned, or a log holds; raise HttpFault if it has none."""
    refuse_error(completion)
    return _replies(None, completion, 1)[0]


def _replies(lm: Any, outputs: Any, count: int) -> list[Reply]:
    found = [_reply_or_fault(lm, outputs, part) for part in _parts(outputs, count)]
    faults = [each for each in found if isinstance(each, HttpFault)]
    if len(faults) == count:
        raise faults[0]
    named = outputs.get("model") if isinstance(outputs, dict) else None
    # a body counts the tokens of all its prompts together
    usage = token_counts(outputs.get("usage") if isinstance(outputs, dict) else None)
    out = []
    for nth, each in enumerate(found):
        reply = Reply("", error=redact(str(each))) if isinstance(each, HttpFault) else each
        tokens_in, tokens_out = (None, None) if nth else usage
        model = named if isinstance(named, str) and named else None
        out.append(replace(reply, tokens_in=tokens_in, tokens_out=tokens_out, answered_by=model))
    return out


def read_likelihoods(lm: Any, body: str, tokens: Sequence[Any], context_lengths: Sequence[int]) -> list[Reply]:
    """Return the log-likelihoods of the ``tokens`` of one request after their contexts; raise HttpFault without."""
    outputs = json_answer(body)
    try:
        found = lm.parse_logprobs(outputs=outputs, tokens=tokens, ctxlens=context_lengths)
        values = [(float(value), bool(greedy)) for value, greedy in found]
    except Exception as err:  # any failure of a provider's parser is a fault of this one response
        raise malformed(f"no log-probabilities of the prompt in the answer ({type(err).__name__}: {err})") from None
    if len(values) != len(tokens) or not all(math.isfinite(value) for value, _ in values):
        raise malformed(f"{len(values)} likelihoods in the answer for {len(tokens)} prompts, or one that is no number")
    tokens_in, tokens_out = token_counts(outputs.get("usage") if isinstance(outputs, dict) else None)
    first = Reply("", None, tokens_in, tokens_out, likelihood=values[0])
    return [first, *(Reply("", likelihood=value) for value in values[1:])]


def _outcome(text: str, finish: str | None = None, *, thinking: str = "", ends_thinking: str | None = None) -> str:
    """Return what the model did instead of answering, a name of ``OUTCOMES``; an empty text for an answer.

    Args:
        text: the reply, with thinking that it may hold.
        finish: the provider's word for its end in lower case, None if it is not known.
        thinking: thinking that came apart from the text.
        ends_thinking: the token that ends this model's thinking, if it is known and stands in the text.
    """
    answer, thought, unclosed = split_thinking(text)
    if ends_thinking and not thinking and finish in CUT and ends_thinking not in text:
        answer, thought, unclosed = "", text, True
    if answer.strip():
        return ""
    if finish in CUT:
        # without a word of text, what reached the limit was thinking, shown or not
        return "thinking cut" if thinking or thought or not text else "empty"
    return "thinking cut" if finish is None and unclosed else "empty"


def _reply_or_fault(lm: Any, outputs: Any, part: _Part | HttpFault) -> Reply | HttpFault:
    if isinstance(part, HttpFault):
        return part
    finish = (part.finish or "").lower()
    if finish.startswith(_FILTERS):
        return HttpFault("content_filter", f"finish reason '{part.finish}'", again=0)
    if finish == "error":
        return error_fault(outputs)
    if finish and finish not in _BY_MODEL | CUT:
        return HttpFault("broken_off", f"finish reason '{part.finish}'", again=BROKEN_AGAIN)
    if not (finish or part.written.strip() or part.refusal):
        return malformed("no text in the answer, and no finish reason")
    try:
        (text,) = (part.written,) if lm is None else lm.parse_generations(part.outputs)
    except Exception as err:  # any failure of a provider's parser is a fault of this one response
        return malformed(f"no text in the answer ({type(err).__name__}: {err})")
    text = "" if text is None else text
    ends = getattr(lm, "think_end_token", None)
    if not isinstance(text, str) or (part.written.strip() and not text.strip() and not ends):
        return malformed("no text in the answer where this model type has it")
    # a server may quote the key it was sent
    text, thinking = storable(text), storable(part.thinking)
    if part.refusal or finish == "refusal":
        said = text if text.strip() else storable(part.refusal)
        return Reply(said, part.finish, thinking=thinking, outcome="refusal")
    # the harness's reader leaves out what stands before the end of the thinking
    whole = part.written if ends else text
    outcome = _outcome(whole, finish or None, thinking=part.thinking, ends_thinking=ends)
    if not outcome and not text.strip():
        outcome = "empty"
    return Reply(text, part.finish, thinking=thinking, outcome=outcome or None)


def _parts(outputs: Any, count: int) -> Sequence[_Part | HttpFault]:
    """Return what a body holds for each prompt, in the formats that providers use."""
    if isinstance(outputs, dict) and isinstance(outputs.get("choices"), list):
        return [_choice_part(outputs, choice) for choice in _by_prompt(outputs["choices"], count)]
    if isinstance(outputs, dict) and "content" in outputs and "choices" not in outputs:
        return [_content_part(outputs)]
    # a format of its own, one value a prompt
    each = outputs if isinstance(outputs, list) else [outputs]
    if len(each) != count:
        raise malformed(f"{len(each)} values in the answer instead of {count}")
    return [_own_part(one) for one in each]


def _by_prompt(choices: list[Any], count: int) -> list[Any]:
    """Return the choice of each prompt, None without one."""
    if len(choices) > count or (count == 1 and not choices):
        raise malformed(f"{len(choices)} choices in the answer instead of {count}")
    indices = [choice.get("index") if isinstance(choice, dict) else None for choice in choices]
    if len(choices) == count and all(index is None for index in indices):
        return choices
    return [next((choices[at] for at, index in enumerate(indices) if index == nth), None) for nth in range(count)]


def _choice_part(outputs: Mapping[str, Any], choice: Any) -> _Part | HttpFault:
    if not isinstance(choice, dict):
        return malformed("no choice in the answer for this prompt")
    if choice.get("error"):
        return error_fault(choice["error"])
    message = choice.get("message")
    whole = message if isinstance(message, dict) else choice
    if not whole or (whole is choice and "text" not in choice):
        return malformed(f"no text in the answer: {str(choice)[:80]}")
    # some servers leave out a content that is null
    read = _flat(whole.get("content" if whole is message else "text"))
    if read is None:
        return malformed("the content in the answer is no text")
    text, thinking, refusal = read
    apart = next((whole[key] for key in ("reasoning_content", "reasoning") if isinstance(whole.get(key), str)), "")
    told = whole.get("refusal")
    one = {"message": {**message, "content": text}} if isinstance(message, dict) else {"text": text}
    return _Part(
        {**outputs, "choices": [{**choice, "index": 0, **one}]},
        text,
        "\n".join(each for each in (apart, thinking) if each),
        told if isinstance(told, str) and told else refusal,
        _text_or_none(choice.get("finish_reason")),
    )


def _content_part(outputs: Mapping[str, Any]) -> _Part | HttpFault:
    read = _flat(outputs["content"])
    if read is None:
        return malformed("the content in the answer is no text")
    text, thinking, refusal = read
    one = {**outputs, "content": [{"type": "text", "text": text}]}
    return _Part(one, text, thinking, refusal, _text_or_none(outputs.get("stop_reason")))


def _own_part(outputs: Any) -> _Part | HttpFault:
    """Return the part of a format that only the harness's class knows, whose value counts as written."""
    if not isinstance(outputs, dict):
        return malformed(f"no text in the answer: {str(outputs)[:80]!r}")
    told = outputs.get("meta_info")
    end = told.get("finish_reason") if isinstance(told, dict) else None
    finish = _text_or_none(end.get("type") if isinstance(end, dict) else end)
    text = outputs.get("text")
    return _Part(outputs, text if isinstance(text, str) else str(outputs), "", "", finish)


def _flat(content: Any) -> tuple[str, str, str] | None:
    """Return text, thinking and refusal of a content; None if it is neither text nor a list of parts."""
    if content is None or isinstance(content, str):
        return content or "", "", ""
    if not isinstance(content, list):
        return None
    found: dict[str, list[str]] = {"text": [], "thinking": [], "refusal": []}
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else "text"
        kind = "thinking" if kind == "reasoning" else kind
        said = (part.get(kind) or part.get("text")) if isinstance(part, dict) else part
        inner = _flat(said)
        # other parts, such as calls of tools, hold no text
        if inner is not None:
            found.get(kind if kind in found else "text", []).append(inner[0])
    return "".join(found["text"]), "\n".join(found["thinking"]), "\n".join(found["refusal"])


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def token_counts(usage: Any) -> tuple[int | None, int | None]:
    """Return the tokens in and out by the names of providers; None for a count that is not there."""
    if not isinstance(usage, dict):
        return None, None

    def count(*names: str) -> int | None:
        return next((usage[n] for n in names if type(usage.get(n)) is int and usage[n] >= 0), None)

    return count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens")
