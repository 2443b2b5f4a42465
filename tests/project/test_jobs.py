"""The jobs run from files to a statement, each in an empty folder."""

import re
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from picture_helpers import small_grey

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "examples" / "jobs"
SAID = {
    "plate": ["no (4 x well, 8 curves) and yes (4 x well, 8 curves)", "p = 0.02857 (all 70 perm"],
    "rock": [
        "porosity 0.264",
        "specific surface 0.0261 per micrometer",
        "connectivity density 1.8e-06",
        "percolate along x",
    ],
    "brain": ["region 1: 50%", "region 2: 100%"],
    "field": ["loops of the torus itself: 3", "most at 1.7"],
    "shapes": ["distance within a kind", "p = 0.0"],
    "unet": ["weight of the loss 0: Betti error", "weight of the loss 50: Betti error"],
}
WRITTEN = {
    "plate": ["groups.png", "plate.parquet", "test.json"],
    "rock": ["rock.csv", "rock.png"],
    "brain": ["regions.csv"],
    "field": ["field.png"],
}
"""Pictures are shown on the page of the jobs, as job-plate.png and so on."""


def test_every_job_is_tested():
    assert {path.stem for path in JOBS.glob("*.py")} == set(SAID)


@pytest.fixture
def one_thread():
    """Let torch use one thread, as its threads wait for each other on a machine that is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name == "unet" else ()) for name in SAID],
)
def test_job(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Other libraries may warn.
        runpy.run_path(str(JOBS / f"{name}.py"))
    text = capsys.readouterr().out
    assert [statement for statement in SAID[name] if statement not in text] == []
    for file in WRITTEN.get(name, []):
        assert (tmp_path / file).stat().st_size > 500
        if not file.endswith(".png"):
            continue
        shown = ROOT / "docs" / "images" / f"job-{name}.png"
        drawn_now = small_grey(tmp_path / file)
        committed = small_grey(shown)
        assert np.abs(drawn_now - committed).mean() < 5  # Versions of matplotlib differ.
        assert f"(images/{shown.name})" in (ROOT / "docs" / "jobs.md").read_text()
    if name == "unet":
        without, with_loss = map(float, re.findall(r"error (\S+)", text))
        assert with_loss < 0.7 * without
    assert len((JOBS / f"{name}.py").read_text().splitlines()) <= 40
