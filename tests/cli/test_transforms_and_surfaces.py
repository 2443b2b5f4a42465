"""The commands `ecc transform` and `ecc surface` write what the functions return."""

from dataclasses import replace

import numpy as np
import pytest
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result

IMAGE = np.random.default_rng(0).integers(0, 4, (14, 17), dtype=np.uint8)
SHAPE = IMAGE != 0
FIRST, SECOND = np.random.default_rng(0).integers(0, 9, (2, 7, 11), dtype=np.uint8)
ARRAYS = {"image": IMAGE, "shape": SHAPE, "first": FIRST, "second": SECOND / 10}
ARRAYS["both"] = np.stack([FIRST, SECOND])


@pytest.fixture
def written(tmp_path):
    """Run a line on arrays in files, and return the result that it writes."""

    def result(line, suffix=".npz", **arrays):
        for name, array in {**ARRAYS, **arrays}.items():
            np.save(tmp_path / f"{name}.npy", array)
        paths = {path.stem: path for path in tmp_path.glob("*.npy")}
        out = tmp_path / f"out{suffix}"
        assert main([*line.format(**paths, folder=tmp_path).split(), "--out", str(out)]) == 0
        return read_result(out)

    return result


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".json"])
def test_files(written, tmp_path, suffix):
    found = written("transform {shape} --directions 4", suffix)
    assert found == replace(ecc.euler_transform(SHAPE, 4), axes="YX")
    found = written("surface {first} {second} --plot {folder}/s.png", suffix)
    assert found == ecc.euler_surface(FIRST, SECOND / 10)
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("value", [1, 3, 255])
def test_shape(written, value):
    found = written("transform {shape}", shape=SHAPE * np.uint8(value))
    assert found == replace(ecc.euler_transform(SHAPE), axes="YX")
    np.testing.assert_array_equal(found.values[:, -1], euler_number(SHAPE, 2))


@pytest.mark.parametrize("threshold", ["2", "1.5", "0", "4", "300", "-1"])
def test_threshold(written, threshold):
    """The shape is where the image is at least the threshold."""
    found = written(f"transform {{image}} --threshold={threshold} --range -99,99")
    shape = IMAGE.astype(float) >= float(threshold)
    assert found == replace(ecc.euler_transform(shape, range=(-99, 99)), axes="YX")
    np.testing.assert_array_equal(found.values[:, -1], euler_number(shape, 2))


@pytest.mark.parametrize(
    ("image", "number"),
    [
        (np.array([[2**53, 2**53 + 1, 0], [1, 2**53 + 1, 2**53 + 2]]), 2**53 + 1),
        (np.array([[0.1]], "f4"), 0.1),
    ],
    ids=["int64", "float32"],
)
def test_thresholds_are_not_rounded(written, image, number):
    found = written(f"transform {{image}} --threshold {number} --range -9,9", image=image)
    # Python compares exactly.
    shape = [[value >= number for value in row] for row in image.tolist()]
    np.testing.assert_array_equal(found.values[:, -1], euler_number(np.array(shape), 2))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "{shape} --directions 7 --heights 9 --range -3,4 --connectivity 1 --spacing 0.5,2",
            lambda: ecc.euler_transform(
                SHAPE, 7, 9, range=(-3, 4), connectivity=1, spacing=(0.5, 2)
            ),
        ),
        (
            "{image} --weighted --spacing 2",
            lambda: ecc.euler_transform(IMAGE, weighted=True, spacing=2),
        ),
        ("{image} --labels --directions 5", lambda: ecc.region_transforms(IMAGE, 5)),
        (
            "{image} --labels --normalize radius --heights 11",
            lambda: ecc.region_transforms(IMAGE, heights=11, normalize="radius"),
        ),
    ],
    ids=["shape", "weights", "labels", "normalized"],
)
def test_options_of_transforms(written, line, expected):
    assert written(f"transform {line}") == replace(expected(), axes="YX")


def test_options_of_surfaces(written):
    levels = "--thresholds-first 1,4 --thresholds-second 5 --range-second -1,1"
    found = written(f"surface {{first}} {{second}} {levels} --connectivity 1 --superlevel second")
    options = {"range_second": (-1, 1), "connectivity": 1, "superlevel": (False, True)}
    assert found == ecc.euler_surface(FIRST, SECOND / 10, [1, 4], 5, **options)


def test_channels_of_one_file(written):
    found = written("surface {both} {both} --axes CYX --channel 0 --second-channel 1")
    assert found == ecc.euler_surface(FIRST, SECOND)


@pytest.mark.parametrize("options", [[], ["--labels"]])
def test_plot(tmp_path, options):
    path = tmp_path / "image.npy"
    plot = tmp_path / "plot.svg"
    np.save(path, IMAGE if options else SHAPE)
    assert main(["transform", str(path), "--plot", str(plot), "--heights", "9", *options]) == 0
    text = plot.read_text()
    assert text.startswith("<?xml")
    names = ["label 1", "label 2", "label 3"] if options else ["image.npy"]
    assert [name for name in names if f"<!-- {name} -->" not in text] == []
    assert list(tmp_path.glob("*.npz")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("transform nan.npy", "nan.npy: a shape must have no NaN"),
        ("transform nan.npy --weighted", "nan.npy: the image must be finite where it holds"),
        (
            "transform nan.npy --labels",
            "nan.npy: --labels must be whole numbers, got nan among float64",
        ),
        ("transform image.npy nan.npy", "nan.npy: a transform is of one image, got more"),
        ("transform none.npy", "none.npy"),
        ("surface image.npy nan.npy", "image.npy"),  # An error names both images.
        ("surface image.npy nan.npy", "nan.npy: "),
    ],
)
def test_files_that_cannot_be_used(tmp_path, refuse, arguments, message):
    np.save(tmp_path / "image.npy", IMAGE / 1.0)
    np.save(tmp_path / "nan.npy", np.where(SHAPE, IMAGE, np.nan))
    arguments = [tmp_path / one if one.endswith(".npy") else one for one in arguments.split()]
    assert message in refuse(*arguments, "--out", tmp_path / "o.npz")
    assert not (tmp_path / "o.npz").exists()


def test_an_input_is_not_overwritten(tmp_path, refuse):
    bare = tmp_path / "bare.npz"
    np.savez(bare, IMAGE)
    assert "the output would overwrite the input" in refuse("transform", bare, "--out", bare)
