"""Metrics of the user's: functions of one row, which become records of :data:`mrag_eval.scoring.METRICS` like ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import isfinite
from numbers import Real
from typing import Any, Literal, TypeVar, overload

from mrag_eval.config import JUDGES, OWN
from mrag_eval.core import LABEL_SHARE, Scale, Scored, Value, not_finite, plain_name
from mrag_eval.platform import ConfigError, OwnFunction, entry_point, own_function, staying_here
from mrag_eval.scoring._control_kinds import uncontrolled
from mrag_eval.scoring._metrics import METRICS, TWO_METRICS, Metric
from mrag_eval.scoring._reply_values import Batch, by_row
from mrag_eval.scoring._task_level import ANSWERED, TASK_MEASURES, TASK_SCORES

F = TypeVar("F", bound=Callable[[Scored], Any])
Better = Literal["higher", "lower", "neither"]

_GROUP = "mrag_eval.metrics"
_SIDES: Mapping[str, bool | None] = {"higher": True, "lower": False, "neither": None}
# Names that results use for something else.
_TAKEN = frozenset({*METRICS, *TASK_SCORES, *TASK_MEASURES, "rows", "votes", "unscored"})
# Functions of metrics by name; those that are known from the record of a run alone have none.
_loaded: dict[str, OwnFunction] = {}
# The record that such a metric is known from, by name.
_told: dict[str, str] = {}
_OWN_CONTROL = uncontrolled("it is a metric of the user's, whose range on these rows is not known")


@dataclass(frozen=True)
class _Settings:
    """What a metric declares of itself; see :func:`metric`."""

    name: str | None = None
    better: Better = "higher"
    unit: str = "share"
    low: float | None = 0.0
    high: float | None = 1.0


@overload
def metric(function: F, /) -> F: ...
@overload
def metric(
    *,
    name: str | None = None,
    better: Better = "higher",
    unit: str = "share",
    low: float | None = 0.0,
    high: float | None = 1.0,
) -> Callable[[F], F]: ...
def metric(function: Any = None, /, **declared: Any) -> Any:
    """Make a function of one row a metric, under the name of the function or ``name``.

    The function is given a :class:`~mrag_eval.core.Scored` (``answer``, ``doc``, ``passages``, ...) and returns a
    number. A row for which it raises, or returns anything but a number between ``low`` and ``high``, is unscored with
    that as the reason. ``better`` is the better side, ``unit`` is ``share`` (printed in percent), ``ratio`` or the
    plural of what is counted, and None is no bound.

    Raises ConfigError for the name of another metric.
    """
    if function is None:
        return partial(_marked, declared=declared)
    return _marked(function, {})


def _marked(function: Any, declared: Mapping[str, Any]) -> Any:
    function.metric_settings = _Settings(**declared)
    _added(own_function(function, _GROUP, "metric"), "metric")
    return function


class MetricNames(Collection[str]):
    """Every name that a task may list under ``metrics``, except ranking measures; those of packages when asked for."""

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name in TASK_SCORES or (name in METRICS and is_loaded(name)):
            return isinstance(name, str)
        if name.startswith(f"{LABEL_SHARE}."):
            return True
        return entry_point(name, _GROUP) is not None and bool(self.named(name, "metrics"))

    def __iter__(self) -> Iterator[str]:
        return iter((*METRICS, *TASK_SCORES))

    def __len__(self) -> int:
        return len(METRICS) + len(TASK_SCORES)

    def named(self, entry: Any, where: str) -> str:
        """Return the name of a metric that is a function, or names one (:func:`mrag_eval.platform.own_function`)."""
        return _added(own_function(entry, _GROUP, where), where)


METRIC_NAMES = MetricNames()


def tell_metrics(instrument: Mapping[str, Any], where: str) -> None:
    """Make the metrics of the user's in the record of a run known: their sides and units, not their functions.

    One that another run, or a function, declares otherwise is two metrics under one name: whatever asks for its side or
    unit from then on is refused. ``where`` the record is goes into that error.
    """
    for key, told in instrument.items():
        name = key.removeprefix(OWN)
        # of a measure of ours, the record names judges of its own
        if not key.startswith(OWN) or name in _TAKEN or not isinstance(told, Mapping) or JUDGES in told:
            continue
        low, high = (end if isinstance(end := told.get(key), int | float) else None for key in ("low", "high"))
        reason = f"the function of {name} is not loaded here"
        told_scale = Scale(str(told.get("unit", "share")), low, high)
        found = _record(name, by_row(partial(_unknown, reason)), told_scale, told, "")
        known = METRICS.setdefault(name, found)
        if known is found:
            _told[name] = where
            _loaded.pop(name, None)
        elif _declared(known) != _declared(found):
            other = _loaded[name].place if name in _loaded else _told.get(name, "elsewhere")
            TWO_METRICS[name] = f"'{name}' is two metrics: {_declared(found)} in {where}; {_declared(known)} in {other}"


def _declared(own: Metric) -> str:
    """Return what a metric of the user's declares of its values."""
    side = next(better for better, more in _SIDES.items() if more is own.higher_is_better)
    low, high = ("none" if end is None else f"{end:g}" for end in (own.scale.low, own.scale.high))
    return f"better={side}, unit={own.scale.unit}, low={low}, high={high}"


