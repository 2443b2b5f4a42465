"""Run every command on a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from io_helpers import LEVELS, curves_in, rows_of

from ecc_core.cli import main

COMMANDS = ("curve", "stack", "batch", "transform", "info")
THRESHOLDS = ",".join(map(str, LEVELS))


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run a command on an input; returns its exit code and what it says or writes."""

    def result(command: str, path: Path | str, *options: str) -> tuple[int, str]:
        out = tmp_path / ("out.npz" if command == "transform" else "out.csv")
        arguments = [] if command == "info" else ["--out", str(out)]
        writes_a_table = command not in ("info", "transform")
        arguments += ["--thresholds", THRESHOLDS] if writes_a_table else []
        code = main([command, str(path), *options, *arguments])
        output, errors = capsys.readouterr()
        if code:
            assert errors.count("\n") == 1
            assert not out.exists()
            return code, errors
        output = out.read_text() if writes_a_table else output
        out.unlink(missing_ok=True)
        return code, output

    return result


@pytest.fixture
def refused(run: Any) -> Callable[..., str]:
    """What every command says of an input, which is the same."""

    def message(path: Path | str, *options: str) -> str:
        said = set()
        for command in COMMANDS:
            code, line = run(command, path, *options)
            assert code == (1 if command == "batch" else 2), (command, line)
            said.add(line.removeprefix("ecc: ").partition(": ")[2])
        assert len(said) == 1, said
        return said.pop()

    return message


@pytest.fixture
def curves(run: Any) -> Callable[..., list[list[int]]]:
    """The curves of an input, which `curve`, `stack` and `batch` agree about."""

    def values(path: Path | str, *options: str) -> list[list[int]]:
        found = []
        for command in ("curve", "stack", "batch"):
            code, text = run(command, path, *options)
            assert code == 0, text
            found.append(curves_in(rows_of(text)))
        assert found[0] == found[1] == found[2]
        return found[0]

    return values
