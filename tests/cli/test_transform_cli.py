"""The command `ecc transform` writes what the functions return."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result

IMAGE = np.random.default_rng(0).integers(0, 4, (14, 17), dtype=np.uint8)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "image.npy"
    np.save(path, IMAGE)
    return path


def run(path, *arguments):
    out = path.with_name("out.npz")
    code = main(["transform", str(path), "--out", str(out), *arguments])
    assert code == 0
    with np.load(out, allow_pickle=False) as file:
        return dict(file)


def check(found, expected):
    assert list(found) == list(expected._fields)
    for name, values in expected._asdict().items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


def saved(path, array):
    """A path with another array."""
    other = path.with_name("other.npy")
    np.save(other, array)
    return other


@pytest.mark.parametrize("value", [1, 3, 255])
def test_shape(path, value):
    expected = ecc.euler_transform(IMAGE != 0)
    other = saved(path, (IMAGE != 0) * np.uint8(value))
    check(run(other), expected)
    assert read_result(path.with_name("out.npz")) == replace(expected, axes="YX")
    np.testing.assert_array_equal(expected.values[:, -1], euler_number(IMAGE != 0, 2))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".json"])
def test_tables(path, suffix):
    other, table = saved(path, IMAGE != 0), path.with_name("out" + suffix)
    assert main(["transform", str(other), "--directions", "4", "--out", str(table)]) == 0
    assert read_result(table) == replace(ecc.euler_transform(IMAGE != 0, 4), axes="YX")


@pytest.mark.parametrize("threshold", ["2", "1.5", "0", "4", "300", "-1"])
def test_threshold(path, threshold):
    """The shape is where the image is at least the threshold."""
    found = run(path, f"--threshold={threshold}", "--range", "-99,99")
    shape = IMAGE.astype(float) >= float(threshold)
    check(found, ecc.euler_transform(shape, range=(-99, 99)))
    np.testing.assert_array_equal(found["values"][:, -1], euler_number(shape, 2))


def test_thresholds_are_not_rounded(path):
    image = np.array([[2**53, 2**53 + 1, 0], [1, 2**53 + 1, 2**53 + 2]])
    for array, threshold in ((image, str(2**53 + 1)), (np.array([[0.1]], "f4"), "0.1")):
        found = run(saved(path, array), "--threshold", threshold, "--range", "-9,9")
        shape = [[v >= (int if v > 1 else float)(threshold) for v in row] for row in array.tolist()]
        np.testing.assert_array_equal(found["values"][:, -1], euler_number(np.array(shape), 2))


def test_options(path):
    found = run(
        saved(path, IMAGE > 0),
        *("--directions", "7", "--heights", "9", "--range", "-3,4", "--connectivity", "1"),
        *("--spacing", "0.5,2"),
    )
    expected = ecc.euler_transform(
        IMAGE != 0, 7, 9, range=(-3, 4), connectivity=1, spacing=(0.5, 2)
    )
    check(found, expected)


def test_weights_and_spacing(path):
    found = run(path, "--weighted", "--spacing", "2")
    check(found, ecc.euler_transform(IMAGE, weighted=True, spacing=2))


def test_labels(path):
    check(run(path, "--labels", "--directions", "5"), ecc.region_transforms(IMAGE, 5))
    found = run(path, "--labels", "--normalize", "radius", "--heights", "11")
    check(found, ecc.region_transforms(IMAGE, heights=11, normalize="radius"))


@pytest.mark.parametrize("options", [[], ["--labels"]])
def test_plot(path, options):
    plot = path.with_name("plot.svg")
    given = path if options else saved(path, IMAGE > 0)
    assert main(["transform", str(given), "--plot", str(plot), "--heights", "9", *options]) == 0
    text = plot.read_text()
    assert text.startswith("<?xml")
    names = ["label 1", "label 2", "label 3"] if options else ["other.npy"]
    for name in names:
        assert f"<!-- {name} -->" in text
    assert list(path.parent.glob("*.npz")) == []


def test_files_that_cannot_be_used(path, refuse):
    nan = path.with_name("nan.npy")
    np.save(nan, np.array([[1.0, np.nan]]))
    out = ["--out", str(path.with_name("o.npz"))]
    for arguments, message in (
        ([str(nan)], "nan.npy: a shape must have no NaN"),
        ([str(nan), "--weighted"], "nan.npy: the image must be finite where it holds weights, got"),
        ([str(nan), "--labels"], "nan.npy: --labels must have an integer dtype, got float64"),
        ([str(path), str(nan)], "nan.npy: a transform is of one image, got more"),
        ([str(path.with_name("none.npy"))], "none.npy"),
    ):
        assert message in refuse("transform", *arguments, *out)
    bare = path.with_name("bare.npz")
    np.savez(bare, IMAGE)
    assert "the output would overwrite the input" in refuse("transform", bare, "--out", bare)
