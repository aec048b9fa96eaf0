"""A program on a cache of a few kilobytes: ``python small_disk.py FOLDER SIZE COMMAND ...``.

Run it in a separate mount namespace (``unshare --mount``), so that nothing stays mounted.
"""

from __future__ import annotations

import subprocess
import sys

if __name__ == "__main__":
    folder, size, *command = sys.argv[1:]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    code = subprocess.run(command, check=False).returncode
    # a copy of the disk's content for the caller, who cannot see it
    subprocess.run(["cp", "-a", f"{folder}/.", f"{folder}-kept"], check=True)
    sys.exit(code)
