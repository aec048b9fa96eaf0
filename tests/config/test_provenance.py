"""Versions in results."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from mrag_eval.config import _provenance as provenance
from mrag_eval.config import package_versions


def test_versions_are_those_of_the_installed_packages() -> None:
    known = {}
    for name in provenance._PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            assert name not in package_versions()
    assert {"numpy", "scipy", "lm-eval", "mrag-eval"} <= known.keys()
    assert {name: said for name, said in package_versions().items() if name in known} == known


def test_a_package_whose_metadata_stands_elsewhere_has_a_version(monkeypatch: pytest.MonkeyPatch) -> None:
    class Egg:
        version = "1.2"

        def read_text(self, name: str) -> Any:
            return None

    monkeypatch.setattr(provenance, "distribution", lambda name: Egg())
    assert provenance._version("old") == "1.2"
