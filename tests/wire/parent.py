"""A parent of a sidecar that does not collect it and leaves its pipes to others.

Usage: parent.py PID_FILE COMMAND...; its own standard streams become the sidecar's.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    child = subprocess.Popen(sys.argv[2:])
    Path(sys.argv[1] + ".new").write_text(str(child.pid), encoding="utf-8")
    Path(sys.argv[1] + ".new").rename(sys.argv[1])
    time.sleep(600)
