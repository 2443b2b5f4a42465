"""`ecc info`: what it says of a file."""

import json

import numpy as np
import pytest
from io_helpers import noise
from PIL import Image

from ecc_core.cli import main


class TestInfo:
    def test_image(self, say, image_file):
        low = noise(12, 9).min()
        high = noise(12, 9).max()
        assert say("info", image_file).splitlines() == [
            image_file,
            "  shape   12 x 9 (YX)",
            "  dtype   uint8",
            "  unread  spacing and its unit, origin and directions, scaling of values, missing "
            "values",
            f"  range   {low} to {high}",
            f"  curve   256 thresholds from {low} to {high}, 8-connected, sublevel sets",
        ]

    def test_floats(self, say):
        image = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 4
        image[0, 0, :3] = np.nan, np.inf, -np.inf
        image[1] = np.nan
        assert say("info", image).splitlines()[1:] == [
            "  shape   2 x 3 x 4 (ZYX)",
            "  dtype   float32",
            "  unread  axes by type or name, spacing and its unit, origin and directions, scaling "
            "of values, missing values",
            "  range   0.75 to 2.75",
            "  NaN     13",
            "  inf     2",
            "  curve   none: has NaN, choose --nan omit",
        ]

    def test_channels(self, say, tmp_path):
        Image.fromarray(noise(6, 8, 3)).save(tmp_path / "a.png")
        assert "  shape   6 x 8 x 3 (YXS)\n" in (lines := say("info", tmp_path / "a.png"))
        assert "choose one with --channel: 0 to 2, r, g, b, gray" in lines
        green = noise(6, 8, 3)[..., 1]
        lines = say("info", tmp_path / "a.png", "--channel", "g")
        assert f"  range   {green.min()} to {green.max()}\n" in lines

    @pytest.mark.parametrize(
        ("array", "words"),
        [
            (np.float64(3), "none: needs 1 to 3 axes, got 0"),
            (
                np.zeros((2, 2, 2, 2)),
                "none: nothing says what the axes of shape (2, 2, 2, 2) are, "
                "give --axes, such as TZYX or CZYX",
            ),
            (np.zeros((0, 5)), "none: no finite value"),
            (np.full(3, np.inf), "none: no finite value"),
            (np.zeros(3, complex), "none: values are not real numbers"),
            (np.arange(4.0), "256 thresholds from 0.0 to 3.0, 2-connected, sublevel sets"),
        ],
    )
    def test_no_curve(self, say, array, words):
        assert say("info", np.asarray(array)).splitlines()[-1] == f"  curve   {words}"

    def test_json(self, say, tmp_path):
        image = np.array([[0.25, np.nan], [3, np.inf]], np.float32)
        np.save(tmp_path / "a.npy", image)
        np.save(tmp_path / "b.npy", noise(3, 4, 5))
        first, second = json.loads(say("info", "--json", tmp_path / "*.npy"))
        assert first["path"] == str(tmp_path / "a.npy")
        assert (first["shape"], first["axes"]) == ([2, 2], "YX")
        assert (first["range"], first["NaN"], first["inf"]) == ([0.25, 3], 1, 1)
        assert second["range"] == [noise(3, 4, 5).min(), noise(3, 4, 5).max()]
        assert second["dtype"] == "uint8"


def test_system(capsys):
    """No input is needed. The package needs numpy and numba, but not pytest."""
    with pytest.raises(SystemExit, match="0"):
        main(["info", "--system"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("napari-ecc ")
    assert f"numpy {np.__version__}" in lines
    assert any(line.startswith("numba ") for line in lines)
    assert not any(line.startswith("pytest ") for line in lines)
    assert lines[-1].startswith("CUDA")
