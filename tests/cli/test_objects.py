"""The command `ecc objects`, and `ecc curve --persistence`."""

import numpy as np
import pytest
import tifffile
from io_helpers import columns, columns_of
from scipy import ndimage
from topology_helpers import alive, intervals

IMAGE = np.random.default_rng(0).integers(0, 100, (3, 24, 31)).astype(np.uint8)
VOLUME = ndimage.gaussian_filter(IMAGE.astype(np.float32), 1)


def lifetimes(image, least, sign=1):
    """Intervals of the components of persistence `least`, the oldest first."""
    found = intervals(sign * image.astype(np.float64), image.ndim)[0]
    return sign * found[found[:, 1] - found[:, 0] >= least]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("image", "least"), [(IMAGE[0], 40), (VOLUME, 9.5)], ids=["2-D", "3-D"])
def test_labels_and_table(tmp_path, say, image, least, superlevel):
    out, table, plot = (tmp_path / end for end in ("l.tif", "t.csv", "d.png"))
    options = ["--persistence", least, *(["--superlevel"] if superlevel else [])]
    say("objects", image, *options, "--out", out, "--table", table, "--plot", plot)
    labels, rows = tifffile.imread(out), columns(table)
    expected = lifetimes(image, least, -1 if superlevel else 1)
    found = np.stack([rows["birth"], rows["death"]], axis=1)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), rtol=1e-7)
    np.testing.assert_array_equal(rows["persistence"], np.abs(found[:, 1] - found[:, 0]))
    assert labels.shape == image.shape
    cubes = np.ones((3,) * image.ndim)
    axes = ("z", "y", "x")[-image.ndim :]
    for i, label in enumerate(rows["label"]):
        inside = labels == label
        assert rows["points"][i] == inside.sum()
        assert ndimage.label(inside, cubes)[1] == 1
        extreme = tuple(int(rows[axis][i]) for axis in axes)
        assert labels[extreme] == label
        assert rows["birth"][i] == pytest.approx(image[extreme])
    assert labels.max() == len(rows["label"])
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_part_threshold_mask_and_printed_table(tmp_path, say):
    part = VOLUME[1:3, 4:20]
    shown, table = part > 45, tmp_path / "t.json"
    command = ["objects", VOLUME, "--persistence", "5"]
    flags = ["--mask", shown, "--roi", "1:3,4:20,:", "--threshold", "52", "--table", table]
    say(*command, *flags)
    found = columns_of(table)
    assert min(found["z"]) >= 1
    assert min(found["y"]) >= 4
    expected = lifetimes(np.where(shown, part, np.float32(1e9)), 5)
    assert len(found["label"]) == len(expected)
    assert sum(found["points"]) <= (shown & (part <= 52)).sum()
    assert say(*command).startswith("label,birth,death,persistence,merged_into,points,z")


@pytest.mark.parametrize(
    ("boundary", "points"), [("closed", [1, 2, 2, 4, 30]), ("periodic", [9, 30])]
)
def test_objects_over_opposite_sides(tmp_path, say, boundary, points):
    """A ring around the torus, and a square that four corners make up."""
    image = np.full((20, 30), 9, np.uint8)
    image[10] = 0
    image[np.ix_([0, 1, -1], [0, -2, -1])] = 0
    flags = ["--persistence", "5", "--threshold", "0", "--boundary", boundary]
    say("objects", image, *flags, "--table", tmp_path / "t.csv")
    assert sorted(columns(tmp_path / "t.csv")["points"]) == points


def test_filtered_curves(tmp_path, say):
    """Of the image, and of regions."""
    labels = np.repeat([1, 0, 5], [10, 1, 20]) * np.ones((24, 1), np.uint8)
    options = ["--betti", "--persistence", "40", "--thresholds", "10,50,90"]
    regions = [np.where(labels == label, IMAGE[0], np.float32(1e9)) for label in (1, 5)]
    for flags, images in (([], IMAGE[:1]), (["--labels", labels], regions)):
        say("curve", IMAGE[0], *options, *flags, "--out", tmp_path / "c.csv")
        expected = [alive([lifetimes(image, 40)], (10, 50, 90))[0] for image in images]
        np.testing.assert_array_equal(columns(tmp_path / "c.csv")["b0"], np.concatenate(expected))
