"""The examples of the gallery run, draw, and find what their text says."""

import runpy
import socket
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
EXAMPLES = sorted(FOLDER.glob("plot_*.py"))


@pytest.fixture
def offline(monkeypatch):
    """Neither a display nor the network."""

    def refuse(*arguments):
        raise AssertionError("an example asked for the network")

    backend = plt.get_backend()
    plt.switch_backend("agg")
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield
    plt.close("all")
    plt.switch_backend(backend)


# `make docs` runs all examples; those without a check run here once a week.
CHECKS = {
    "plot_boolean_model": lambda names: (
        names["errors"]["perimeter"][1] < 0.05 < 0.3 < names["errors"]["perimeter"][0]
        and names["errors"]["euler"][1] < 0.1 < 0.2 < names["errors"]["euler"][0]
    ),
    "plot_cell": lambda names: (
        names["one"].size > names["t"].size / 2
        and not (names["c"][names["entering"] & (names["image"] > 85)]).any()
    ),
    "plot_coins": lambda names: names["count"] == 24,
    "plot_cortex": lambda names: all(
        names["curves"][side][0] == 2
        and names["curves"][side].min() < -20
        and 20 < len(names["pits"][side]) < 40
        for side in names["SIDES"]
    ),
    "plot_galaxies": lambda names: names["objects"] > 500 and names["dark"].values[-1] == 0,
    "plot_gaussian_field": lambda names: all(
        np.corrcoef(names[theory].mean, found(names, names["shape"]))[0, 1] > 0.97
        for theory in ("grid", "smooth")
    ),
    "plot_how_many_objects": lambda names: (
        names["objects"].labels.max() == 24
        and names["separate"] == 22
        and names["nuclei"].labels.max() == 20
    ),
    "plot_missing_vessel": lambda names: (
        names["found"].error.tolist() == [1, 3] and names["difference"].tolist() == [1, 1]
    ),
    "plot_pipeline": lambda names: names["model"].score(names["test"], names["kinds"]) > 0.9,
    "plot_porous_medium": lambda names: (
        abs(names["zero"] - names["last"]) < 1 and abs(names["zero"] - names["balance"]) < 1
    ),
    "plot_regions": lambda names: len(names["table"]) == 24,
    "plot_retina": lambda names: names["within"].values.min() < 0 < names["rim"][-1],
    "plot_shapes": lambda names: (
        names["distances"][0, 1] == 0 and names["distances"][0, 2] < names["distances"][0, 3] / 2
    ),
    "plot_soft_curve": lambda names: names["chi"] == 0,
    "plot_statistical_map": lambda names: (
        names["level"] < names["bonferroni"]
        and names["error"] < 0.05
        and not ((names["z"] > names["level"]) & names["mask"] & (names["effect"] < 0.01)).any()
        and ((names["z"] > names["level"]) & (names["effect"] > 0.5)).any()
    ),
    "plot_vacuoles": lambda names: (names["found"] == names["vacuoles"]).all(),
    "plot_vessels": lambda names: (
        names["network"] == 1 - names["LOOPS"] and names["lasting"] == names["LOOPS"]
    ),
}


def found(names, shape):
    return names["ecc"].euler_curve(names["field"](shape, 1), names["t"]).values


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem not in CHECKS))
        for path in EXAMPLES
    ],
)
def test_example(path, offline):
    if path.stem == "plot_soft_curve":
        pytest.importorskip("torch", reason="soft curves are tensors")
    if path.stem == "plot_cortex":
        pytest.importorskip("nilearn", reason="it has the surface")
    names = runpy.run_path(str(path))
    figures = [plt.figure(number) for number in plt.get_fignums()]
    assert figures
    for figure in figures:
        figure.canvas.draw()
    assert all(figure.axes for figure in figures)
    if check := CHECKS.get(path.stem):
        assert check(names)


def test_every_check_has_an_example():
    assert set(CHECKS) <= {path.stem for path in EXAMPLES}
