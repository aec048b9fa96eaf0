"""One chart of the report by itself: shown in a notebook, or written to a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrag_eval.config import called_here
from mrag_eval.platform import ConfigError, Places, did_you_mean, missing_extra, paths_of, replaced
from mrag_eval.report.page._gather import page_data
from mrag_eval.report.page._sections import CHARTS
from mrag_eval.report.page._spec import Spec

# In pixels: a notebook has no page whose width a chart could take.
_WIDTH = 560


@dataclass(frozen=True, repr=False)
class Plot:
    """A chart of runs; a notebook draws it.

    Attributes:
        spec: its Vega-Lite specification, with the values.
    """

    spec: Spec

    def save(self, path: str | Path) -> Path:
        """Write the chart as .svg, .png, .pdf or .json (its specification); return the path.

        Raises:
            ConfigError: the path has another extension.
            MissingExtraError: the library of the charts is not installed.
        """
        out = Path(path)
        forms: dict[str, Callable[[], bytes]] = {
            ".svg": lambda: self._repr_svg_().encode("utf-8"),
            ".png": lambda: bytes(_converter().vegalite_to_png(self.spec, scale=2)),
            ".pdf": lambda: bytes(_converter().vegalite_to_pdf(self.spec)),
            ".json": lambda: json.dumps(self.spec).encode("utf-8"),
        }
        if out.suffix not in forms:
            raise ConfigError(f"{out}: a chart is not written as '{out.suffix}'", f"one of {', '.join(forms)}")
        drawn = forms[out.suffix]()
        with replaced(out) as part:
            part.write_bytes(drawn)
        return out

    def _repr_svg_(self) -> str:
        return str(_converter().vegalite_to_svg(self.spec))

    def __repr__(self) -> str:
        return f"Plot({self.spec['description']!r})"


def plot(results: Places, chart: str = "scores", **chosen: str) -> Plot:
    """Return a chart of the report on finished runs, which a notebook draws and ``save`` writes to a file.

    Args:
        results: results of this session, result files, or folders searched for them.
        chart: its name: ``scores``, ``languages``, ``pairs`` (question × document), ``stages`` or another of the
            report's.
        chosen: what to draw where the page has a list to choose from, such as ``metric="hit@5"``; by default the
            first, as on the page.

    Raises:
        ConfigError: no chart, list or value has that name; the error lists what there is.
        DataError: there is no result of our tasks.
    """
    name, charts = chart, {chart.id: chart for chart in CHARTS}
    if name not in charts:
        raise ConfigError(f"no chart '{name}'{did_you_mean(name, charts)}", "name one of these")
    points = page_data(paths_of(results), samples=0).points
    if not points.get(name):
        there = ", ".join(id for id in charts if points.get(id))
        raise ConfigError(f"the chart '{name}' has no values in these results", f"those with values: {there}")
    spec = {**charts[name].draw(points[name]), "width": _WIDTH}
    spec["params"] = [_set(param, chosen, name) for param in spec.get("params", ())]
    values = {param["name"]: str(param["value"]) for param in spec["params"] if "value" in param}
    for key in chosen:
        if key not in values:
            raise ConfigError(f"chart '{name}': it has no list '{key}'{did_you_mean(key, values)}", "leave it out")
    title = {"text": charts[name].title, "subtitle": ", ".join(values.values()), "anchor": "start"}
    return Plot({**spec, "title": title, "config": {"legend": {"orient": "bottom", "labelLimit": 0}}})


def _set(param: Mapping[str, Any], chosen: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return a parameter of a chart with the value chosen for it, without the list that a page shows."""
    kept = {key: inner for key, inner in param.items() if key != "bind"}
    value = chosen.get(param["name"])
    if value is None or "value" not in param:
        return kept
    options = param.get("bind", {}).get("options", [param["value"]])
    if value not in options:
        said = f"chart '{name}', {param['name']}: no '{value}'{did_you_mean(value, options)}"
        raise ConfigError(said, called_here(value, "name one"))
    return kept | {"value": value}


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError:
        raise missing_extra("report", "vl-convert-python") from None
    return vl_convert
