"""efrit's tools in Debian's gptel, which is unpacked into .venv, as gptel itself calls them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.emacs.batch import ROOT, batch

SECONDS = 300


@pytest.mark.soak(alone=True)
def test_gptel_calls_the_tools_and_asks_by_the_permissions(home: Path) -> None:
    folder = subprocess.check_output([ROOT / ".ci" / "gptel"], text=True).strip()
    with batch("gptel-driver.el", home, also={"EFRIT_GPTEL": folder}) as process:
        printed, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, printed
    found = json.loads(printed)
    assert found["asked"] == 1, "run_command alone is asked about"
    assert "until it compacts" in found["gauge"]
    assert found["status"].strip() == "Ready"
