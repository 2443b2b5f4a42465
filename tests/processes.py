"""Python in a process of its own."""

import os
import subprocess
import sys


def run_python(
    code: str, *arguments: object, options: tuple[str, ...] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code, and return the completed process with its exit code and output."""
    command = [sys.executable, *options, "-c", code, *map(str, arguments)]
    captured = {"capture_output": True, "text": True, "timeout": 600}
    return subprocess.run(command, check=False, env={**os.environ, **environment}, **captured)
