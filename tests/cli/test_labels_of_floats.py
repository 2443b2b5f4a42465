"""Label images of floats, as ImageJ plugins write them: whole numbers are labels."""

import numpy as np
import pytest
import tifffile
from io_helpers import noise, rows_of
from level_sets import numbers_at

from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.features import RegionCurvesTransformer
from ecc_core.io import read_result

IMAGE = noise(12, 10)
LABELS = noise(12, 10, seed=1) // 90


@pytest.fixture
def paths(tmp_path):
    """An image, its labels as float32, and the same labels with a fraction."""
    image, labels, wrong = (tmp_path / name for name in ("a.tif", "labels.tif", "wrong.tif"))
    tifffile.imwrite(image, IMAGE)
    tifffile.imwrite(labels, LABELS.astype(np.float32))
    tifffile.imwrite(wrong, np.where(LABELS == 2, np.float32(2.5), LABELS.astype(np.float32)))
    return str(image), str(labels), str(wrong)


def curves(at):
    """Euler numbers of the regions, by scikit-image."""
    regions = [np.where(k == LABELS, IMAGE, 256.0) for k in (1, 2)]
    return [numbers_at(region, at) for region in regions]


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
def test_whole_numbers_are_labels(tmp_path, capsys, paths, command):
    """A message says that they are taken as labels, and the column of labels has integers."""
    image, labels, wrong = paths
    out = tmp_path / "out.csv"
    flags = ["--thresholds", "90,200", "--out", str(out)]
    assert main([command, image, "--labels", labels, *flags]) == 0
    assert capsys.readouterr().err.count("labels.tif: whole numbers of float32 are taken as") == 1
    rows = rows_of(out)
    assert {row["label"] for row in rows} == {"1", "2"}
    if command == "batch":
        found = [[int(row["90"]), int(row["200"])] for row in rows]
    else:
        numbers = [int(row["euler_number"]) for row in rows]
        found = [numbers[:2], numbers[2:]]
    assert found == curves([90, 200])
    assert main([command, image, "--labels", wrong, *flags]) != 0
    error = capsys.readouterr().err
    assert "wrong.tif: --labels must be whole numbers, got 2.5 among float32 values" in error


def test_several_files_are_said_once(tmp_path, capsys, paths):
    """Images are read for a common range before, and labels have 16 bits."""
    inputs = []
    pattern = str(tmp_path / "{name}_half.npy")
    for k in range(3):
        inputs.append(str(tmp_path / f"{k}.npy"))
        np.save(inputs[-1], IMAGE)
        np.save(tmp_path / f"{k}_half.npy", LABELS.astype(np.float16))
    out = str(tmp_path / "out.csv")
    assert main(["curve", *inputs, "--labels", pattern, "--thresholds", "3", "--out", out]) == 0
    error = capsys.readouterr().err
    assert error.count("whole numbers of float16 are taken as labels") == 1
    assert "0_half.npy" in error
    assert "overflow" not in error


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**63])
def test_values_that_are_no_labels(tmp_path, capsys, paths, value):
    labels = LABELS.astype(np.float32)
    labels[3, 4] = value
    np.save(tmp_path / "labels.npy", labels)
    assert main(["curve", paths[0], "--labels", str(tmp_path / "labels.npy")]) == 2
    assert "labels.npy: --labels must be whole numbers, got" in capsys.readouterr().err


def test_transforms_of_labels(tmp_path, capsys, paths):
    """They equal the transforms of the same labels stored as integers."""
    _, labels, wrong = paths
    tifffile.imwrite(tmp_path / "integers.tif", LABELS)
    out = tmp_path / "out.npz"
    flags = ["--labels", "--directions", "3", "--out", str(out)]
    assert main(["transform", str(labels), *flags]) == 0
    found = read_result(out).values
    assert main(["transform", str(tmp_path / "integers.tif"), *flags]) == 0
    np.testing.assert_array_equal(found, read_result(out).values)
    assert "labels.tif: whole numbers of float32 are taken as labels" in capsys.readouterr().err
    assert main(["transform", wrong, "--labels", "--out", str(out)]) == 2
    assert "wrong.tif: --labels must be whole numbers, got 2.5" in capsys.readouterr().err


def test_transformers_take_them(paths):
    image, labels, wrong = paths
    transformer = RegionCurvesTransformer([90, 200])
    found = transformer.fit_transform([(image, labels)])
    np.testing.assert_array_equal(found, [np.ravel(curves([90, 200]))])
    with pytest.raises(
        InputFileError, match=r"wrong\.tif: `labels` must be whole numbers, got 2\.5"
    ):
        transformer.fit([(image, wrong)])
