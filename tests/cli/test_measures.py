"""Columns of Betti numbers and Minkowski functionals beside the Euler characteristic."""

import json
import re
from itertools import pairwise

import imageio.v3 as imageio
import numpy as np
import pyarrow.parquet as parquet
import pytest
import tifffile
from io_helpers import rows_of
from pyarrow.csv import read_csv
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.features import distance_matrix
from ecc_core.io import read_table


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    image, volume = (rng.integers(0, 256, shape, np.uint8) for shape in ((12, 9), (5, 6, 7)))
    paths = [tmp_path / "image.png", tmp_path / "volume.tif"]
    imageio.imwrite(paths[0], image)
    tifffile.imwrite(paths[1], volume, metadata={"axes": "ZYX"})
    return list(zip(map(str, paths), (image, volume), strict=True))


def printed(capsys, *arguments):
    assert main(["curve", *arguments, "--thresholds", "9"]) == 0
    return rows_of(capsys.readouterr().out)


BETTI = ["b0", "b1", "b2"]
FUNCTIONALS = ["area", "perimeter", "volume", "surface", "mean_breadth"]


@pytest.mark.parametrize(
    ("flags", "measures", "facts"),
    [
        (["--betti", "--connectivity", "1"], BETTI, ["connectivity"]),
        (
            ["--minkowski", "--boundary", "half-open", "--spacing", "2"],
            FUNCTIONALS,
            ["boundary", "estimator", "unit"],
        ),
    ],
)
def test_columns(files, capsys, flags, measures, facts):
    rows = printed(capsys, *(name for name, _ in files), *flags)
    assert list(rows[0]) == ["input", "threshold", "euler_number", *measures, *facts]
    every = [image for _, image in files]
    options = {"range": (min(map(np.min, every)), max(map(np.max, every)))}
    for name, image in files:
        found = [row for row in rows if row["input"] == name]
        if measures is BETTI:
            curves = ecc.betti_curves(image, 9, connectivity=1, **options)
            missing, known = 0, dict(zip(BETTI, curves.values, strict=False))
        else:
            options |= {"boundary": "half-open", "spacing": 2}
            curves = ecc.minkowski_curves(image, 9, **options)
            missing, known = np.nan, dict(zip(curves.measures, curves.values, strict=True))
        assert [int(row["euler_number"]) for row in found] == curves.euler.tolist()
        for measure in measures:
            numbers = [float(row[measure]) for row in found]
            np.testing.assert_array_equal(numbers, known.get(measure, np.full(9, missing)))


def test_labels_and_estimators(files, capsys, tmp_path):
    name, image = files[0]
    labels = np.repeat([1, 3], 6)[:, None] * np.ones(9, np.uint8)
    imageio.imwrite(tmp_path / "labels.png", labels.astype(np.uint8))
    rows = printed(
        capsys, name, "--minkowski", "crofton-4", "--labels", str(tmp_path / "labels.png")
    )
    regions = ecc.region_minkowski(image, labels.astype(np.uint8), 9, estimator="crofton-4")
    for label in (1, 3):
        numbers = [float(row["perimeter"]) for row in rows if row["label"] == str(label)]
        np.testing.assert_array_equal(numbers, regions.select(label).perimeter)


def sides(binary):
    """The number of sides of pixels at which a set ends."""
    padded = np.pad(binary, 1)
    return sum(np.count_nonzero(np.diff(padded, axis=axis)) for axis in (0, 1))


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
def test_the_estimator_is_named(files, capsys, tmp_path, command, suffix):
    name, image = files[0]
    out = tmp_path / f"table{suffix}"
    for value, expected in ([], "exact"), (["exact"], "exact"), (["crofton-4"], "crofton-4"):
        options = ["--thresholds", "99.0", "--out", str(out), "--minkowski", *value]
        assert main([command, name, *options]) == 0
        printed, said = capsys.readouterr()
        assert printed == ""
        lines = [line for line in said.splitlines() if "--minkowski" in line]
        assert len(lines) == (not value)
        if lines:
            assert re.fullmatch("ecc: --minkowski exact: .*crofton-4.*crofton-13.*", lines[0])
        if suffix == ".json":
            columns = json.loads(out.read_text())["columns"]
        else:
            table = read_csv(out) if suffix == ".csv" else parquet.read_table(out)
            columns = table.to_pydict()
        assert columns["estimator"] == [expected]
        (perimeter,) = columns["perimeter 99.0" if command == "batch" else "perimeter"]
        assert (perimeter == sides(image <= 99)) == (expected == "exact")


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_densities(tmp_path, command, suffix):
    image = np.random.default_rng(3).integers(0, 9, (6, 8, 7), np.uint8)
    np.save(tmp_path / "a.npy", image)
    path = tmp_path / f"t{suffix}"
    options = ["--thresholds", "2,5", "--spacing", "0.5", "--unit", "mm", "--density"]
    given = [command, str(tmp_path / "a.npy"), *options, "--out", str(path)]
    assert main([*given, "--minkowski", "exact", "--plot", str(tmp_path / "a.svg")]) == 0
    found = read_table(path).curves
    sets = [image <= t for t in (2, 5)]
    np.testing.assert_allclose(found.volume[0], [x.mean() for x in sets])  # the porosity
    size = image.size / 8
    np.testing.assert_allclose(found.values[0, -1], [euler_number(x) / size for x in sets])
    assert found.density
    assert found.measure_units == ("", "millimeter^-1", "millimeter^-2", "millimeter^-3")
    figure = found.plot()
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels[1:] == [
        "surface\ndensity\n(millimeter^-1)",
        "mean breadth\ndensity\n(millimeter^-2)",
        "Euler characteristic\ndensity\n(millimeter^-3)",
    ]
    figure.canvas.draw()
    drawn = [ax.yaxis.label.get_window_extent() for ax in figure.axes]
    assert all(upper.y0 > lower.y1 for upper, lower in pairwise(drawn))
    euler = read_table(path, "euler").curves
    np.testing.assert_array_equal(euler.values, found.values[:, -1])
    with pytest.raises(ValueError, match="`density`"):
        distance_matrix(euler, ecc.euler_curve(image, [2, 5])._replace(values=euler.values))
    for more in ([], ["--minkowski", "exact", "--labels", "x"]):
        assert main([*given, *more]) == 2
