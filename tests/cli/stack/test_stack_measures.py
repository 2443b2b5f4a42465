"""`ecc stack` and `ecc batch` with `--betti` and `--minkowski`: as the functions in memory."""

from typing import Any

import numpy as np
import pytest
from io_helpers import columns, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, assert_curve, failing_after, noise

import ecc_core as ecc
from ecc_core._blocks.betti import BettiWork
from ecc_core._blocks.work import Work
from ecc_core._io.parts import Parts
from ecc_core.cli import main

SMALL = ("--max-memory", "20K")  # so that there are many blocks


def assert_functionals(table: dict[str, list[float]], image: np.ndarray, **options: Any) -> None:
    known = ecc.minkowski_curves(image, np.arange(9), **options)
    assert table["euler_number"] == known.euler.tolist()
    for name in known.measures[:-1]:
        np.testing.assert_allclose(table[name], getattr(known, name), rtol=1e-13, atol=1e-10)


def assert_betti(table: dict[str, list[float]], image: np.ndarray, **options: Any) -> None:
    known = ecc.betti_curves(image, np.arange(9), **options)
    assert table["euler_number"] == known.euler.tolist()  # of the classes that count
    for k in range(image.ndim):
        assert table[f"b{k}"] == known.values[k].tolist()


def assert_components(table: dict[str, list[float]], image: np.ndarray, **options: Any) -> None:
    known = ecc.component_curves(image, np.arange(9), **options)
    names = ["points", "largest", *(f"spanning_{axis}" for axis in range(image.ndim))]
    assert [table[name] for name in names] == known.values.tolist()
    assert_curve(table, image, **options)


@pytest.mark.parametrize("options", [{}, {"connectivity": 1, "superlevel": True}])
@pytest.mark.parametrize("measure", ["betti", "components"])
def test_measures(stack, tmp_path, measure, options):
    image = noise(19, 20, 17)
    path = write_zarr(tmp_path / "a.zarr", image)
    flags = ["--connectivity", 1, "--superlevel"] if options else []
    table = stack(path, "--thresholds", LEVELS, f"--{measure}", *SMALL, *flags)
    {"betti": assert_betti, "components": assert_components}[measure](table, image, **options)


def test_betti_numbers_of_what_lasts(stack, tmp_path):
    image = noise(40, 50)
    np.save(tmp_path / "a.npy", image)
    table = stack(tmp_path / "a.npy", "--thresholds", LEVELS, "--betti", "--persistence", 4, *SMALL)
    assert_betti(table, image, min_persistence=4)


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
def test_tables_of_components(tmp_path, command):
    pytest.importorskip("pandas")
    image = noise(2, 9, 8)
    np.save(tmp_path / "a.npy", image)
    out = tmp_path / "t.csv"
    flags = ["--axes", "CYX", "--thresholds", LEVELS, "--components", "--betti", "--superlevel"]
    assert main([command, str(tmp_path / "a.npy"), *flags, "--out", str(out)]) == 0
    found = ecc.io.read_table(out, "components").curves
    known = ecc.component_curves(image, np.arange(9), axis=(1, 2), superlevel=True)
    np.testing.assert_array_equal(found.values, known.values)
    assert (found.superlevel, found.ndim) == (True, 2)
    assert ecc.io.read_table(out).curves.values.shape == (2, 2, 9)


def test_betti_numbers_of_batch_axes_and_directions(stack, tmp_path):
    image = noise(2, 9, 8)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "CYX")
    table = stack(path, "--thresholds", LEVELS, "--betti")
    known = ecc.betti_curves(image, np.arange(9), axis=(1, 2))
    assert table["c"] == np.repeat([0, 1], 9).tolist()
    assert table["b1"] == known.values[:, 1].ravel().tolist()
    assert "b2" not in table
    flags = ["--channel", 1, "--direction", "1,2", "--max-memory", "10K"]
    table = stack(path, "--thresholds", LEVELS, "--betti", *flags)
    curve = ecc.euler_curve(image[1], np.arange(9), direction=(1, 2))
    assert table["euler_number"] == curve.values.tolist()


@pytest.mark.parametrize("boundary", ["periodic", "half-open"])
@pytest.mark.parametrize("connectivity", [1, 3])
def test_borders_of_curves(stack, tmp_path, connectivity, boundary):
    image = noise(19, 20, 17)
    path = write_zarr(tmp_path / "a.zarr", image)
    flags = ["--connectivity", connectivity, "--boundary", boundary]
    table = stack(path, "--thresholds", LEVELS, *SMALL, *flags)
    assert_curve(table, image, connectivity=connectivity, boundary=boundary)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
def test_volumes(stack, tmp_path, boundary):
    image = noise(9, 8, 11)
    path = write_zarr(tmp_path / "a.zarr", image)
    for connectivity, estimator in ((1, "exact"), (3, "exact"), (3, "crofton-13")):
        options = {"connectivity": connectivity, "estimator": estimator, "boundary": boundary}
        flags = ["--connectivity", connectivity, "--minkowski", estimator, "--boundary", boundary]
        flags += ["--spacing", "2,1,0.5", "--max-memory", "4K"]
        table = stack(path, "--thresholds", LEVELS, *flags)
        assert_functionals(table, image, spacing=(2, 1, 0.5), **options)


