"""The command `ecc transform` writes what the functions return."""

from dataclasses import replace

import numpy as np
import pytest
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result

IMAGE = np.random.default_rng(0).integers(0, 4, (14, 17), dtype=np.uint8)
SHAPE = IMAGE != 0


@pytest.fixture
def transform(tmp_path):
    """Save an array and return what the command writes of it."""

    def result(array, *arguments, suffix=".npz"):
        path, out = tmp_path / "image.npy", tmp_path / f"out{suffix}"
        np.save(path, array)
        assert main(["transform", str(path), "--out", str(out), *arguments]) == 0
        return read_result(out)

    return result


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".json"])
def test_files(transform, suffix):
    found = transform(SHAPE, "--directions", "4", suffix=suffix)
    assert found == replace(ecc.euler_transform(SHAPE, 4), axes="YX")


@pytest.mark.parametrize("value", [1, 3, 255])
def test_shape(transform, value):
    found = transform(SHAPE * np.uint8(value))
    assert found == replace(ecc.euler_transform(SHAPE), axes="YX")
    np.testing.assert_array_equal(found.values[:, -1], euler_number(SHAPE, 2))


@pytest.mark.parametrize("threshold", ["2", "1.5", "0", "4", "300", "-1"])
def test_threshold(transform, threshold):
    """The shape is where the image is at least the threshold."""
    found = transform(IMAGE, f"--threshold={threshold}", "--range", "-99,99")
    shape = IMAGE.astype(float) >= float(threshold)
    assert found == replace(ecc.euler_transform(shape, range=(-99, 99)), axes="YX")
    np.testing.assert_array_equal(found.values[:, -1], euler_number(shape, 2))


def test_thresholds_are_not_rounded(transform):
    image = np.array([[2**53, 2**53 + 1, 0], [1, 2**53 + 1, 2**53 + 2]])
    for array, threshold in ((image, str(2**53 + 1)), (np.array([[0.1]], "f4"), "0.1")):
        found = transform(array, "--threshold", threshold, "--range", "-9,9")
        shape = [[v >= (int if v > 1 else float)(threshold) for v in row] for row in array.tolist()]
        np.testing.assert_array_equal(found.values[:, -1], euler_number(np.array(shape), 2))


@pytest.mark.parametrize(
    ("array", "flags", "expected"),
    [
        (
            SHAPE,
            "--directions 7 --heights 9 --range -3,4 --connectivity 1 --spacing 0.5,2",
            ecc.euler_transform(SHAPE, 7, 9, range=(-3, 4), connectivity=1, spacing=(0.5, 2)),
        ),
        (IMAGE, "--weighted --spacing 2", ecc.euler_transform(IMAGE, weighted=True, spacing=2)),
        (IMAGE, "--labels --directions 5", ecc.region_transforms(IMAGE, 5)),
        (
            IMAGE,
            "--labels --normalize radius --heights 11",
            ecc.region_transforms(IMAGE, heights=11, normalize="radius"),
        ),
    ],
    ids=["shape", "weights", "labels", "normalized"],
)
def test_options(transform, array, flags, expected):
    assert transform(array, *flags.split()) == replace(expected, axes="YX")


@pytest.mark.parametrize("options", [[], ["--labels"]])
def test_plot(tmp_path, options):
    path, plot = tmp_path / "image.npy", tmp_path / "plot.svg"
    np.save(path, IMAGE if options else SHAPE)
    assert main(["transform", str(path), "--plot", str(plot), "--heights", "9", *options]) == 0
    text = plot.read_text()
    assert text.startswith("<?xml")
    for name in ["label 1", "label 2", "label 3"] if options else ["image.npy"]:
        assert f"<!-- {name} -->" in text
    assert list(tmp_path.glob("*.npz")) == []


def test_files_that_cannot_be_used(tmp_path, refuse):
    path, nan, bare = (tmp_path / name for name in ("image.npy", "nan.npy", "bare.npz"))
    np.save(path, IMAGE)
    np.save(nan, np.array([[1.0, np.nan]]))
    for arguments, message in (
        ([nan], "nan.npy: a shape must have no NaN"),
        ([nan, "--weighted"], "nan.npy: the image must be finite where it holds weights, got"),
        ([nan, "--labels"], "nan.npy: --labels must have an integer dtype, got float64"),
        ([path, nan], "nan.npy: a transform is of one image, got more"),
        ([tmp_path / "none.npy"], "none.npy"),
    ):
        assert message in refuse("transform", *arguments, "--out", tmp_path / "o.npz")
    np.savez(bare, IMAGE)
    assert "the output would overwrite the input" in refuse("transform", bare, "--out", bare)
