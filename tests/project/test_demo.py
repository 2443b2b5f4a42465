"""The demo: its tables hold the Euler numbers of the sets that it shows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from skimage import data, io

import ecc_core as ecc

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, DEMO, "--out", folder / "out", "--page", folder / "page.png"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr  # matplotlib may say there that it looks for fonts.
    assert "All done" in done.stdout
    assert "coins: 24 objects" in done.stdout
    return folder


def test_files(output: Path) -> None:
    names = {
        f"{n}.{s}" for n in ("brick", "cell", "coins", "porous_volume") for s in ("csv", "png")
    }
    assert {path.name for path in (output / "out").iterdir()} == {*names, "coins_objects.png"}
    pictures = [io.imread(picture)[..., :3] for picture in output.rglob("*.png")]
    drawn_upon = [np.mean(pixels.min(axis=-1) < 250) for pixels in pictures]
    assert min(drawn_upon) > 0.1
    colours = [np.unique(pixels @ [1, 256, 65_536]).size for pixels in pictures]
    assert min(colours) > 500


def test_numbers(output: Path) -> None:
    table = pd.read_csv(output / "out" / "brick.csv")
    assert len(table) > 500
    image = data.brick()
    rows = table[::37]
    connectivity = rows["neighbours"].map({8: 2, 4: 1})
    expected = [
        ecc.euler_number(image <= threshold, neighbours)
        for threshold, neighbours in zip(rows["threshold"], connectivity, strict=True)
    ]
    assert rows["euler_number"].tolist() == expected
