"""An image, and the command that takes it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_helpers import columns, command_line
from stack_helpers import noise

from ecc_core._blocks.work import Work
from ecc_core.cli import main


@pytest.fixture
def image() -> np.ndarray:
    return noise(9, 20, 17)


@pytest.fixture
def stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc stack` on paths or arrays, and return the table that it writes."""

    def table(*arguments: object) -> dict[str, list[float]]:
        out = tmp_path / "curve.csv"
        line = command_line(tmp_path, *arguments, "--out", out, chunk=4)
        assert main(["stack", *line]) == 0
        assert not list(tmp_path.glob("*.parts"))
        capsys.readouterr()
        return columns(out)

    return table


@pytest.fixture
def blocks_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Indices of the blocks that are read."""
    read: list[tuple[int, ...]] = []
    process = Work.process

    def counted(self: Work, block: tuple[int, ...]) -> Any:
        read.append(block)
        return process(self, block)

    monkeypatch.setattr(Work, "process", counted)
    return read
