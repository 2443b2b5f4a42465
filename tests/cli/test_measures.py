"""Columns of Betti numbers and Minkowski functionals beside the Euler characteristic."""

import re
from itertools import chain, pairwise, product

import imageio.v3 as imageio
import numpy as np
import pytest
import tifffile
from io_helpers import columns_of, rows_of
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


AT = [60, 120, 180]
BETTI = ["b0", "b1", "b2"]
FUNCTIONALS = ["area", "perimeter", "volume", "surface", "mean_breadth"]


@pytest.mark.parametrize("command", ["curve", "batch"])
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
def test_columns(files, tmp_path, command, flags, measures, facts):
    """What an image of two axes does not have is 0 or NaN."""
    out, at = tmp_path / "t.csv", ",".join(map(str, AT))
    inputs = [name for name, _ in files]
    assert main([command, *inputs, *flags, "--thresholds", at, "--out", str(out)]) == 0
    rows, names = rows_of(out), ["euler_number", *measures]
    wide = {name: [f"{name} {t}".removeprefix("euler_number ") for t in AT] for name in names}
    if command == "curve":
        assert list(rows[0]) == ["input", "threshold", *names, *facts]
    else:
        assert list(rows[0]) == ["input", *facts, *chain(*wide.values())]
    for path, image in files:
        own = [row for row in rows if row["input"] == path]
        if measures is BETTI:
            curves, missing = ecc.betti_curves(image, AT, connectivity=1), 0
            known = dict(zip(BETTI, curves.values, strict=False))
        else:
            curves = ecc.minkowski_curves(image, AT, boundary="half-open", spacing=2)
            missing, known = np.nan, dict(zip(curves.measures, curves.values, strict=True))
        known["euler_number"] = curves.euler
        for name in names:
            places = product(own, [name] if command == "curve" else wide[name])
            numbers = [float(row[key]) for row, key in places]
            expected = known.get(name, np.full(len(AT), missing))
            np.testing.assert_array_equal(numbers, expected)


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
        columns = columns_of(out)
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
