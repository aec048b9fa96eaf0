"""How a panel judged: what came of the votes, how far the judges agree, and how lenient each is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from mrag_eval.models import Ledger, total

if TYPE_CHECKING:
    from mrag_eval.metrics import Kind

Record = Mapping[str, Any]

_RESAMPLES = 2_000
_FAMILIES = {
    "gpt": r"(chat)?gpt|o[1345](-|$)|text-davinci",
    "claude": r"claude",
    "gemini": r"gemini|gemma|palm",
    "mistral": r"(open-)?(mi[sx]tral|ministral|magistral|codestral|pixtral)",
    "qwen": r"qwen|qwq|qvq",
    "command": r"(c4ai-)?(command|aya)",
    "llama": r"(meta-)?llama",
    "nova": r"(amazon\.?)?nova",
}


def family(model: str) -> str:
    """Whose model it is, by its name: a known maker's line, else the letters that the name begins with."""
    name = model.rstrip("/").rpartition("/")[2].casefold()
    for known, pattern in _FAMILIES.items():
        if re.match(pattern, name):
            return known
    letters = re.match(r"[^\W\d_]+", name)
    return letters[0] if letters else name


def panel_table(records: Sequence[Record], *, evaluated: str | None = None, seed: int = 0) -> dict[str, Any] | None:
    """The panel's table from the rows' records; None where no panel judged them.

    Args:
        records: one a row, as gathered; ``judge`` holds its verdict, outcome and votes. One record of every rank holds
            ``panel``: the model behind every seat, the ledgers of that rank, and how language was checked.
        evaluated: the name of the model whose answers these are.

    Returns a JSON object::

        size        number of seats
        outcomes    unanimous, majority, tie, unjudged, and without a vote: declined, empty, no reference -> rows
        abstained   reason -> number of votes
        disagreement  mean share of votes against the majority
        judges      seat -> model, correct (its share of verdicts "correct": leniency), abstained; self_preference where
                    its model is of the evaluated model's family: its verdicts less those of the other families' judges
                    on the same rows
        agreement   pairwise -> "a | b" -> Cohen's kappa; fleiss -> Fleiss' kappa over rows where every seat voted
        ledger      model -> calls, cached, retries, tokens, failures, seconds
        language_check  the detector, and why another than was asked for
    """
    panels = [r["panel"] for r in records if "panel" in r]
    if not panels:
        return None
    rows = list({str(r["row"]): r for r in records if "judge" in r}.values())
    models: dict[str, str] = panels[0]["models"]
    votes = {seat: [_verdict(r, seat) for r in rows] for seat in models}
    voted = [r["judge"] for r in rows if "votes" in r["judge"]]
    abstained = Counter(vote for judged in voted for vote in judged["votes"].values() if not isinstance(vote, bool))
    split = [judged["disagreement"] for judged in voted if judged.get("disagreement") is not None]
    out: dict[str, Any] = {
        "size": len(models),
        "outcomes": dict(Counter(r["judge"]["outcome"] for r in rows)),
        "abstained": dict(abstained),
        "disagreement": sum(split) / len(split) if split else None,
        "judges": {seat: _judge(rows, seat, votes, models, evaluated, seed) for seat in models},
    }
    if len(models) > 1:
        out["agreement"] = _agreement(votes, seed)
    names = list(dict.fromkeys(chain.from_iterable(panel["ledger"] for panel in panels)))
    out["ledger"] = {
        name: total(Ledger.from_dict(panel["ledger"][name]) for panel in panels if name in panel["ledger"]).as_dict()
        for name in names
    }
    check = next((panel["language_check"] for panel in panels if panel.get("language_check")), None)
    if check:
        out["language_check"] = check
    return out


def _verdict(record: Record, seat: str) -> bool | None:
    vote = record["judge"].get("votes", {}).get(seat)
    return vote if isinstance(vote, bool) else None


def _judge(
    rows: Sequence[Record],
    seat: str,
    votes: Mapping[str, Sequence[bool | None]],
    models: Mapping[str, str],
    evaluated: str | None,
    seed: int,
) -> dict[str, Any]:
    reasons = (r["judge"].get("votes", {}).get(seat) for r in rows)
    out: dict[str, Any] = {
        "model": models[seat],
        "correct": _share(rows, votes[seat], seed),
        "abstained": dict(Counter(reason for reason in reasons if isinstance(reason, str))),
    }
    if evaluated is not None and family(models[seat]) == family(evaluated):
        others = [other for other in models if family(models[other]) != family(evaluated)]
        # differences lie between -1 and 1: no proportions, even where they happen to be 0 and 1
        out["self_preference"] = _share(rows, _excess(votes, seat, others), seed, proportion=False)
    return out


def _excess(votes: Mapping[str, Sequence[bool | None]], seat: str, others: Sequence[str]) -> list[float | None]:
    """A seat's verdict less the mean of the others', row by row; None where either side is silent."""
    out: list[float | None] = []
    for i, own in enumerate(votes[seat]):
        cast = [vote for other in others if (vote := votes[other][i]) is not None]
        out.append(None if own is None or not cast else float(own) - sum(cast) / len(cast))
    return out