def _unknown(reason: str, row: Scored) -> Value:
    return reason


def is_loaded(name: str) -> bool:
    """Return whether the values of a metric can be computed here."""
    return name in _TAKEN or name not in METRICS or name in _loaded


def _added(own: OwnFunction, where: str) -> str:
    settings: _Settings = getattr(own.call, "metric_settings", _Settings())
    name = settings.name or own.name
    if not name.isidentifier() or plain_name(name) != name:
        raise ConfigError(f"{where}: '{name}' cannot be the name of a metric", "use letters, digits and _")
    if name in _TAKEN:
        raise ConfigError(f"{where}: '{name}' is a metric of mrag-eval", "give yours another name: @metric(name=...)")
    if settings.better not in _SIDES:
        raise ConfigError(f"{where}: better={settings.better!r} of '{name}'", f"write {', '.join(_SIDES)}")
    before = _loaded.get(name, own) if name in METRICS else own
    # one may be defined again, as in a notebook, and a copy of its file is the same function
    alike = [key for key in ("function", "sha256") if before.identity[key] == own.identity[key]]
    if "function" not in alike or (before.place != own.place and "sha256" not in alike):
        raise ConfigError(
            f"{where}: two functions are called '{name}': {_defined(before)}, {_defined(own)}",
            "give one of them another name: @metric(name=...)",
        )
    scale = Scale(settings.unit, settings.low, settings.high)
    score = by_row(partial(_value, own.call, name, scale))
    identity = {**own.identity, **asdict(settings), "name": name}
    TWO_METRICS.pop(name, None)
    METRICS[name] = _record(name, score, scale, identity, next(iter((own.call.__doc__ or "").strip().splitlines()), ""))
    _loaded[name] = own
    return name


def _defined(own: OwnFunction) -> str:
    return f"{own.identity['function']} of {own.place}"


def _record(name: str, score: Batch, scale: Scale, identity: Mapping[str, Any], summary: str) -> Metric:
    more = _SIDES.get(str(identity.get("better")))
    return Metric(name, score, summary, more, scale, needs=ANSWERED, control=_OWN_CONTROL, identity=identity)


def _value(function: Callable[[Scored], Any], name: str, scale: Scale, row: Scored) -> Value:
    """Return what the function gives for a row, or why that is no value."""
    try:
        with staying_here():
            found = function(row)
        value = float(found) if isinstance(found, Real) else None
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:  # a function of the user's may raise anything
        return f"{name}: " + " ".join(f"{type(error).__name__}: {error}".split())[:200]
    if value is None:
        return f"{name} returned {found!r:.40}, which is not a number"
    low, high = scale.bounds
    if isfinite(value) and not low <= value <= high:
        return f"{name} returned {value:g}, which is not between {low:g} and {high:g}: @metric(low=..., high=...)"
    return value if isfinite(value) else f"{name}: {not_finite(value)}"
