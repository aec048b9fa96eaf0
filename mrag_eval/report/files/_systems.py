"""Systems: a model in one IR mode with one set of settings, over all parts of a benchmark; leaderboards rank these."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mrag_eval.config import ALL_BUT_THE_MODEL, DECIDING, Measurement, Role, differences
from mrag_eval.report.files._leaves import Leaf, PageRow

# What follows from the rows of a part of a benchmark: its corpus, and a prompt in the language of the question.
_OF_ITS_ROWS = ("data", "log", "source", "index", "left_out", "ran", "retrieved", "texts.prompt")
# What may differ between the parts of a benchmark that make up one system.
PARTS = (*_OF_ITS_ROWS, "prompt.system", "translator")
# What a mode decides, and what may therefore differ between the modes that a leaderboard compares.
_OF_THE_MODE = (
    *("retrieval.mode", "retrieval.languages", "retrieval.merge", "retrieval.query_translation"),
    *("retrieval.document_translation", "translator", "agent", "data", "log", "left_out", "ran"),
    "retrieved",
)
# What only modes with retrieval have.
_OF_RETRIEVAL = ("retrieval.", "index.", "source.corpus")


@dataclass(frozen=True)
class System:
    """A system. ``mode`` is the IR mode as a column head: with the settings if the model ran it in several.

    ``rows`` are those of all its tasks, each question once; None if a task's samples are missing.
    """

    run: str
    benchmark: str
    mode: str
    leaves: tuple[Leaf, ...]
    rows: Mapping[tuple[str, str], PageRow] | None
    leaf_of: Mapping[tuple[str, str], Leaf]

    @property
    def name(self) -> str:
        """Return model and mode."""
        return f"{self.run} · {self.mode}"

    @property
    def part(self) -> str:
        """Return how much was run, if some task was run on a part of its rows; else ""."""
        parts = [leaf.part for leaf in self.leaves if leaf.part]
        if len(self.leaves) == 1:
            return "".join(parts)
        return f"{len(parts)} of {len(self.leaves)} tasks on a part of their rows" if parts else ""


def systems(leaves: Sequence[Leaf], rows: Mapping[str, Sequence[PageRow]]) -> list[System]:
    """Return the systems that ``leaves`` make up; ``rows`` are theirs by label, empty if a run kept no samples."""
    found: dict[tuple[str, str, str], list[list[Leaf]]] = defaultdict(list)
    for leaf in leaves:
        parts = found[leaf.run, leaf.benchmark, leaf.mode]
        fitting = next((part for part in parts if _fits(leaf, part, rows)), None)
        if fitting is None:
            parts.append([leaf])
        else:
            fitting.append(leaf)
    out = []
    for (run, benchmark, mode), parts in found.items():
        names = [_name(part) for part in parts]
        for part, name in zip(parts, names, strict=True):
            alike = names.count(name) > 1
            said = name if not alike else part[0].variant or part[0].label
            out.append(_system(run, benchmark, mode if len(parts) == 1 else f"{mode} ({said})", part, rows))
    shown = [*dict.fromkeys((system.run, system.benchmark) for system in out)]
    first = {id(system): system.leaves[0].result for system in out}
    modes = {key: result.known.place_of_mode(result.config.mode) for key, result in first.items()}
    return sorted(out, key=lambda system: (shown.index((system.run, system.benchmark)), modes[id(system)]))


def _fits(leaf: Leaf, part: Sequence[Leaf], rows: Mapping[str, Sequence[PageRow]]) -> bool:
    """Return whether the task is a further part of a system: the same settings on other rows."""
    if not are_parts(leaf.result.measurement, part[0].result.measurement):
        return False
    if leaf.variant and any(leaf.task == other.task for other in part):
        return False
    mine = {row.key for row in rows.get(leaf.label, ())}
    return not any(mine & {row.key for row in rows.get(other.label, ())} for other in part)


def _name(part: Sequence[Leaf]) -> str:
    """Return the task's name, or the common prefix of several tasks' names."""
    names = [leaf.task for leaf in part]
    if len(names) == 1:
        return names[0]
    words = [name.split("_") for name in names]
    same = 0
    while all(len(each) > same and each[same] == words[0][same] for each in words):
        same += 1
    return "_".join([*words[0][:same], "*"]) if same else ", ".join(names)


def _system(run: str, benchmark: str, mode: str, part: Sequence[Leaf], rows: Mapping[str, Sequence[PageRow]]) -> System:
    leaf_of = {row.key: leaf for leaf in part for row in rows.get(leaf.label, ())}
    complete = all(rows.get(leaf.label) for leaf in part)
    merged = {row.key: row for leaf in part for row in rows.get(leaf.label, ())} if complete else None
    return System(run, benchmark, mode, tuple(part), merged, leaf_of)


def settings_apart(a: System, b: System) -> dict[str, str]:
    """Return setting -> ``a's | b's`` if two systems differ in more than model and mode, over the questions of both."""
    both = {(a.leaf_of[key].label, b.leaf_of[key].label): key for key in a.leaf_of if key in b.leaf_of}
    out: dict[str, str] = {}
    for key in both.values():
        one, other = a.leaf_of[key].result, b.leaf_of[key].result
        out |= apart_from_mode(one.measurement, other.measurement)
    return out


def apart_from_mode(
    one: Measurement | None, other: Measurement | None, roles: Collection[Role] = ALL_BUT_THE_MODEL
) -> dict[str, str]:
    """Return setting -> ``one's | the other's`` if two records differ in more than what an IR mode decides."""
    out: dict[str, str] = {}
    for found in differences(one, other, roles, _OF_THE_MODE):
        alone = None in (found.first, found.second)
        if not (alone and found.key.startswith(_OF_RETRIEVAL)):
            out[found.key] = found.values
    return out


def between_parts(one: Measurement | None, other: Measurement | None) -> dict[str, str]:
    """Return setting -> ``one's | the other's`` of what two parts do not share, and what does not follow from their
    rows.
    """
    return {found.key: found.values for found in differences(one, other, DECIDING, _OF_ITS_ROWS)}


def are_parts(one: Measurement | None, other: Measurement | None) -> bool:
    """Return whether two records are those of one system over different rows."""
    return not differences(one, other, DECIDING, PARTS)
