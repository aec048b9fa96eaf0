"""Print the packages that pip would install as requirements with hashes: pip then takes these very files, or none.

    pip install --dry-run --ignore-installed --report report.json -c constraints.txt ".[api]"
    python scripts/write_hashes.py report.json > hashed.txt
    pip install --no-deps --require-hashes -r hashed.txt && pip install --no-deps .

The hashes are those of this Python and platform, on which the job has to run. The project itself is left out: its
commit pins it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def requirements(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each package of a report of pip, in order of names.

    Raises SystemExit for one whose file has no SHA-256, as that of a repository.
    """
    for found in sorted(report["install"], key=lambda one: str(one["metadata"]["name"]).lower()):
        name, place = f"{found['metadata']['name']}=={found['metadata']['version']}", found["download_info"]
        if "dir_info" in place:
            continue
        digest = place.get("archive_info", {}).get("hashes", {}).get("sha256")
        if digest is None:
            raise SystemExit(f"{name}: pip reports no SHA-256 for {place['url']}; install it from a package index")
        yield f"{name} --hash=sha256:{digest}"


if __name__ == "__main__":
    print("\n".join(requirements(json.loads(Path(sys.argv[1]).read_text("utf-8")))))
