"""`--mask` and `--labels` with `--boundary half-open`: densities of volumes of interest."""

import numpy as np
import pytest
from io_helpers import rows_of
from scipy.ndimage import gaussian_filter

import ecc_core as ecc
from ecc_core.cli import main

IMAGE = gaussian_filter(np.random.default_rng(0).normal(size=(30, 40)), 1).astype("f4")
LABELS = np.zeros(IMAGE.shape, "u1")
LABELS[3:20, 4:18], LABELS[8:27, 20:37] = 1, 4
AT = [-0.3, 0.0, 0.3]
CURVES = ["--thresholds=-0.3,0,0.3", "--boundary", "half-open", "--quiet"]
MEASURES = ("area", "perimeter", "euler_number")


def assert_densities(rows, known):
    """Compare the columns of a table with the densities of a window."""
    found = [[float(row[name]) for row in rows] for name in MEASURES]
    np.testing.assert_allclose(found, known.values, rtol=1e-12)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.save(tmp_path / "image.npy", IMAGE)
    np.save(tmp_path / "labels.npy", LABELS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ["curve", "stack"])
@pytest.mark.parametrize(("chosen", "ids"), [([], (1, 4)), (["--mask-label", "4"], (4,))])
def test_densities_of_a_mask(folder, chosen, ids, command):
    options = [*CURVES, "--mask", "labels.npy", *chosen, "--minkowski", "exact", "--density"]
    assert main([command, "image.npy", *options, "--out", "out.csv"]) == 0
    mask = np.isin(LABELS, ids)
    known = ecc.minkowski_curves(IMAGE, AT, mask=mask, boundary="half-open").densities()
    assert_densities(rows_of(folder / "out.csv"), known)


@pytest.mark.parametrize("label", [1, 4])
@pytest.mark.parametrize("command", ["curve", "stack"])
def test_densities_of_labels(folder, command, label):
    options = [*CURVES, "--labels", "labels.npy", "--minkowski", "exact", "--density"]
    assert main([command, "image.npy", *options, "--out", "out.csv"]) == 0
    rows = rows_of(folder / "out.csv")
    given = {"mask": label == LABELS, "boundary": "half-open"}
    known = ecc.minkowski_curves(IMAGE, AT, **given).densities()
    own = [row for row in rows if row["label"] == str(label)]
    assert_densities(own, known)


def test_labels_of_a_mask_need_a_mask(folder, capsys):
    assert main(["curve", "image.npy", *CURVES, "--mask-label", "1"]) == 2
    assert "--mask-label must be given together with --mask" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("chosen", "code"),
    [(["7"], 2), (["7,4"], 0), (["1", "--roi", "20:,:"], 2), (["4", "--roi", "20:,:"], 0)],
)
def test_labels_must_occur_in_the_selected_part(folder, capsys, chosen, code):
    """A wrong label would give the numbers of the empty set."""
    given = ["curve", "image.npy", "--thresholds", "0,", "--mask", "labels.npy"]
    assert main([*given, "--mask-label", *chosen]) == code
    message = (
        f"labels.npy: --mask-label must occur in the mask of the selected part, got {chosen[0]}"
    )
    assert (message in capsys.readouterr().err) == (code == 2)
