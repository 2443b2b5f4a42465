"""`--smooth` of all commands: compared with SciPy's filter of the whole image."""

import sys

import numpy as np
import pytest
import tifffile
from io_helpers import command_line, noise, rows_of
from option_cases import AT, COMMANDS, SMALL, components, euler
from processes import run_python
from pyarrow.csv import read_csv
from scipy.ndimage import gaussian_filter, label
from skimage.measure import euler_number

import ecc_core as ecc
from ecc_core.cli import main


@pytest.mark.parametrize("command", COMMANDS)
class TestSmooth:
    @pytest.mark.sweep
    @pytest.mark.parametrize(
        ("sigma", "dtype", "precision"),
        [
            ("1.5", "uint8", "float32"),
            ("2,0.7,0", "uint8", "float32"),
            ("1.5", "int32", "float64"),
            ("2,0.7,0", "int16", "float32"),
            ("2,0.7,0", "float32", "float32"),
            ("2,0.7,0", "float64", "float64"),
        ],
    )
    def test_as_the_whole_image(self, columns, command, sigma, dtype, precision):
        image = noise(40, 37, 33).astype(dtype)
        widths = [float(s) for s in sigma.split(",")]
        smooth = gaussian_filter(image.astype(precision), widths * (3 // len(widths)))
        found = columns(command, image, "--smooth", sigma, *SMALL)
        assert found["euler_number"] == [euler(smooth)]

    def test_bit_for_bit(self, tmp_path, command):
        """Values of the smoothed image are thresholds, next to which rounding would show."""
        image = noise(70, 60)
        smooth = gaussian_filter(image.astype(np.float32), 3)
        values = np.unique(smooth)[::3]
        out = tmp_path / "out.csv"
        at = list(map(str, values.tolist()))
        flags = ["--thresholds", ",".join(at), "--smooth", "3", "--out", out, "--max-memory", "60K"]
        line = command_line(tmp_path, image, *flags, "--workers", 1, chunk=16)
        assert main([command, *line]) == 0
        expected = [euler_number(smooth <= value) for value in values]
        table = read_csv(out).to_pydict()
        if command == "batch":
            assert [table[name][0] for name in at] == expected
        else:
            assert table["euler_number"] == expected

    @pytest.mark.parametrize("sigma", [1.5, 20])
    def test_periodic(self, columns, command, sigma):
        """A filter may be wider than the image."""
        image = noise(2, 21, 18)
        image[0, :, 0] = 255
        axes = ["--axes", "TYX", "--boundary", "periodic"]
        found = columns(command, image, "--smooth", sigma, *axes)["euler_number"]
        smooth = [gaussian_filter(one.astype(np.float32), sigma, mode="wrap") for one in image]
        assert found == [[torus(one <= t) for t in AT] for one in smooth]

    def test_periodic_along_one_axis(self, columns, command):
        """The image is continued by its opposite side there, and by its reflection elsewhere."""
        image = noise(21, 18)
        image[:, 0], image[0] = 255, 0
        boundary = ("closed", "periodic")
        found = columns(command, image, "--smooth", 1.5, "--boundary", ",".join(boundary))
        smooth = gaussian_filter(image.astype(np.float32), 1.5, mode=("reflect", "wrap"))
        expected = ecc.euler_curve(smooth, AT, boundary=boundary)
        assert found["euler_number"] == [expected.values.tolist()]

    @pytest.mark.parametrize(
        ("sigma", "unit"), [("1", "um"), ("0.001,0.001,0.001", "mm"), ("1e-6", "m")]
    )
    def test_in_a_unit(self, columns, tmp_path, command, sigma, unit):
        image = noise(12, 30, 28)
        sizes = {"PhysicalSizeZ": 2, "PhysicalSizeY": 0.5, "PhysicalSizeX": 0.25}
        path = tmp_path / "a.ome.tif"
        tifffile.imwrite(path, image, metadata={"axes": "ZYX", **sizes})
        smooth = gaussian_filter(image.astype(np.float32), (0.5, 2, 4))
        found = columns(command, path, "--smooth", sigma, "--unit", unit)
        assert found["euler_number"] == [euler(smooth)]

    def test_in_a_unit_with_another_spacing(self, columns, tmp_path, command):
        """The spacing that is given counts, not that of the file."""
        image = noise(12, 30, 28)
        sizes = {"PhysicalSizeZ": 2, "PhysicalSizeY": 0.5, "PhysicalSizeX": 0.25}
        path = tmp_path / "a.ome.tif"
        tifffile.imwrite(path, image, metadata={"axes": "ZYX", **sizes})
        flags = ["--smooth", "3", "--unit", "um", "--spacing", "1,1,2"]
        smooth = gaussian_filter(image.astype(np.float32), (3, 3, 1.5))
        assert columns(command, path, *flags)["euler_number"] == [euler(smooth)]

    def test_with_everything_else(self, columns, command):
        """A region of interest is smoothed on its own; a direction is added afterwards."""
        image = noise(30, 40)
        mask = noise(30, 40, seed=1) > 60
        smooth = gaussian_filter(image[3:, :35].astype(np.float32), 1).astype(float)
        ramp = (np.arange(27) - 13)[:, None] * 0.5
        flags = ["--direction", "1,0", "--direction-scale", "0.5", "--smooth", "1"]
        found = columns(command, image, "--roi", "3:,:35", "--mask", mask, "--betti", *flags)
        inside = mask[3:, :35]
        assert found["euler_number"] == [euler(smooth + ramp, inside)]
        assert found["b0"] == [components(smooth + ramp, inside)]

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_values_that_would_spread(self, tmp_path, capsys, command, bad):
        image = noise(20, 20).astype(np.float32)
        image[3, 3] = bad
        line = command_line(tmp_path, image, "--smooth", 1, "--thresholds", "5,", chunk=8)
        assert main([command, *line, "--out", str(tmp_path / "o.csv")]) in (1, 2)
        message = capsys.readouterr().err
        assert f"{line[0]}: --smooth needs an image without NaN and infinity" in message
        assert message.count("\n") == 1


def test_the_range_is_that_of_the_smooth_images(tmp_path, say):
    images = [noise(20, 30), noise(25, 20, seed=1)]
    line = command_line(tmp_path, *images, "--smooth", "2", "--thresholds", "5", chunk=16)
    rows = rows_of(say("curve", *line))
    smooth = [gaussian_filter(image.astype(np.float32), 2) for image in images]
    low = min(s.min() for s in smooth)
    high = max(s.max() for s in smooth)
    at = np.linspace(float(low), float(high), 5)
    assert [float(row["threshold"]) for row in rows] == [*at, *at]
    expected = [euler_number(s <= t) for s in smooth for t in at]
    assert [int(row["euler_number"]) for row in rows] == expected


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory(tmp_path):
    """Smoothing takes little more memory than the image, of which it is 2 times as a whole."""
    shape = (80, 900, 1200)
    volume = np.lib.format.open_memmap(tmp_path / "a.npy", "w+", np.uint16, shape)
    volume[:] = np.random.default_rng(0).integers(0, 60000, shape[1:])
    volume.flush()
    np.save(tmp_path / "small.npy", volume[:9, :9, :9])
    small, large = (
        peak("curve", str(tmp_path / f"{name}.npy"), "--smooth", "1", "--range", "0,65535")
        for name in ("small", "a")
    )
    assert large - small < 1.3 * volume.nbytes


def peak(*arguments: str) -> int:
    """Return the bytes that a command needs, in a process that starts with few of its own."""
    code = (
        "import os, sys; from ecc_core.cli import main; code = main(sys.argv[1:]); "
        "lines = open('/proc/self/status').read().splitlines(); "
        "print(*(line for line in lines if line.startswith('VmHWM')), file=sys.stderr); "
        "sys.exit(code)"
    )
    done = run_python(code, *arguments)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.split()[-2]) * 1024


def torus(binary: np.ndarray) -> int:
    """Corners, sides and squares of the pixels of a set whose opposite sides touch."""
    across = binary | np.roll(binary, 1, axis=1)
    along = binary | np.roll(binary, 1, axis=0)
    corners = across | np.roll(across, 1, axis=0)
    return corners.sum() - across.sum() - along.sum() + binary.sum()


class TestOneImage:
    def test_objects_of_a_smooth_image(self, tmp_path):
        """Labels are those of the components that last; the image is found by a pattern."""
        y, x = np.ogrid[:40, :50]
        bright = [np.hypot(y - a, x - b) < 5 for a, b in ((10, 10), (12, 35), (30, 24))]
        image = noise(40, 50) // 2 + 120 * np.any(bright, axis=0).astype(np.uint8)
        np.save(tmp_path / "cells_1.npy", image)
        np.save(tmp_path / "cells_1_mask.npy", np.arange(50) * np.ones((40, 1)) < 30)
        out = tmp_path / "l.npy"
        table = tmp_path / "t.csv"
        command = ["objects", str(tmp_path / "cells_?.npy"), "--superlevel", "--smooth", "2"]
        command += ["--persistence", "40", "--threshold", "120", "--out", str(out)]
        assert main([*command, "--table", str(table)]) == 0
        known, _ = label(gaussian_filter(image.astype(np.float32), 2) >= 120, np.ones((3, 3)))
        assert known.max() == 3
        found = np.load(out)
        assert len(np.unique(known * 10 + found)) == 4
        assert main([*command, "--mask", "{stem}_mask.npy"]) == 0
        assert np.load(out).max() == 2

    def test_objects_of_a_smooth_periodic_image(self, tmp_path, say):
        image = noise(20, 30)
        image[:, :8], image[:, -8:] = 255, 0
        flags = ["--boundary", "periodic", "--persistence", 0, "--threshold", 120]
        say("objects", image, "--smooth", 2, *flags, "--out", tmp_path / "l.npy")
        smooth = gaussian_filter(image.astype(np.float32), 2, mode="wrap")
        np.testing.assert_array_equal(np.load(tmp_path / "l.npy") > 0, smooth <= 120)

    def test_a_smooth_shape(self, tmp_path, say):
        image = noise(20, 21)
        mask = noise(20, 21, seed=1) > 20
        np.save(tmp_path / "a.npy", image)
        flags = ["--threshold", 128, "--smooth", 1, "--range", "-99,99", "--mask", mask]
        say("transform", tmp_path / "[a].npy", *flags, "--out", tmp_path / "o.npz")
        shape = (gaussian_filter(image.astype(np.float32), 1) >= 128) & mask
        with np.load(tmp_path / "o.npz") as found:
            np.testing.assert_array_equal(found["values"][:, -1], euler_number(shape))
