"""The command `ecc objects`, and `ecc curve --persistence`."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
from io_helpers import rows_of
from scipy import ndimage
from topology_helpers import alive, intervals

from ecc_core.cli import main

IMAGE = np.random.default_rng(0).integers(0, 100, (3, 24, 31)).astype(np.uint8)
VOLUME = ndimage.gaussian_filter(IMAGE.astype(np.float32), 1)


@pytest.fixture
def paths(tmp_path):
    np.save(tmp_path / "plane.npy", IMAGE[0])
    np.save(tmp_path / "volume.npy", VOLUME)
    np.save(tmp_path / "mask.npy", VOLUME[1:3, 4:20] > 45)
    return {name: str(tmp_path / f"{name}.npy") for name in ("plane", "volume", "mask")}


def lifetimes(image, least, sign=1):
    """Intervals of the components of persistence `least`, the oldest first."""
    found = intervals(sign * image.astype(np.float64), image.ndim)[0]
    return sign * found[found[:, 1] - found[:, 0] >= least]


def read(path):
    rows = rows_of(Path(path))
    names = [name for name in rows[0] if name != "input"]
    return {name: np.array([float(row[name]) for row in rows]) for name in names}


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("name", ["plane", "volume"])
def test_labels_and_table(paths, tmp_path, name, superlevel):
    image, least = np.load(paths[name]), 40 if name == "plane" else 9.5
    out, table, plot = (str(tmp_path / end) for end in ("l.tif", "t.csv", "d.png"))
    options = ["--superlevel"] if superlevel else []
    command = ["objects", paths[name], "--persistence", str(least), *options]
    assert main([*command, "--out", out, "--table", table, "--plot", plot]) == 0
    labels, rows = tifffile.imread(out), read(table)
    expected = lifetimes(image, least, -1 if superlevel else 1)
    found = np.stack([rows["birth"], rows["death"]], axis=1)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), rtol=1e-7)
    np.testing.assert_array_equal(rows["persistence"], np.abs(found[:, 1] - found[:, 0]))
    assert labels.shape == image.shape
    cubes = np.ones((3,) * image.ndim)
    axes = ("z", "y", "x")[-image.ndim :]
    for i, label in enumerate(rows["label"].astype(int)):
        inside = labels == label
        assert rows["points"][i] == inside.sum()
        assert ndimage.label(inside, cubes)[1] == 1
        extreme = tuple(int(rows[axis][i]) for axis in axes)
        assert labels[extreme] == label
        assert rows["birth"][i] == pytest.approx(image[extreme])
    assert labels.max() == len(rows["label"])
    assert Path(plot).read_bytes().startswith(b"\x89PNG")


def test_part_threshold_mask_and_printed_table(paths, tmp_path, say):
    table = str(tmp_path / "t.json")
    command = ["objects", paths["volume"], "--persistence", "5", "--mask", paths["mask"]]
    assert main([*command, "--roi", "1:3,4:20,:", "--threshold", "52", "--table", table]) == 0
    columns = json.loads(Path(table).read_text())["columns"]
    assert min(columns["z"]) >= 1
    assert min(columns["y"]) >= 4
    part, shown = VOLUME[1:3, 4:20], VOLUME[1:3, 4:20] > 45
    expected = lifetimes(np.where(shown, part, np.float32(1e9)), 5)
    assert len(columns["label"]) == len(expected)
    assert sum(columns["points"]) <= (shown & (part <= 52)).sum()
    assert say(*command[:4]).startswith("label,birth,death,persistence,merged_into,points,z")


def test_objects_over_opposite_sides(tmp_path):
    """A ring around the torus, and a square that four corners make up."""
    image = np.full((20, 30), 9, np.uint8)
    image[10] = 0
    image[np.ix_([0, 1, -1], [0, -2, -1])] = 0
    np.save(tmp_path / "torus.npy", image)
    command = ["objects", str(tmp_path / "torus.npy"), "--persistence", "5", "--threshold", "0"]
    for boundary, points in (("closed", [4, 2, 30, 2, 1]), ("periodic", [9, 30])):
        table = str(tmp_path / "t.csv")
        assert main([*command, "--boundary", boundary, "--table", table]) == 0
        assert sorted(read(table)["points"]) == sorted(points)


def test_filtered_curves(paths, tmp_path):
    """Of the image, and of regions."""
    labels = np.repeat([1, 0, 5], [10, 1, 20]) * np.ones((24, 1), np.uint8)
    np.save(tmp_path / "labels.npy", labels)
    out = str(tmp_path / "c.csv")
    options = ["--betti", "--persistence", "40", "--thresholds", "10,50,90", "--out", out]
    regions = [np.where(labels == label, IMAGE[0], np.float32(1e9)) for label in (1, 5)]
    for flags, images in (([], IMAGE[:1]), (["--labels", str(tmp_path / "labels.npy")], regions)):
        assert main(["curve", paths["plane"], *options, *flags]) == 0
        expected = [alive([lifetimes(image, 40)], (10, 50, 90))[0] for image in images]
        np.testing.assert_array_equal(read(out)["b0"], np.concatenate(expected))
