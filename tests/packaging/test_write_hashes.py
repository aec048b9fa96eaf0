"""scripts/write_hashes.py: requirements with hashes of what pip reports."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.write_hashes import requirements


def package(name: str, **place: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "version": "1.2"}, "download_info": {"url": f"https://index/{name}", **place}}


def test_every_package_but_the_project_has_the_hash_of_its_file() -> None:
    found = [
        package("numpy", archive_info={"hashes": {"sha256": "aa"}}),
        package("Jinja2", archive_info={"hashes": {"sha256": "bb"}}),
        package("mrag-eval", dir_info={}),
    ]
    assert [*requirements({"install": found})] == ["Jinja2==1.2 --hash=sha256:bb", "numpy==1.2 --hash=sha256:aa"]


@pytest.mark.parametrize("place", [{"vcs_info": {"commit_id": "cc"}}, {"archive_info": {}}])
def test_a_package_without_a_hash_is_refused(place: dict[str, Any]) -> None:
    with pytest.raises(SystemExit, match=r"^evil==1\.2: pip reports no SHA-256 for https://index/evil; install it"):
        [*requirements({"install": [package("evil", **place)]})]
