"""`ecc stack` computes by blocks what the functions do in memory."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import xarray
from io_helpers import columns, write_ome_zarr, write_zarr
from oracles.components import component_numbers
from stack_helpers import LEVELS, failing_after, noise

import ecc_core as ecc
from ecc_core._blocks.glued import GluedWork
from ecc_core._blocks.work import Work
from ecc_core._io.parts import Parts
from ecc_core.cli import main
from ecc_core.quantities import CURVES

SHAPE = (19, 20, 17)
SMALL = " --max-memory 20K"
"""Options with which there are many blocks."""
OTHER = {"connectivity": 1, "superlevel": True}
OTHER_FLAGS = "--connectivity 1 --superlevel"
HALF_OPEN = {"superlevel": True, "boundary": "half-open"}


def assert_table(table: dict[str, list[float]], known: Any) -> None:
    for name, values in known.by_name().items():
        np.testing.assert_allclose(table[name], values.ravel(), rtol=1e-13, atol=1e-10)
    if hasattr(known, "labels"):
        assert table["label"] == np.repeat(known.labels, 9).tolist()


@pytest.mark.parametrize(
    ("flags", "shape", "function", "options"),
    [
        ("--betti", SHAPE, ecc.betti_curves, {}),
        (f"--betti {OTHER_FLAGS}", SHAPE, ecc.betti_curves, OTHER),
        ("--betti --persistence 4", (40, 50), ecc.betti_curves, {"min_persistence": 4}),
        ("--components", SHAPE, ecc.component_curves, {}),
        (f"--components {OTHER_FLAGS}", SHAPE, ecc.component_curves, OTHER),
        ("--betti --direction 1,2", (29, 28), ecc.euler_curve, {"direction": (1, 2)}),
    ],
)
def test_measures(stack, flags, shape, function, options):
    image = noise(*shape)
    table = stack(image, "--thresholds", LEVELS, *(flags + SMALL).split())
    assert_table(table, function(image, np.arange(9), **options))
    if function is ecc.component_curves:
        assert_table(table, ecc.euler_curve(image, np.arange(9), **options))


def test_percolation_of_a_sample_that_does_not_reach_the_faces(stack, tmp_path):
    """Beside components of each set that SciPy labels, from the first to the last slices."""
    image = noise(*SHAPE)
    shown = np.zeros(SHAPE, bool)
    sample = (slice(3, 15), slice(2, 18), slice(5, 13))
    shown[sample] = np.random.default_rng(4).random(shown[sample].shape) < 0.9
    np.save(tmp_path / "shown.npy", shown)
    flags = ["--components", "--mask", tmp_path / "shown.npy", *SMALL.split()]
    table = stack(image, "--thresholds", LEVELS, *flags)
    known = [component_numbers(image <= t, 3, shown) for t in range(9)]
    assert all(np.max(known, axis=0)[2:] > 0)
    found = [table[name] for name in CURVES["components"].columns]
    assert found == np.transpose(known).tolist()


WINDOWS = {"boundary": "half-open"}
REGIONS = np.repeat(np.arange(4), [5, 4, 3, 7])[:, None, None] * (noise(*SHAPE, seed=1) > 2)


@pytest.mark.parametrize("kind", ["mask", "labels"])
@pytest.mark.parametrize("flags", ["", OTHER_FLAGS, "--minkowski crofton-13"])
def test_windows_of_any_shape(stack, tmp_path, flags, kind):
    """Results equal those in memory, although some blocks have no point of a window."""
    image = noise(*SHAPE)
    regions = REGIONS.astype(np.uint8)
    np.save(tmp_path / "w.npy", regions)
    options = OTHER if flags == OTHER_FLAGS else {}
    given = regions > 0 if kind == "mask" else regions
    of_image = ecc.euler_curve
    of_regions = ecc.region_curves
    if "--minkowski" in flags:
        options = {"estimator": "crofton-13"}
        of_image = ecc.minkowski_curves
        of_regions = ecc.region_minkowski
    if kind == "mask":
        known = of_image(image, np.arange(9), mask=given, **options, **WINDOWS)
    else:
        known = of_regions(image, given, np.arange(9), **options, **WINDOWS)
    command = f"--boundary half-open {flags} {SMALL}"
    table = stack(image, "--thresholds", LEVELS, f"--{kind}", tmp_path / "w.npy", *command.split())
    assert_table(table, known)


def test_windows_of_an_image_with_missing_points(stack, tmp_path):
    """Inside and outside of the window: NaN, and values that the file declares missing."""
    image = noise(*SHAPE, dtype="float32")
    gone = noise(*SHAPE, seed=2) > 6
    image[gone] = np.nan
    np.save(tmp_path / "w.npy", REGIONS == 3)
    flags = ["--mask", tmp_path / "w.npy", "--boundary", "half-open", *SMALL.split()]
    flags += ["--thresholds", LEVELS, "--minkowski"]
    options = {"mask": REGIONS == 3, **WINDOWS}
    known = ecc.minkowski_curves(image, np.arange(9), nan="omit", **options)
    assert_table(stack(image, "--nan", "omit", *flags), known)
    encoding = {"dtype": "i2", "_FillValue": -1, "chunks": (4, 4, 4)}
    filled = xarray.Dataset({"a": (("z", "y", "x"), image)})
    filled.to_zarr(tmp_path / "i.zarr", encoding={"a": encoding}, zarr_format=2)
    assert_table(stack(tmp_path / "i.zarr" / "a", *flags), known)


@pytest.mark.parametrize(
    ("axes", "shape", "flags", "function"),
    [
        ("CYX", (2, 9, 8), "--betti", partial(ecc.betti_curves, axis=(1, 2))),
        ("TCZYX", (2, 3, 9, 8, 7), "", partial(ecc.euler_curve, axis=(2, 3, 4))),
        (
            "CYX",
            (2, 9, 8),
            "--minkowski --superlevel --boundary half-open",
            partial(ecc.minkowski_curves, axis=(1, 2), spacing=(2, 3), **HALF_OPEN),
        ),
    ],
)
def test_batch_axes_and_the_spacing_of_the_file(stack, tmp_path, axes, shape, flags, function):
    image = noise(*shape)
    batch = axes.rstrip("ZYX").lower()
    path = write_ome_zarr(tmp_path / "a.zarr", [image], axes, [(1, 1, 1, 2, 3)[-image.ndim :]])
    table = stack(path, "--thresholds", LEVELS, "--max-memory", "10K", *flags.split())
    known = function(image, np.arange(9))
    assert_table(table, known)
    assert table.keys() == {*batch, "threshold", *known.by_name()}
    rows = zip(*(table[axis] for axis in batch), strict=True)
    places = np.ndindex(shape[: len(batch)])
    assert list(rows) == [at for at in places for _ in range(9)]
    if batch == "tc":
        table = stack(path, "--thresholds", LEVELS, "--channel", 2)
        assert_table(table, function(image[:, 2:], np.arange(9)))
        assert "c" not in table


@pytest.mark.parametrize(
    "boundary",
    [
        "closed",
        "periodic",
        "half-open",
        "closed,periodic,half-open",
        "periodic,half-open,closed",
        "half-open,closed,periodic",
    ],
)
@pytest.mark.parametrize(
    ("connectivity", "estimator"), [(1, "exact"), (3, "exact"), (3, "crofton-13"), (1, ""), (3, "")]
)
def test_borders(stack, connectivity, estimator, boundary):
    image = noise(9, 8, 11)
    words = boundary.split(",")
    options = {"connectivity": connectivity, "boundary": words if words[1:] else boundary}
    flags = ["--connectivity", connectivity, "--boundary", boundary, "--max-memory", "4K"]
    function = ecc.euler_curve
    if estimator:
        function = partial(ecc.minkowski_curves, estimator=estimator, spacing=(2, 1, 0.5))
        flags += ["--minkowski", estimator, "--spacing", "2,1,0.5"]
    table = stack(image, "--thresholds", LEVELS, *flags)
    assert_table(table, function(image, np.arange(9), **options))


@pytest.mark.parametrize("boundary", ["closed", "periodic", "closed,periodic,closed"])
@pytest.mark.parametrize(("connectivity", "estimator"), [(3, "crofton-3"), (1, ""), (3, "")])
def test_labels(stack, tmp_path, connectivity, estimator, boundary):
    """Labels touch, have other chunks than the image, and are cut to its region of interest."""
    image = noise(11, 16, 9)
    labels = noise(11, 16, 9, seed=1) // 3 * np.uint16(100)
    labels[:5, :6, :4] = 0  # One block has no labels.
    write_zarr(tmp_path / "labels.zarr", labels, chunks=(3, 7, 5))
    flags = ["--labels", tmp_path / "labels.zarr", "--roi", "1:10,2:,:8", "--boundary", boundary]
    flags += ["--connectivity", connectivity, "--max-memory", "4K", "--thresholds", LEVELS]
    words = boundary.split(",")
    options = {"connectivity": connectivity, "boundary": words if words[1:] else boundary}
    function = ecc.region_curves
    if estimator:
        function = partial(ecc.region_minkowski, estimator=estimator)
        flags += ["--minkowski", estimator]
    part = np.s_[1:10, 2:, :8]
    known = function(image[part], labels[part], np.arange(9), **options)
    assert_table(stack(image, *flags), known)


@pytest.mark.parametrize("boundary", ["periodic", "half-open"])
def test_points_that_are_the_whole_image(stack, boundary):
    """Axes of one point: a half-open window of them has no cells, a periodic one has loops."""
    table = stack(noise(1, 6), "--thresholds", LEVELS, "--minkowski", "--boundary", boundary)
    assert_table(table, ecc.minkowski_curves(noise(1, 6), np.arange(9), boundary=boundary))


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


@pytest.mark.parametrize("chunks", [(1, 20, 17), (19, 3, 17)])
@pytest.mark.parametrize("memory", ["6K", "1M"])
def test_rows_of_blocks(stack, tmp_path, monkeypatch, chunks, memory):
    """Joined from the first one on, in groups of one or of several."""
    image = noise(19, 20, 17)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=chunks)
    flags = ["--thresholds", LEVELS, "--workers", 2, "--betti", "--max-memory", memory]
    monkeypatch.setattr("ecc_core._cli.block_sizes.BLOCK_BYTES", 1)
    assert_table(stack(path, *flags), ecc.betti_curves(image, np.arange(9)))


def test_memory_that_is_not_enough(tmp_path, refuse):
    path = write_zarr(tmp_path / "a.zarr", np.zeros((40, 99, 99), np.uint8), chunks=(1, 99, 99))
    arguments = ["stack", str(path), "--out", str(tmp_path / "a.csv"), "--betti"]
    (line,) = refuse(*arguments, "--max-memory", "1M").splitlines()
    least = line.partition("at least ")[2].partition(",")[0]
    assert main([*arguments, "--max-memory", least]) == 0


@pytest.mark.parametrize(
    ("work", "method", "flags", "function", "blocks", "chunks"),
    [
        (GluedWork, "process", ["--betti"], ecc.betti_curves, 36, (8, 8, 8)),
        (GluedWork, "process", ["--betti"], ecc.betti_curves, 16, (2, 24, 24)),
        (Work, "share", ["--minkowski", "exact"], ecc.minkowski_curves, 36, (8, 8, 8)),
    ],
)
def test_resume(tmp_path, monkeypatch, work, method, flags, function, blocks, chunks):
    """Parts that were kept are not computed again, and are joined with the others."""
    image = noise(32, 24, 24)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=chunks)
    out = tmp_path / "curve.csv"
    arguments = ["stack", str(path), "--out", str(out), "--thresholds", LEVELS, *flags]
    arguments += ["--max-memory", "6K", "--workers", "2", "--resume"]
    compute = getattr(work, method)
    computed = []
    with failing_after(2, KeyboardInterrupt()):
        assert main(arguments) == 130

    def counted(self: Any, block: tuple[int, ...], *more: Any) -> Any:
        computed.append(block)
        return compute(self, block, *more)

    monkeypatch.setattr(work, method, counted)
    monkeypatch.setattr(Parts, "clear", lambda _: None)
    assert main(arguments) == 0
    assert 0 < len(computed) < blocks
    assert len(computed) == len(set(computed))
    assert_table(columns(out), function(image, np.arange(9)))
    if work is Work:  # Parts of another estimator are not used.
        computed.clear()
        assert main([*arguments, "--minkowski", "crofton-13"]) == 0
        assert len(computed) == blocks
        known = ecc.minkowski_curves(image, np.arange(9), estimator="crofton-13")
        assert_table(columns(out), known)
