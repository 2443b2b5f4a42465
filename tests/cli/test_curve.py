"""`ecc curve`: tables hold what `euler_curve` returns."""

import numpy as np
import pytest
from io_helpers import noise
from scipy.ndimage import gaussian_filter

import ecc_core as ecc

Rows = list[dict[str, str]]


def assert_rows_are(rows: Rows, curve: ecc.EulerCurve, path: object) -> None:
    assert {row["input"] for row in rows} == {str(path)}
    assert [float(row["threshold"]) for row in rows] == curve.thresholds.tolist()
    assert [int(row["euler_number"]) for row in rows] == curve.values.tolist()


class TestCurve:
    def test_default(self, run, image_file, image):
        rows = run(image_file)
        assert list(rows[0]) == ["input", "threshold", "euler_number"]
        assert len(rows) == 256
        assert_rows_are(rows, ecc.euler_curve(image), image_file)

    @pytest.mark.parametrize(
        ("text", "thresholds"),
        [
            ("17", 17),
            ("1", 1),
            ("exact", "exact"),
            ("3,50,200", [3, 50, 200]),
            ("100,", [100]),
            ("-3,", [-3]),
            ("0,", [0]),
            ("-1,99.5,300", [-1, 99.5, 300]),
            ("99.5", [99.5]),
            ("-inf,inf", [-np.inf, np.inf]),
        ],
    )
    def test_thresholds(self, run, image_file, image, text, thresholds):
        expected = ecc.euler_curve(image, thresholds)
        assert_rows_are(run(image_file, "--thresholds", text), expected, image_file)

    def test_integer_thresholds_stay_integers(self, run, tmp_path):
        image = np.array([2**53, 2**53 + 1, 2**53 + 2])
        np.save(tmp_path / "a.npy", image)
        rows = run(tmp_path / "a.npy", "--thresholds", f"{2**53},{2**53 + 1}", "--superlevel")
        assert [row["threshold"] for row in rows] == [str(2**53), str(2**53 + 1)]
        expected = ecc.euler_curve(image, np.array([2**53, 2**53 + 1]), superlevel=True)
        assert [int(row["euler_number"]) for row in rows] == expected.values.tolist()

    @pytest.mark.parametrize("text", ["20,60", "-20.5,300", "-20.5,-1"])
    def test_range(self, run, image_file, image, text):
        low, high = map(float, text.split(","))
        expected = ecc.euler_curve(image, 5, range=(low, high))
        rows = run(image_file, "--thresholds", 5, "--range", text)
        assert_rows_are(rows, expected, image_file)
        assert rows == run(image_file, "--thresholds=5", f"--range={text}")

    def test_smooth_a_window(self, run, image, tmp_path):
        """What lies beyond a window is unknown: as for a closed image, its reflection."""
        np.save(tmp_path / "a.npy", image)
        rows = run(tmp_path / "a.npy", "--smooth", 1.5, "--boundary", "half-open")
        smooth = gaussian_filter(image.astype(np.float32), 1.5, mode="reflect")
        expected = ecc.euler_curve(smooth, boundary="half-open")
        assert_rows_are(rows, expected, tmp_path / "a.npy")

    def test_binary_image(self, run, image, tmp_path):
        np.save(tmp_path / "a.npy", image > 99)
        rows = run(tmp_path / "a.npy", "--thresholds", "exact")
        assert {row["threshold"] for row in rows} <= {"0", "1"}
        assert rows[-1]["euler_number"] == "1"

    def test_several_inputs_have_one_range(self, run, tmp_path):
        images = {tmp_path / f"{i}.npy": noise(9, 7 + i, seed=i) for i in range(3)}
        for path, image in images.items():
            np.save(path, image)
        rows = run(*images, "--thresholds", 8)
        assert [row["input"] for row in rows] == [str(p) for p in images for _ in range(8)]
        low = min(image.min() for image in images.values())
        high = max(image.max() for image in images.values())
        for path, image in images.items():
            own = [row for row in rows if row["input"] == str(path)]
            assert_rows_are(own, ecc.euler_curve(image, 8, range=(low, high)), path)

    def test_exact_thresholds_of_several_types(self, run, refuse, tmp_path):
        levels = {"i8": 2**53 + 1, "u1": 7, "f4": 0.5}
        for dtype, level in levels.items():
            np.save(tmp_path / f"{dtype}.npy", np.array([[level]], dtype))
        small = run(tmp_path / "u1.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert [float(row["threshold"]) for row in small] == [7, 0.5]
        message = refuse("curve", tmp_path / "i8.npy", tmp_path / "f4.npy", "--thresholds", "exact")
        assert "float32, int64 do not fit into one table exactly" in message
