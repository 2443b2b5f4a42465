"""Images, and the command that takes them."""

import re
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
import pytest
from io_helpers import command_line, noise, rows_of
from option_cases import AT
from pyarrow.csv import read_csv

from ecc_core.cli import main


@pytest.fixture
def image() -> np.ndarray:
    return noise(12, 9)


@pytest.fixture
def image_file(tmp_path: Path, image: np.ndarray) -> str:
    path = tmp_path / "image.png"
    imageio.imwrite(path, image)
    return str(path)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc curve` on paths or arrays and return the rows that it prints."""

    def rows(*arguments: object) -> list[dict[str, str]]:
        assert main(["curve", *command_line(tmp_path, *arguments)]) == 0
        output, errors = capsys.readouterr()
        assert errors == ""
        return rows_of(output)

    return rows


@pytest.fixture
def say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc` on paths or arrays and return what it prints."""

    def output(*arguments: object) -> str:
        assert main(command_line(tmp_path, *arguments)) == 0
        return capsys.readouterr().out

    return output


@pytest.fixture
def refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run `ecc` with something it must refuse and return what it says."""

    def message(*arguments: object) -> str:
        try:
            code = main(command_line(tmp_path, *arguments))
        except SystemExit as exit_:  # Wrong arguments end the program.
            code = exit_.code
        output, errors = capsys.readouterr()
        assert (code, output) == (2, "")
        assert re.fullmatch(r"ecc( \w+)?: error: .*\n", errors), errors
        return errors

    return message


@pytest.fixture
def columns(tmp_path: Path) -> Any:
    """Run a command and return the measures of its table by name, one list for each row.

    Arrays are saved in chunks through which filters reach.
    """

    def measures(command: str, *arguments: object) -> dict[str, list[list[float]]]:
        out = tmp_path / "out.csv"
        flags = ["--thresholds", ",".join(map(str, AT)), "--out", str(out)]
        assert main([command, *command_line(tmp_path, *arguments, chunk=8), *flags]) == 0
        table = read_csv(out).to_pydict()
        if command == "batch":
            firsts = [name for name in table if name.endswith(str(AT[0]))]
            stems = [name.removesuffix(str(AT[0])) for name in firsts]
            rows = {}
            for stem in stems:
                columns = [table[f"{stem}{t}"] for t in AT]
                rows[stem.strip() or "euler_number"] = np.transpose(columns)
        else:
            names = ["euler_number", *(n for n in table if n.startswith(("b", "a", "p", "v", "s")))]
            rows = {n: np.reshape(table[n], (-1, len(AT))) for n in names}
        return {name: values.tolist() for name, values in rows.items()}

    return measures