def _share(
    rows: Sequence[Record], values: Sequence[float | bool | None], seed: int, *, proportion: bool = True
) -> dict[str, Any]:
    from mrag_eval.metrics import interval_for

    groups = [str(r.get("group", r["row"])) for r in rows]
    numbers = [None if value is None else float(value) for value in values]
    together = groups if len(set(groups)) < len(groups) else None
    kind: Kind = "auto" if proportion else "bootstrap" if together is None else "cluster"
    return interval_for(
        numbers,
        groups=together,
        kind=kind,
        n_resamples=_RESAMPLES,
        seed=seed,
        bounds=(0.0, 1.0) if proportion else (-1.0, 1.0),
    ).as_dict()


def _agreement(votes: Mapping[str, Sequence[bool | None]], seed: int) -> dict[str, Any]:
    from mrag_eval.metrics import fleiss_kappa, pairwise_kappas

    complete = [list(row) for row in zip(*votes.values(), strict=True) if None not in row]
    pairs = pairwise_kappas(votes, n_resamples=_RESAMPLES, seed=seed)
    return {
        "pairwise": {f"{a} | {b}": kappa.as_dict() for (a, b), kappa in pairs.items()},
        "fleiss": fleiss_kappa(complete, n_resamples=_RESAMPLES, seed=seed).as_dict(),
    }


def panel_line(table: Mapping[str, Any], what: str = "answers") -> str:
    """The panel in one line: size, how many (``what``) it judged, what came of the votes, what it cost."""
    outcomes = table["outcomes"]
    asked = sum(outcomes.get(kind, 0) for kind in ("unanimous", "majority", "tie", "unjudged"))
    decided = outcomes.get("unanimous", 0) + outcomes.get("majority", 0)
    unjudged = f"{outcomes.get('unjudged', 0):,} unjudged"
    if outcomes.get("unjudged") and table["abstained"]:
        unjudged += f" ({', '.join(sorted(table['abstained']))})"
    ties = outcomes.get("tie", 0)
    votes = [f"{decided:,} unanimous or majority", f"{ties:,} {'tie' if ties == 1 else 'ties'}", unjudged]
    settled = [f"{outcomes[kind]:,} {kind}" for kind in ("declined", "empty", "no reference") if outcomes.get(kind)]
    cost = total(Ledger.from_dict(ledger) for ledger in table["ledger"].values()).line()
    parts = [
        f"judged by a panel of {table['size']}",
        f"{asked:,} {what}",
        ", ".join(votes),
        *([f"not asked: {', '.join(settled)}"] if settled else []),
        cost,
        *([table["language_check"]] if table.get("language_check") else []),
    ]
    return " · ".join(parts)


def against_human(records: Sequence[Record], labels: Mapping[str, bool], seed: int = 0) -> dict[str, Any]:
    """The panel and each judge against human labels of rows (row id -> correct).

    Returns a JSON object: ``rows`` compared, ``unlabelled`` rows of the panel, ``unmatched`` labels, ``unjudged`` rows
    among the labelled; ``human_correct`` the humans' share; ``panel`` and ``judges`` -> ``kappa`` (Cohen's),
    ``agreement`` (share of equal verdicts), ``correct`` (leniency on these rows); ``independence``: the panel's
    effective size, how far the judges err together.
    """
    from mrag_eval.metrics import effective_panel_size

    judged = list({str(r["row"]): r for r in records if "votes" in r.get("judge", {})}.values())
    rows = [r for r in judged if str(r["row"]) in labels]
    human = [labels[str(r["row"])] for r in rows]
    seats = list(dict.fromkeys(seat for r in rows for seat in r["judge"]["votes"]))
    votes = {seat: [_verdict(r, seat) for r in rows] for seat in seats}
    panel = [r["judge"]["verdict"] for r in rows]
    known = {str(r["row"]) for r in judged}
    out: dict[str, Any] = {
        "rows": len(rows),
        "unlabelled": len(judged) - len(rows),
        "unmatched": sum(row not in known for row in labels),
        "unjudged": sum(verdict is None for verdict in panel),
        "human_correct": _share(rows, human, seed),
        "panel": _compared(rows, panel, human, seed),
        "judges": {seat: _compared(rows, votes[seat], human, seed) for seat in seats},
    }
    if len(seats) > 1:
        found = effective_panel_size([list(row) for row in zip(*votes.values(), strict=True)], human)
        out["independence"] = {
            "effective_size": found.effective_size,
            "error_correlation": found.error_correlation,
            "size": found.size,
            "n": found.n,
            **({"reason": found.reason} if found.reason else {}),
        }
    return out


def _compared(
    rows: Sequence[Record], verdicts: Sequence[bool | None], human: Sequence[bool], seed: int
) -> dict[str, Any]:
    from mrag_eval.metrics import cohen_kappa

    equal = [None if verdict is None else verdict == label for verdict, label in zip(verdicts, human, strict=True)]
    return {
        "kappa": cohen_kappa(verdicts, human, n_resamples=_RESAMPLES, seed=seed).as_dict(),
        "agreement": _share(rows, equal, seed),
        "correct": _share(rows, verdicts, seed),
    }
