"""`--plot` draws what was asked for: the numbers of scikit-image and SciPy, and what they are."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from oracles.components import betti_numbers
from skimage.measure import euler_number

from ecc_core._cli import curve_table
from ecc_core.cli import main

AT = np.array([50, 100, 127, 200])
EULER = "Euler characteristic"
Lines = dict[str, list[list[float]]]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """The figures that commands write."""
    found: list[Figure] = []
    monkeypatch.setattr(curve_table, "write_figure", lambda _, figure: found.append(figure))
    return found


@pytest.fixture
def draw(tmp_path: Path, figures: list[Figure]) -> Any:
    """Run a command and return the heights of the lines of each panel, by its label."""

    def lines(command: str, *arguments: object) -> Lines:
        thresholds = ["--thresholds", ",".join(map(str, AT))]
        outputs = ["--out", str(tmp_path / "out.csv"), "--plot", str(tmp_path / "out.png")]
        assert main([command, *map(str, arguments), *thresholds, *outputs]) == 0
        panels = figures[-1].axes
        assert [ax.get_xlabel() for ax in panels] == [""] * (len(panels) - 1) + ["threshold"]
        found = {}
        for ax in panels:
            steps = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
            assert all(line.get_xdata().tolist() == AT.tolist() for line in steps)
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
    return [euler_number(image <= t, connectivity=image.ndim) for t in AT]


def betti(image: np.ndarray) -> list[list[float]]:
    return np.transpose([betti_numbers(image <= t, image.ndim) for t in AT]).tolist()


def points(image: np.ndarray) -> list[float]:
    return [np.count_nonzero(image <= t) for t in AT]


def faces(image: np.ndarray) -> list[float]:
    """Numbers of sides of pixels, or of voxels, at which the sets end."""
    sets = [np.pad(image <= t, 1) for t in AT]
    return [sum(np.count_nonzero(np.diff(x, axis=k)) for k in range(x.ndim)) for x in sets]


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
@pytest.mark.parametrize("shape", [(9, 11), (5, 6, 7)])
def test_quantities(tmp_path, draw, command, shape):
    image = images(*shape)[0]
    (path,) = saved(tmp_path, [image])
    assert draw(command, path) == {EULER: [euler(image)]}
    numbers = [[found] for found in betti(image)]
    found = draw(command, path, "--betti")
    assert list(found) == ["$b_0$", "$b_1$", "$b_2$"][: len(shape)]
    assert list(found.values()) == numbers
    found = draw(command, path, "--minkowski", "exact")
    names = ["area", "perimeter"] if len(shape) == 2 else ["volume", "surface", "mean breadth"]
    assert list(found) == [*names, EULER]
    assert found[names[0]] == [points(image)]
    assert found[names[1]] == [faces(image)]
    assert found[EULER] == [euler(image)]


@pytest.mark.parametrize("command", ["curve", "batch"])
def test_several_images(tmp_path, draw, figures, command):
    arrays = images(9, 11)
    found = draw(command, *saved(tmp_path, arrays), "--betti")
    for k, lines in enumerate(found.values()):
        assert lines == [betti(image)[k] for image in arrays]
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
def test_labels(tmp_path, draw, figures, command, option):
    """The numbers of a region are those of an image whose other points never enter."""
    image = images(9, 11)[0]
    labels = np.repeat([1, 1, 7], 3)[:, None] * np.ones(11, np.uint8)
    paths = saved(tmp_path, [image, labels])
    options = [option, "exact"] if option == "--minkowski" else [option]
    found = draw(command, paths[0], *filter(None, options), "--labels", paths[1])
    alone = [np.where(labels == k, image, 255) for k in (1, 7)]
    expected = {
        "": {EULER: map(euler, alone)},
        "--betti": dict(zip(("$b_0$", "$b_1$"), zip(*map(betti, alone), strict=True), strict=True)),
        "--minkowski": {
            "area": map(points, alone),
            "perimeter": map(faces, alone),
            EULER: map(euler, alone),
        },
    }[option]
    assert found == {name: list(numbers) for name, numbers in expected.items()}
    texts = [text.get_text() for text in figures[-1].legends[0].get_texts()]
    assert texts == ["label 1", "label 7"]


def test_channels_of_a_stack(tmp_path, draw, figures):
    channels = images(9, 11)
    np.save(tmp_path / "c.npy", np.stack(channels))
    found = draw("stack", tmp_path / "c.npy", "--axes", "CYX", "--betti")
    for k, lines in enumerate(found.values()):
        assert lines == [betti(image)[k] for image in channels]
    assert [text.get_text() for text in figures[-1].legends[0].get_texts()] == ["C 0", "C 1"]
