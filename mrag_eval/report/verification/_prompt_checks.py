"""Prompts of a run: whether each is what its row and passages render to, with passages shortened or whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from mrag_eval.platform import JsonFault, json_value, number_of
from mrag_eval.prompts import PromptTemplate, plain_prompt
from mrag_eval.report.files._results import ResultFile
from mrag_eval.report.files._sample import Sample
from mrag_eval.report.files._samples import Samples
from mrag_eval.report.verification._findings import Remark
from mrag_eval.report.verification._sample_checks import prompt_text
from mrag_eval.report.verification._task_here import TaskHere

# Characters behind a passage by which its end is found.
_TELLS = 12


def prompts(file: ResultFile, here: TaskHere, samples: Samples) -> Iterator[Remark]:
    """Render every prompt again; compare it, the number of shortened ones, and the hash of the template.

    Without a chat template a prompt must be equal, otherwise it must hold its parts. Shortened passages must be the
    beginnings of whole ones.
    """
    leaf, template = here.leaf, here.template
    if template is None:
        return
    shares = [record.prompts for record in samples.records if record.prompts is not None]
    may_shorten = any(share.limit is not None for share in shares)
    exact = file.content.get("chat_template") is None
    own, prefix = file.content.get("system_instruction"), leaf.config.raw.get("gen_prefix")
    end = f"\n{prefix}" if prefix else "\n"
    shortened, wrong = 0, []
    frames: dict[tuple[int, str], list[str]] = {}
    for sample in samples:
        parts, shown = _rendered(here, template, sample, own)
        prompt = prompt_text(sample)
        if not _follows(prompt, parts, end, exact):
            texts = [template.clean(str(passage.get("text"))) for passage in shown]
            cut = may_shorten and _follows_cut(prompt, parts, end, exact, texts)
            shortened += cut
            if not cut:
                wrong.append(sample.record.row)
        elif not exact and _turns(prompt) is None:
            # what a chat template puts around a row is the same around all
            frame = reduce(lambda text, part: text.replace(part.strip(), "", 1), parts, prompt)
            frames.setdefault((len(parts), frame), []).append(sample.record.row)
    for number in {number for number, _ in frames}:
        of_all = sorted((rows for (n, _), rows in frames.items() if n == number), key=len)
        wrong += [row for rows in of_all[:-1] for row in rows]
    known = leaf.config.setting("texts.prompt")
    other = known is not None and known != template.sha256
    if wrong and other:
        text = f"prompts were not rendered again: the template '{leaf.config.prompt}' has another text here"
        yield Remark(leaf.task, "open", text)
        return
    if wrong:
        text = f"{number_of(len(wrong), 'prompt')} of {len(samples)} not what the row renders to, first of '{wrong[0]}'"
        yield Remark(leaf.task, "fault", text)
    elif other:
        yield Remark(leaf.task, "fault", f"the prompts follow '{leaf.config.prompt}', whose recorded hash is another")
    said = sum(share.shortened or 0 for share in shares)
    if shares and shortened != said and not wrong:
        yield Remark(leaf.task, "fault", f"{said} prompts shortened in the samples, {shortened} by their passages")


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
    whole = "\n\n".join(str(part) for part in (instruction, system) if part)
    return [part for part in (whole, user) if part], shown


def _turns(prompt: str) -> list[str] | None:
    """Return the contents of a conversation in JSON, as APIs are sent it; None for a text."""
    if not prompt.startswith("[{"):
        return None
    try:
        turns = json_value(prompt)
    except JsonFault:
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


def _follows_cut(prompt: str, parts: Sequence[str], end: str, exact: bool, texts: Sequence[str]) -> bool:
    """Return whether the prompt holds the parts, with each of the texts in the last one cut at its end."""
    turns = _turns(prompt)
    whole = plain_prompt([{"content": part} for part in parts])
    if turns is not None:
        return len(turns) in (1, len(parts)) and _is_cut("\n\n".join(turns), whole, texts)
    if exact:
        return prompt.endswith(end) and _is_cut(prompt.removesuffix(end), whole, texts)
    user = parts[-1].strip()
    first = user.find(texts[0]) if texts else -1
    start = prompt.find(user[:first])
    return all(part.strip() in prompt for part in parts[:-1]) and _is_cut(prompt[start:], user, texts, open_end=True)


def _is_cut(found: str, whole: str, texts: Sequence[str], *, open_end: bool = False) -> bool:
    """Return whether ``found`` is ``whole`` with each of the texts in it cut at its end."""
    place = start = 0
    for text in texts:
        at = whole.find(text, start)
        if at < 0 or not found.startswith(whole[start:at], place):
            return False
        place += at - start
        start = at + len(text)
        # up to where the rest goes on, of which as much as tells it apart from a text
        rest = whole[start : start + _TELLS]
        stop = found.find(rest, place)
        if stop < 0 or not text.startswith(found[place:stop].rstrip()):
            return False
        place = stop
    return bool(texts) and (found.startswith(whole[start:], place) if open_end else found[place:] == whole[start:])
