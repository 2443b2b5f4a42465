"""Tables and `--plot` have the measures asked for: the numbers of scikit-image and SciPy."""

import re
from itertools import chain, pairwise, product
from pathlib import Path
from typing import Any

import imageio.v3 as imageio
import numpy as np
import pytest
import tifffile
from io_helpers import columns_of, command_line, rows_of
from level_sets import numbers_at
from matplotlib.figure import Figure
from oracles.components import betti_numbers
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_table

AT = np.array([50, 100, 127, 200])
EULER = "Euler characteristic"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that commands write."""
    found: list[Figure] = []
    write = "ecc_core._cli.outputs.write_figure"
    monkeypatch.setattr(write, lambda _, figure: found.append(figure))
    return found


@pytest.fixture
def draw(tmp_path: Path, figures: list[Figure]) -> Any:
    """Run a command and return the heights of the lines of each panel, by its label."""

    def lines(command: str, *arguments: object) -> dict[str, list[list[float]]]:
        thresholds = ["--thresholds", ",".join(map(str, AT))]
        outputs = ["--out", str(tmp_path / "out.csv"), "--plot", str(tmp_path / "out.png")]
        line = command_line(tmp_path, *arguments, *thresholds, *outputs)
        assert main([command, *line]) == 0
        panels = figures[-1].axes
        assert [ax.get_xlabel() for ax in panels] == [""] * (len(panels) - 1) + ["threshold"]
        found = {}
        for ax in panels:
            steps = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
            places = [line.get_xdata().tolist() for line in steps]
            assert places == [AT.tolist()] * len(steps)
            found[ax.get_ylabel()] = [line.get_ydata().tolist() for line in steps]
        return found

    return lines


def images(*shape: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 256, (2, *shape), np.uint8))


def saved(folder: Path, arrays: list[np.ndarray]) -> list[Path]:
    paths = [folder / f"{name}.npy" for name in "ab"]
    for path, array in zip(paths, arrays, strict=False):
        np.save(path, array)
    return paths[: len(arrays)]


def euler(image: np.ndarray) -> list[float]:
    return numbers_at(image, AT)


def betti(image: np.ndarray) -> list[list[float]]:
    numbers = [betti_numbers(image <= t, image.ndim) for t in AT]
    return np.transpose(numbers).tolist()


def points(image: np.ndarray) -> list[float]:
    return [np.count_nonzero(image <= t) for t in AT]


def faces(image: np.ndarray, at: Any = AT) -> list[float]:
    """Numbers of sides of pixels, or of voxels, at which the sets end."""
    sets = [np.pad(image <= t, 1) for t in at]

    def count(one: np.ndarray) -> int:
        changes = [np.diff(one, axis=axis) for axis in range(one.ndim)]
        return sum(map(np.count_nonzero, changes))

    return [count(one) for one in sets]


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
@pytest.mark.parametrize("shape", [(9, 11), (5, 6, 7)])
def test_quantities(draw, command, shape):
    image = images(*shape)[0]
    assert draw(command, image) == {EULER: [euler(image)]}
    numbers = draw(command, image, "--betti")
    assert list(numbers) == ["$b_0$", "$b_1$", "$b_2$"][: len(shape)]
    assert list(numbers.values()) == [[found] for found in betti(image)]
    found = draw(command, image, "--minkowski", "exact")
    names = ["area", "perimeter"] if len(shape) == 2 else ["volume", "surface", "mean breadth"]
    assert list(found) == [*names, EULER]
    assert found[names[0]] == [points(image)]
    assert found[names[1]] == [faces(image)]
    assert found[EULER] == [euler(image)]
    both = draw(command, image, "--betti", "--minkowski", "exact")
    assert list(both.items()) == [*numbers.items(), *found.items()]


@pytest.mark.parametrize("command", ["curve", "batch"])
def test_several_images(tmp_path, draw, figures, command):
    arrays = images(9, 11)
    found = draw(command, *saved(tmp_path, arrays), "--betti")
    known = [betti(image) for image in arrays]
    assert list(found.values()) == [[numbers[k] for numbers in known] for k in range(len(found))]
    assert [text.get_text() for text in figures[-1].legends[0].get_texts()] == ["a.npy", "b.npy"]
    (tmp_path / "other").mkdir()
    same = [*saved(tmp_path, arrays[:1]), *saved(tmp_path / "other", arrays[:1])]
    draw(command, *same)
    texts = [text.get_text() for text in figures[-1].legends[0].get_texts()]
    assert texts == [str(path) for path in same]
    arrays[1] = arrays[1].reshape(1, 9, 11)
    found = draw(command, *saved(tmp_path, arrays), "--minkowski", "exact")
    assert list(found) == ["area", "perimeter", "volume", "surface", "mean breadth", EULER]
    assert found["area"] == [points(arrays[0])]
    assert found["volume"] == [points(arrays[1])]
    assert found[EULER] == [euler(image.reshape(9, 11)) for image in arrays]


@pytest.mark.parametrize(
    ("command", "option"), [*product(["curve", "stack"], ["", "--minkowski"]), ("curve", "--betti")]
)
def test_labels(draw, figures, command, option):
    """The numbers of a region are those of an image whose other points never enter."""
    image = images(9, 11)[0]
    labels = np.repeat([1, 1, 7], 3)[:, None] * np.ones(11, np.uint8)
    options = [option, "exact"] if option == "--minkowski" else [option]
    found = draw(command, image, *filter(None, options), "--labels", labels.astype(np.uint8))
    alone = [np.where(labels == k, image, 255) for k in (1, 7)]
    components, holes = zip(*map(betti, alone), strict=True)
    expected = {
        "": {EULER: map(euler, alone)},
        "--betti": {"$b_0$": components, "$b_1$": holes},
        "--minkowski": {
            "area": map(points, alone),
            "perimeter": map(faces, alone),
            EULER: map(euler, alone),
        },
    }[option]
    assert found == {name: list(numbers) for name, numbers in expected.items()}
    texts = [text.get_text() for text in figures[-1].legends[0].get_texts()]
    assert texts == ["label 1", "label 7"]


def test_channels_of_a_stack(draw, figures):
    channels = images(9, 11)
    found = draw("stack", np.stack(channels), "--axes", "CYX", "--betti")
    known = [betti(image) for image in channels]
    assert list(found.values()) == [[numbers[k] for numbers in known] for k in range(len(found))]
    assert [text.get_text() for text in figures[-1].legends[0].get_texts()] == ["C 0", "C 1"]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    image, volume = (rng.integers(0, 256, shape, np.uint8) for shape in ((12, 9), (5, 6, 7)))
    paths = [tmp_path / "image.png", tmp_path / "volume.tif"]
    imageio.imwrite(paths[0], image)
    tifffile.imwrite(paths[1], volume, metadata={"axes": "ZYX"})
    return list(zip(map(str, paths), (image, volume), strict=True))


LEVELS = [60, 120, 180]
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
    out = tmp_path / "t.csv"
    at = ",".join(map(str, LEVELS))
    inputs = [name for name, _ in files]
    assert main([command, *inputs, *flags, "--thresholds", at, "--out", str(out)]) == 0
    rows = rows_of(out)
    names = ["euler_number", *measures]
    wide = {name: [f"{name} {t}".removeprefix("euler_number ") for t in LEVELS] for name in names}
    if command == "curve":
        assert list(rows[0]) == ["input", "threshold", *names, *facts]
    else:
        assert list(rows[0]) == ["input", *facts, *chain(*wide.values())]
    for path, image in files:
        own = [row for row in rows if row["input"] == path]
        if measures is BETTI:
            curves = ecc.betti_curves(image, LEVELS, connectivity=1)
            missing = 0
            known = dict(zip(BETTI, curves.values, strict=False))
        else:
            curves = ecc.minkowski_curves(image, LEVELS, boundary="half-open", spacing=2)
            missing = np.nan
            known = dict(zip(curves.measures, curves.values, strict=True))
        known["euler_number"] = curves.euler
        for name in names:
            places = product(own, [name] if command == "curve" else wide[name])
            numbers = [float(row[key]) for row, key in places]
            expected = known.get(name, np.full(len(LEVELS), missing))
            np.testing.assert_array_equal(numbers, expected)


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
@pytest.mark.parametrize("suffix", [".csv", ".json", ".parquet"])
@pytest.mark.parametrize(
    ("value", "expected"), [([], "exact"), (["exact"], "exact"), (["crofton-4"], "crofton-4")]
)
def test_the_estimator_is_named(files, capsys, tmp_path, command, suffix, value, expected):
    name, image = files[0]
    out = tmp_path / f"table{suffix}"
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
    assert ([perimeter] == faces(image, [99])) == (expected == "exact")


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
    # The volume is the porosity.
    np.testing.assert_allclose(found.volume[0], [x.mean() for x in sets])
    size = image.size / 8
    np.testing.assert_allclose(found.values[0, -1], [euler_number(x) / size for x in sets])
    assert found.density
    assert found.measure_units == ("", "millimeter^-1", "millimeter^-2", "millimeter^-3")
    figure = found.plot()
    labels = [ax.get_ylabel() for ax in figure.axes]
    assert labels[1:] == [
        "surface\ndensity\n(mm\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT ONE})",
        "mean breadth\ndensity\n(mm\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT TWO})",
        "Euler characteristic\ndensity\n(mm\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT THREE})",
    ]
    figure.canvas.draw()
    drawn = [ax.yaxis.label.get_window_extent() for ax in figure.axes]
    assert all(upper.y0 > lower.y1 for upper, lower in pairwise(drawn))
    euler = read_table(path, "euler").curves
    np.testing.assert_array_equal(euler.values, found.values[:, -1])
    assert euler.density
    assert main(given) == 2
    assert main([*given, "--minkowski", "exact", "--labels", "x"]) == 2
