"""Shared fixtures: the folder of the real test data, and no accidental network access."""

from __future__ import annotations

import gc
import logging
import os
import re
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from mrag_eval.platform import _secrets
from tests import remembered
from tests.models.conftest import start  # noqa: F401 - fixtures of several folders
from tests.programs import Programs
from tests.worlds.fixtures import tasks, world  # noqa: F401

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ:
    # a model of one worker, and the servers that it starts, would compete for the cores of the other
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# typer makes the tree of all commands for every call, and no call changes it
typer.main.get_command = remembered.commands

# a busy machine is no fault of ours
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# several strings in braces, without the colon of a dictionary
_SET = re.compile(r"\{'[^':]*'(, '[^':]*')+\}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage among the tests and modules themselves, which stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the files with real models first: they take longest, and one that starts last keeps a single core busy.

    Refuse names of cases that hold a set: its order differs between processes, and all workers need the same names.
    """
    unstable = [item.nodeid for item in items if _SET.search(item.nodeid)]
    if unstable:
        raise pytest.UsageError(f"name this case by something else than a set: {unstable[0]}")
    long = {item.path for item in items if item.get_closest_marker("model")}
    items.sort(key=lambda item: item.path not in long)


def _data_root() -> Path:
    value = os.environ.get("MRAG_TEST_DATA", "")
    in_ci = os.environ.get("CI", "").lower() == "true"
    if not value:
        reason = "MRAG_TEST_DATA is not set: python scripts/fetch_test_data.py DIR downloads the files"
        pytest.fail(reason) if in_ci else pytest.skip(reason)
    root = Path(value).resolve()
    if not root.is_dir():
        reason = f"MRAG_TEST_DATA={root} is not a folder: python scripts/fetch_test_data.py {root}"
        pytest.fail(reason) if in_ci else pytest.skip(reason)
    return root


@pytest.fixture(scope="session")
def test_data() -> Path:
    """Return the folder of real benchmark files; if it is missing, skip with the reason, or fail in CI."""
    return _data_root()


@pytest.fixture(scope="session")
def reference() -> Path:
    """Return the folder of reference values, next to the test data."""
    root = _data_root()
    for candidate in (root / "reference", root.parent / "reference"):
        if candidate.is_dir():
            return candidate
    reason = f"no folder 'reference' next to or in {root}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def _own_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the secrets of other tests, which may be ordinary words here."""
    monkeypatch.setattr(_secrets, "_KNOWN", _secrets._Known())


@pytest.fixture(autouse=True)
def _own_caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore the caches and the config file of the person who runs the tests."""
    shared = Path(os.environ.get("MRAG_TEST_CACHE", tmp_path_factory.getbasetemp() / "mrag-cache"))
    monkeypatch.setenv("MRAG_CACHE", str(shared))
    monkeypatch.delenv("MRAG_CONFIG", raising=False)


@pytest.fixture(autouse=True)
def _fresh_models() -> Iterator[None]:
    """Give no test the models, or the spent budgets, of another."""
    from mrag_eval.models._shared import clear

    yield
    clear()


@pytest.fixture(autouse=True)
def _records_reach_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an intact logger of the harness.

    A test that runs the harness's command in this process detaches that logger from the root logger for good, and gives
    it a handler on the test's standard error, which is closed when the next test starts.
    """
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    monkeypatch.setattr(logging.getLogger("lm_eval"), "handlers", [])


@pytest.fixture(autouse=True)
def _found_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the installed packages and the task files once, not for every run of the harness
    (:mod:`tests.remembered`).
    """
    if "torch" in sys.modules:
        monkeypatch.setattr("torch.utils.collect_env.get_pretty_env_info", remembered.environment_info)
    if "lm_eval.tasks._index" in sys.modules:
        monkeypatch.setattr("lm_eval.tasks._index.load_yaml", remembered.task_file)


@pytest.fixture(scope="session")
def programs() -> Iterator[Programs]:
    """Yield the programs ``mrag-eval``, ``lm_eval`` and ``python`` without the seconds that their imports take."""
    ready = Programs()
    yield ready
    ready.close()
