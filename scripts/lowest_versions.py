"""Print each dependency of the installed package at its lowest declared version, one constraint of pip a line.

    python scripts/lowest_versions.py > lowest.txt && pip install -c lowest.txt .

Dependencies without a lower bound are left out; those of extras, too.
"""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement


def main() -> None:
    """Print the constraints."""
    for requirement in map(Requirement, requires("mrag-eval") or ()):
        lowest = [each.version for each in requirement.specifier if each.operator == ">="]
        if lowest and "extra ==" not in str(requirement.marker):
            print(f"{requirement.name}=={lowest[0]}")


if __name__ == "__main__":
    main()
