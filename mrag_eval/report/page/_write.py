"""The report as one HTML file: it opens from disk, needs no network, and can be mailed."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from mrag_eval.core import decimal, is_language, language_name
from mrag_eval.platform import Wait, finite, missing_extra, replaced
from mrag_eval.report._table import Table, as_texts, noted
from mrag_eval.report.findings._record import sentences
from mrag_eval.report.findings._systems import few
from mrag_eval.report.page._data import PageData
from mrag_eval.report.page._gather import page_data
from mrag_eval.report.page._samples import directions
from mrag_eval.report.page._section import Section
from mrag_eval.report.page._sections import CHARTS, SECTIONS
from mrag_eval.report.page._spec import Spec

_FOLDER = Path(__file__).parent
# Small enough for mail servers and quick to open in a browser.
_MOST_BYTES = 4_900_000
# Maximum number of samples of each task.
_SAMPLES = 200


def write_report(
    results: Sequence[Path],
    out: Path,
    *,
    samples: int | None = None,
    text: bool = True,
    title: str | None = None,
) -> PageData:
    """Write the report on ``results`` (result files, or folders of them) to ``out`` and return what it shows.

    Args:
        samples: at most this many rows of each task go into the browser of samples, a fixed draw; by default as
            many as fit into five megabytes, and no more than 200.
        text: whether the texts of passages are included (some benchmarks' licences forbid passing them on).
        title: by default the benchmarks and the models.

    Raises:
        MissingExtraError: the library of the charts is not installed.
        DataError: there is no result of our tasks.
    """
    vega = _vega()
    data = page_data(results, samples=_SAMPLES if samples is None else samples, text=text)
    if title is None:
        names = (few([one[key] for one in data.of_task.values()]) for key in ("benchmark", "run"))
        title = ": ".join(dict.fromkeys(names))
    with Wait(f"writing {out}"):
        if samples is None:
            gathered = data.samples, data.passages
            data.samples, data.passages = data.samples[:1], []
            frame = len(_encoded(_page(data, title, vega)))
            data.samples, data.passages = gathered
            data.samples, data.passages = data.browser.within(max(0, _MOST_BYTES - frame))
        with replaced(out) as part:
            part.write_bytes(_encoded(_page(data, title, vega)))
    return data


def write_tables(tables: Sequence[Table], out: Path, title: str) -> None:
    """Write tables with their notes to ``out``, as one page without scripts."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined)
    shown = [(marked, *as_texts(marked), notes) for marked, notes in map(noted, tables)]
    css = Markup((_FOLDER / "page.css").read_text(encoding="utf-8"))
    text = environment.get_template("tables.html.jinja").render(
        title=title, tables=shown, css=css, version=version("mrag-eval")
    )
    with replaced(out) as part:
        part.write_bytes(_encoded(text))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", errors="backslashreplace")


def _page(data: PageData, title: str, vega: str) -> str:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    folders = [_FOLDER, _FOLDER / "sections"]
    environment = Environment(loader=FileSystemLoader(folders), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"decimal": decimal, "address": _addresses()}
    codes = sorted(_codes(data))
    specs = charts(data)
    payload = {
        "charts": specs,
        "opens": {chart.id: chart.opens for chart in CHARTS if chart.opens},
        "samples": data.samples,
        "passages": data.passages,
        # the fields by which samples are chosen
        "tasks": {label: {"model": one["run"], **one} for label, one in data.of_task.items()},
        "names": {code: language_name(code) for code in codes if is_language(code)},
        "directions": directions(codes),
        "drawn": data.browser.available,
    }
    sections: list[tuple[Section, list[Markup]]] = []
    for section in SECTIONS:
        found = [(block.template, block.values(data)) for block in section.blocks]
        drawn = [Markup(environment.get_template(name).render(values)) for name, values in found if values is not None]
        if drawn:
            sections.append((section, drawn))
    scripts = {
        "vega": vega.replace("</script", "<\\/script"),
        "js": (_FOLDER / "page.js").read_text(encoding="utf-8"),
    }
    hashes = (b64encode(sha256(_encoded(text)).digest()).decode() for text in scripts.values())
    ids = {section.id for section, _ in sections} | {f"chart-{id}" for id in specs} | {"changed"}
    opening = [(one.sentence, *sentences()["questions"][one.kind]) for one in data.findings]
    return environment.get_template("page.html.jinja").render(
        title=title,
        version=version("mrag-eval"),
        n_tasks=len(data.leaves),
        sections=[one for one in sections if not one[0].folded],
        folded=[one for one in sections if one[0].folded],
        findings=[(asks, next((a for a in anchors if a in ids), ""), says) for says, asks, *anchors in opening],
        parts=Counter(leaf.part for leaf in data.leaves if leaf.part).most_common(),
        # no text in it can end the script element
        payload=Markup(_json(payload).replace("<", "\\u003c")),
        css=Markup((_FOLDER / "page.css").read_text(encoding="utf-8")),
        **{name: Markup(text) for name, text in scripts.items()},
        allowed=Markup(" ".join(f"'sha256-{one}'" for one in hashes)),
    )


def _json(payload: object) -> str:
    # a browser reads no NaN, and would show none of the page
    return json.dumps(finite(payload), allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def charts(data: PageData) -> dict[str, Spec]:
    """Return chart id -> specification, for every chart that has data."""
    return {chart.id: chart.draw(points) for chart in CHARTS if (points := data.points.get(chart.id))}


def _addresses() -> Callable[[Iterable[object]], str]:
    """Return a filter that makes addresses of names, each once on a page: ``system-xquad-gemma-3-4b``."""
    given: Counter[str] = Counter()

    def address(names: Iterable[object]) -> str:
        found = re.sub(r"\W+", "-", " ".join(map(str, names)).lower()).strip("-")[:80] or "row"
        given[found] += 1
        # a point is in no other address
        return found if given[found] == 1 else f"{found}.{given[found]}"

    return address


def _codes(data: PageData) -> set[str]:
    """Return every language code on the page."""
    codes = {str(p[key]) for points in data.points.values() for p in points for key in _LANGUAGES if key in p}
    codes |= {str(sample.get(key)) for sample in data.samples for key in ("lang", "source", "doc_lang")}
    return codes | {str(p["lang"]) for p in data.passages} | {c for board in data.boards for c in board.languages}


_LANGUAGES = ("language", "question", "document", "answer")


def _vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one module that puts them on ``window``."""
    try:
        from vl_convert import javascript_bundle
    except ImportError:
        raise missing_extra("report", "vl-convert-python") from None
    return javascript_bundle(None)  # type: ignore[arg-type]  # optional, though its types do not say so