def test_batch_axes_and_the_spacing_of_the_file(stack, tmp_path):
    image = noise(2, 9, 8)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "CYX", [(1, 2, 3)])
    flags = ["--minkowski", "--superlevel", "--boundary", "half-open", "--max-memory", "2K"]
    table = stack(path, "--thresholds", LEVELS, *flags)
    assert table["c"] == np.repeat([0, 1], 9).tolist()
    assert "volume" not in table
    for channel in (0, 1):
        own = {name: column[9 * channel :][:9] for name, column in table.items()}
        options = {"spacing": (2, 3), "superlevel": True, "boundary": "half-open"}
        assert_functionals(own, image[channel], **options)


@pytest.mark.parametrize("boundary", ["closed", "periodic", "half-open"])
def test_labels(stack, tmp_path, boundary):
    image, labels = noise(9, 12, 8), noise(9, 12, 8, seed=1) // 3
    labels[:4, :4, :4] = 0  # a block without labels
    path = write_zarr(tmp_path / "a.zarr", image)
    flags = ["--labels", write_zarr(tmp_path / "b.zarr", labels), "--minkowski", "crofton-3"]
    flags += ["--boundary", boundary, "--max-memory", "4K"]
    table = stack(path, "--thresholds", LEVELS, *flags)
    options = {"estimator": "crofton-3", "boundary": boundary}
    known = ecc.region_minkowski(image, labels, np.arange(9), **options)
    assert table["label"] == np.repeat(known.labels, 9).tolist()
    assert table["euler_number"] == known.euler.ravel().tolist()
    for name in ("volume", "surface", "mean_breadth"):
        np.testing.assert_allclose(table[name], getattr(known, name).ravel(), atol=1e-10)


def test_points_that_are_the_whole_image(stack, tmp_path):
    """Axes of one point: a half-open window of them has no cells, a periodic one has loops."""
    image = noise(1, 6)
    path = write_zarr(tmp_path / "a.zarr", image)
    for boundary in ("periodic", "half-open"):
        table = stack(path, "--thresholds", LEVELS, "--minkowski", "--boundary", boundary)
        assert_functionals(table, image, boundary=boundary)


@pytest.mark.parametrize("chunks", [(1, 20, 17), (19, 3, 17)])
@pytest.mark.parametrize("memory", ["6K", "1M"])
def test_rows_of_blocks(stack, tmp_path, chunks, memory):
    """Joined from the first one on, in groups of one or of several."""
    image = noise(19, 20, 17)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=chunks)
    flags = ["--thresholds", LEVELS, "--workers", 2]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ecc_core._cli.blockwise.BLOCK_BYTES", 1)
        table = stack(path, *flags, "--betti", "--max-memory", memory)
        assert_betti(table, image)


def test_memory_that_is_not_enough(tmp_path, refuse):
    path = write_zarr(tmp_path / "a.zarr", np.zeros((40, 99, 99), np.uint8), chunks=(1, 99, 99))
    arguments = ["stack", str(path), "--out", str(tmp_path / "a.csv"), "--betti"]
    (line,) = refuse(*arguments, "--max-memory", "1M").splitlines()
    least = line.partition("at least ")[2].partition(",")[0]
    assert main([*arguments, "--max-memory", least]) == 0


@pytest.mark.parametrize(
    ("work", "method", "flags", "check", "blocks", "chunks"),
    [
        (BettiWork, "emit", ["--betti"], assert_betti, 36, (8, 8, 8)),
        (BettiWork, "emit", ["--betti"], assert_betti, 16, (2, 24, 24)),
        (Work, "share", ["--minkowski", "exact"], assert_functionals, 36, (8, 8, 8)),
    ],
)
def test_resume(tmp_path, monkeypatch, work, method, flags, check, blocks, chunks):
    """Parts that were kept are not computed again, and are joined with the others."""
    image = noise(32, 24, 24)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=chunks)
    out = tmp_path / "curve.csv"
    arguments = ["stack", str(path), "--out", str(out), "--thresholds", LEVELS, *flags]
    arguments += ["--max-memory", "6K", "--workers", "2", "--resume"]
    compute, computed = getattr(work, method), []
    with failing_after(2, KeyboardInterrupt()):
        assert main(arguments) == 130

    def counted(self: Any, block: tuple[int, ...], *more: Any) -> Any:
        computed.append(block)
        return compute(self, block, *more)

    monkeypatch.setattr(work, method, counted)
    with monkeypatch.context() as patch:
        patch.setattr(Parts, "clear", lambda _: None)
        assert main(arguments) == 0
    assert 0 < len(computed) < blocks
    assert len(computed) == len(set(computed))
    check(columns(out), image)
    if work is Work:  # parts of another estimator are not used
        computed.clear()
        assert main([*arguments, "--minkowski", "crofton-13"]) == 0
        assert len(computed) == blocks
        assert_functionals(columns(out), image, estimator="crofton-13")
