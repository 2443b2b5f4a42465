"""What the compiler makes of the kernels."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ASYNCHRONOUS = ("pairs2d", "pairs3d", "bytes2d", "bytes3d")


def test_kernels_that_spill_are_right():
    """All kernels that copy rows asynchronously (docs/design/cuda.md)."""
    script = Path(__file__).with_name("spills.py")
    command = [sys.executable, str(script), "4"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    local = dict(line.split() for line in run.stdout.splitlines())
    assert not [source for source in ASYNCHRONOUS if int(local[source]) == 0]
