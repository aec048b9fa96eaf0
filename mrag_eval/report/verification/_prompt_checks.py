"""Prompts of a run: whether each is what its row and passages render to, with passages shortened or whole."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mrag_eval.prompts import PromptTemplate, fence, plain_prompt
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._samples import Sample
from mrag_eval.report.verification._findings import Finding, counted
from mrag_eval.report.verification._sample_checks import prompt_text
from mrag_eval.report.verification._task_here import TaskHere


def prompts(file: ResultFile, here: TaskHere, samples: Sequence[Sample]) -> Iterator[Finding]:
    """Render every prompt again; compare it, the number of shortened ones, and the hash of the template.

    Without a chat template a prompt must be equal, otherwise it must hold its parts. Shortened passages must be the
    beginnings of whole ones.
    """
    leaf, template = here.leaf, here.template
    if template is None:
        return
    shares = [sample.record.prompts for sample in samples if sample.record.prompts is not None]
    may_shorten = any(share.shortened for share in shares)
    exact = file.content.get("chat_template") is None
    own, prefix = file.content.get("system_instruction"), leaf.config.raw.get("gen_prefix")
    end = f"\n{prefix}" if prefix else "\n"
    shortened, wrong = 0, []
    for sample in samples:
        parts, shown = _rendered(here, template, sample, own)
        prompt = prompt_text(sample)
        if not _follows(prompt, parts, end, exact):
            cut = may_shorten and _follows_cut(prompt, parts, shown)
            shortened += cut
            if not cut:
                wrong.append(sample.record.row)
    known = leaf.config.texts.get("prompt")
    other = known is not None and known != template.sha256
    if wrong and other:
        text = f"prompts were not rendered again: the template '{leaf.config.prompt}' has another text here"
        yield Finding(leaf.task, "note", text)
        return
    if wrong:
        text = f"{counted(len(wrong), 'prompt')} of {len(samples)} not what the row renders to, first of '{wrong[0]}'"
        yield Finding(leaf.task, "fault", text)
    elif other:
        yield Finding(leaf.task, "fault", f"the prompts follow '{leaf.config.prompt}', whose recorded hash is another")
    said = sum(share.shortened or 0 for share in shares)
    if shares and shortened != said and not wrong:
        yield Finding(leaf.task, "fault", f"{said} prompts shortened in the samples, {shortened} by their passages")


def _rendered(
    here: TaskHere, template: PromptTemplate, sample: Sample, instruction: Any
) -> tuple[list[str], Sequence[Mapping[str, Any]]]:
    """Return system and user text of a row, empty ones left out, and the passages shown."""
    doc = sample.line.get("doc") or {}
    shown = doc.get("passages") or ()
    rows, row = here.rows, sample.record.row
    key = "rendered", template.sha256, row
    # the runs of several models show the same rows
    known = rows is not None and rows.found is not None and row in rows.order and doc == rows.logged(row)
    if rows is None or not known:
        system, user = template.render(doc, shown)
    else:
        if key not in rows.kept:
            rows.kept[key] = template.render(doc, shown)
        system, user = rows.kept[key]
    whole = "\n\n".join(part for part in (instruction, system) if part)
    return [part for part in (whole, user) if part], shown


def _turns(prompt: str) -> list[str] | None:
    """Return the contents of a conversation in JSON, as APIs are sent it; None for a text."""
    if not prompt.startswith("[{"):
        return None
    try:
        turns = json.loads(prompt)
    except ValueError:
        return None
    return [str(turn.get("content")) for turn in turns if isinstance(turn, Mapping)]


def _follows(prompt: str, parts: Sequence[str], end: str, exact: bool) -> bool:
    turns = _turns(prompt)
    if turns is not None:
        # a template without a system role has its text in the user's turn
        return turns in ([*parts], ["\n\n".join(parts)])
    if exact:
        return prompt == plain_prompt([{"content": part} for part in parts]) + end
    return all(part.strip() in prompt for part in parts)


def _follows_cut(prompt: str, parts: Sequence[str], shown: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the prompt holds the parts, the last of them with each passage cut at its end."""
    turns = _turns(prompt)
    prompt = prompt if turns is None else "\n\n".join(turns)
    texts, pieces, start = [fence(str(passage.get("text"))) for passage in shown], [], 0
    user = parts[-1].strip()
    for text in texts:
        at = user.find(text, start)
        if at < 0:
            return False
        pieces.append(user[start:at])
        start = at + len(text)
    place = prompt.find(pieces[0]) + len(pieces[0]) if pieces and pieces[0] in prompt else -1
    for text, piece in zip(texts, [*pieces[1:], user[start:]], strict=True):
        stop = prompt.find(piece, place)
        if place < 0 or stop < 0 or not text.startswith(prompt[place:stop].rstrip()):
            return False
        place = stop + len(piece)
    return bool(texts) and all(part.strip() in prompt for part in parts[:-1])
