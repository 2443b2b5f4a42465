"""Options mean the same in all commands: compared with SciPy and scikit-image."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import zarr
from io_helpers import command_line, noise, rows_of, write_ome_zarr, write_zarr
from level_sets import numbers_at
from option_cases import AT, COMMANDS, components, euler, points
from pyarrow.csv import read_csv
from scipy.ndimage import gaussian_filter
from skimage.measure import euler_number
from topology_helpers import alive, intervals

import ecc_core as ecc
from ecc_core._cli import batch
from ecc_core._io.parts import Parts
from ecc_core.cli import main


@pytest.mark.parametrize("command", COMMANDS)
class TestMasks:
    @pytest.mark.sweep
    @pytest.mark.parametrize("dtype", [bool, "uint16", "float32"])
    @pytest.mark.parametrize("given", ["path", "{stem}_mask.zarr", "a.zarr=a_mask.zarr"])
    def test_mask(self, columns, tmp_path, command, dtype, given):
        image = noise(20, 22, 24)
        mask = (noise(20, 22, 24, seed=1) // 100).astype(dtype)
        path = write_zarr(tmp_path / "a.zarr", image)
        other = write_zarr(tmp_path / "a_mask.zarr", mask, chunks=(7, 7, 7))
        given = str(other) if given == "path" else given
        found = columns(command, path, "--mask", given, "--minkowski", "exact")
        assert found["euler_number"] == [euler(image, mask != 0)]
        volume = [[np.count_nonzero((image <= t) & (mask != 0)) for t in AT]]
        assert found["volume"] == volume

    def test_mask_of_all_times_and_labels(self, columns, command):
        image = noise(3, 20, 22)
        mask = noise(20, 22, seed=1) > 60
        labels = np.repeat([0, 4, 7], 8)[:20, None] * np.ones(22, np.uint8)
        given = [command, image, "--axes", "TYX", "--mask", mask]
        assert columns(*given)["euler_number"] == [euler(i, mask) for i in image]
        expected = [euler(one, mask & (labels == i)) for one in image for i in (4, 7)]
        assert columns(*given, "--labels", labels.astype(np.uint8))["euler_number"] == expected

    @pytest.mark.parametrize("labelled", [False, True])
    def test_nan(self, columns, tmp_path, capsys, command, labelled):
        image = noise(9, 20, 22).astype(np.float32)
        labels = noise(9, 20, 22, seed=1) // 100
        image[1:5, 3:7, 4:9] = np.nan
        line = command_line(tmp_path, image, *(["--labels", labels] if labelled else []), chunk=8)
        out = ["--thresholds", "9,", "--out", str(tmp_path / "out.csv")]
        assert main([command, *line, *out]) in (1, 2)
        assert "NaN" in capsys.readouterr().err
        regions = [labels == 1, labels == 2] if labelled else [True]
        found = columns(command, *line, "--nan", "omit")
        assert found["euler_number"] == [euler(image, inside) for inside in regions]


@pytest.mark.parametrize("command", ["stack", "batch"])
def test_resuming_knows_the_mask(columns, tmp_path, monkeypatch, command):
    """Parts that an earlier run has left were computed with another mask, and are not used."""
    monkeypatch.setattr(Parts, "clear", lambda _: None)
    monkeypatch.setattr(batch, "LEAST_KEPT_SECONDS", 0)
    image = noise(20, 20)
    path = write_zarr(tmp_path / "a.zarr", image)
    for seed in (1, 2):
        mask = noise(20, 20, seed=seed) > 99
        found = columns(command, path, "--mask", mask, "--resume")
        assert found["euler_number"] == [euler(image, mask)]


class TestLargeImages:
    """`ecc curve` computes what takes more memory than the image by blocks."""

    @pytest.fixture(autouse=True)
    def every_image_is_large(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ecc_core._cli.curve.MOST_READ_AT_ONCE", 0)

    def test_measures(self, columns):
        image = noise(2, 40, 42)
        mask = noise(40, 42, seed=1) > 60
        flags = ["--axes", "TYX", "--mask", mask, "--max-memory", "10K"]
        found = columns("curve", image, *flags, "--betti", "--minkowski", "exact")
        assert found["euler_number"] == [euler(one, mask) for one in image]
        assert found["b0"] == [components(one, mask) for one in image]
        assert found["area"] == [points(one, mask) for one in image]

    def test_labels_have_one_range(self, tmp_path, say):
        image = noise(2, 40, 42)
        labels = np.repeat([0, 4, 7], 14) * np.ones((40, 1), int)
        image[:, :, :14] = 255
        image[1, :, 14:] //= 2
        flags = ["--axes", "TYX", "--thresholds", "5", "--max-memory", "10K", "--labels"]
        rows = rows_of(say("curve", *command_line(tmp_path, image, *flags, labels, chunk=16)))
        at = np.linspace(image[..., 14:].min(), image[..., 14:].max(), 5)
        assert [float(row["threshold"]) for row in rows] == [*at] * 4
        regions = [np.where(labels == i, one, np.inf) for one in image for i in (4, 7)]
        expected = [euler_number(region <= t) for region in regions for t in at]
        assert [int(row["euler_number"]) for row in rows] == expected

    def test_a_range_beyond_the_values(self, tmp_path, say):
        np.save(tmp_path / "a.npy", noise(20, 20))
        flags = ["--betti", "--range", "300,400", "--thresholds", "2"]
        rows = rows_of(say("curve", tmp_path / "a.npy", *flags))
        assert [row["b0"] for row in rows] == ["1", "1"]

    def test_errors_name_the_image(self, tmp_path, refuse):
        image = noise(40, 42).astype(np.float32)
        image[30, 30] = np.nan
        line = command_line(tmp_path, image, chunk=16)
        message = refuse("curve", *line, "--betti", "--thresholds", "9,")
        assert message.startswith(f"ecc: error: {line[0]}: the image")


@pytest.mark.parametrize("command", ["curve", "batch"])
class TestPairs:
    @pytest.fixture
    def subjects(self, tmp_path: Path) -> dict[str, np.ndarray]:
        """Images named as in BIDS, and their labels."""
        found = {}
        for i in (1, 2, 3):
            image = noise(9, 8 + i, seed=i)
            labels = noise(9, 8 + i, seed=9 + i) // 100
            np.save(tmp_path / f"sub-0{i}_T1w.npy", image)
            np.save(tmp_path / f"sub-0{i}_dseg.npy", labels)
            found[str(tmp_path / f"sub-0{i}_T1w.npy")] = image, labels
        return found

    @pytest.mark.sweep
    @pytest.mark.parametrize("option", ["labels", "mask"])
    @pytest.mark.parametrize("how", ["rule", "csv", "name"])
    def test_pairs(self, columns, tmp_path, subjects, command, option, how):
        given = "_T1w=_dseg"
        if how == "csv":
            given = str(tmp_path / "pairs.csv")
            lines = [f"{option},input", *(f"{p.replace('T1w', 'dseg')},{p}" for p in subjects)]
            Path(given).write_text("\n".join(lines))
        if how == "name":
            given = str(tmp_path / "labels/{name}.npy")
            Path(given).parent.mkdir()
            for path in subjects:
                Path(path.replace("T1w", "dseg")).rename(given.format(name=Path(path).stem))
        found = columns(command, str(tmp_path / "*_T1w.npy"), f"--{option}", given)
        expected = [
            euler(image, inside)
            for image, labels in subjects.values()
            for inside in ([labels == 1, labels == 2] if option == "labels" else [labels != 0])
        ]
        assert found["euler_number"] == expected

    def test_what_is_missing_is_said_once(self, tmp_path, subjects, capsys, command, refuse):
        for name in ("sub-02_dseg.npy", "sub-03_dseg.npy"):
            (tmp_path / name).unlink()
        flags = ["--thresholds", "5,", "--out", str(tmp_path / "o.csv")]
        start = [command, str(tmp_path / "*_T1w.npy"), *flags]
        message = refuse(*start, "--labels", "_T1w=_dseg")
        first, second = (tmp_path / f"sub-0{i}_dseg.npy: no such file or folder" for i in (2, 3))
        assert message == f"ecc: error: no labels for 2 of 3 images: {first}, {second}\n"
        assert "no mask for 3 of 3 images: " in (said := refuse(*start, "--mask", "_T2w=_dseg"))
        assert said.count("--mask _T2w=_dseg does not name it") == 3
        (tmp_path / "a.csv").write_text("image,labels\n")
        assert main([*start, "--labels", str(tmp_path / "a.csv")]) == 2
        said = capsys.readouterr().err
        assert "must have the columns input and labels, got image, labels" in said
        assert not (tmp_path / "o.csv").exists()


class TestMeasures:
    @pytest.mark.parametrize("command", ["curve", "batch"])
    def test_of_labels(self, columns, command):
        image = noise(20, 22)
        labels = noise(20, 22, seed=3) // 100
        flags = ["--labels", labels, "--betti", "--minkowski", "crofton-4"]
        found = columns(command, image, *flags)
        regions = [labels == 1, labels == 2]
        assert found["b0"] == [components(image, inside) for inside in regions]
        assert found["euler_number"] == [euler(image, inside) for inside in regions]
        assert found["area"] == [points(image, inside) for inside in regions]
        known = ecc.region_minkowski(image, labels.astype(int), AT, estimator="crofton-4")
        np.testing.assert_array_equal(found["perimeter"], known.perimeter)

    @pytest.mark.parametrize("command", ["curve", "batch"])
    def test_periodic_betti_numbers(self, columns, command):
        image = noise(2, 12, 13)
        flags = ["--axes", "TYX", "--betti", "--boundary", "periodic", "--smooth", "0.5"]
        found = columns(command, image, *flags)
        floats = image.astype(np.float32)
        smooth = [gaussian_filter(one, 0.5, mode="wrap").astype(float) for one in floats]
        expected = [alive(intervals(one, 2, periodic=True), AT) for one in smooth]
        assert found["b0"] == [numbers[0].tolist() for numbers in expected]
        assert found["b1"] == [numbers[1].tolist() for numbers in expected]

    @pytest.mark.parametrize("flags", [[], ["--superlevel"]], ids=["sublevel", "superlevel"])
    def test_exact_thresholds_of_a_batch(self, tmp_path, say, flags):
        """Every level of any image is a column, and a curve is constant between its own levels."""
        images = [noise(6, 7) // 16, noise(5, 8, seed=1) // 9]
        out = tmp_path / "o.csv"
        say("batch", *images, "--thresholds", "exact", *flags, "--out", out)
        rows = rows_of(out)
        at = [int(name) for name in rows[0] if name.isdecimal()]
        assert len(at) > 10
        found = [[int(row[str(t)]) for t in at] for row in rows]
        sign = -1 if flags else 1
        levels = [sign * t for t in at]
        assert found == [numbers_at(sign * image.astype(int), levels) for image in images]

    @pytest.mark.sweep
    @pytest.mark.parametrize("more", [[], ["--minkowski"]], ids=["alone", "with lengths"])
    @pytest.mark.parametrize("command", ["batch", "curve", "stack"])
    def test_persistence(self, command, columns, more):
        """The Euler number is that of the classes that last, whatever else is counted."""
        image = np.full((9, 9), 200, np.uint8)
        image[2, 2:7] = 100
        # One end of the bar is 120 below what is around, the other one 12 below the bar.
        image[2, 2], image[2, 6] = 80, 88
        found = columns(command, image, "--betti", "--persistence", "20", *more)
        assert np.ravel(found["b0"]).tolist() == [1, 1, 1, 1]
        np.testing.assert_array_equal(found["euler_number"], found["b0"])


class TestOutput:
    def test_json_on_stdout(self, say):
        image = noise(7, 8)
        table = json.loads(say("curve", image, "--json", "--thresholds", "90.,125.5"))
        assert table["columns"]["euler_number"] == numbers_at(image, (90, 125.5))
        assert table["metadata"]["inputs"][0]["shape"] == [7, 8]

    @pytest.mark.parametrize(("given", "code"), [("whole", 0), ("cut", 2), ("other", 2)])
    def test_stdin(self, monkeypatch, capsys, given, code):
        image = np.asfortranarray(noise(7, 8))
        stream = io.BytesIO()
        np.save(stream, image)
        content = {"whole": stream.getvalue(), "cut": stream.getvalue()[:-3], "other": b"x"}[given]
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stdin)
        assert main(["curve", "-", "--thresholds", "90.,125.5"]) == code
        rows = rows_of(capsys.readouterr().out)
        at = (90, 125.5) if code == 0 else ()
        expected = numbers_at(image, at)
        assert [int(row["euler_number"]) for row in rows] == expected

    @pytest.mark.parametrize("command", COMMANDS)
    def test_quiet(self, tmp_path, capsys, command):
        flags = ["--thresholds", "9,99", "--minkowski", "--out", str(tmp_path / "o.csv")]
        line = command_line(tmp_path, noise(7, 8), *flags)
        assert main([command, *line]) == 0
        assert "--minkowski exact: perimeters" in capsys.readouterr().err
        assert main([command, *line, "--quiet"]) == 0
        assert capsys.readouterr().err == ""
        (tmp_path / "b.npy").write_bytes(b"x")
        failed = main([command, str(tmp_path / "b.npy"), *flags, "--quiet"])
        assert failed == (1 if command == "batch" else 2)
        assert f"{tmp_path / 'b.npy'}: not an NPY file" in capsys.readouterr().err


class TestChannelNames:
    @pytest.fixture(params=["tif", "zarr"])
    def named(self, request: Any, tmp_path: Path) -> tuple[str, np.ndarray]:
        """An image with the channels DAPI and GFP."""
        image = noise(2, 20, 22)
        if request.param == "tif":
            path = tmp_path / "a.ome.tif"
            metadata = {"axes": "CYX", "Channel": {"Name": ["DAPI", "GFP"]}}
            tifffile.imwrite(path, image, metadata=metadata, photometric="minisblack")
            return str(path), image
        path = write_ome_zarr(tmp_path / "a.zarr", [image], "CYX", zarr_format=3)
        attributes = zarr.open_group(path).attrs
        named = {"omero": {"channels": [{"label": "DAPI"}, {"label": "GFP"}]}}
        attributes["ome"] = attributes["ome"] | named
        return str(path), image

    @pytest.mark.parametrize(
        ("flags", "channels"),
        [([], [0, 1]), (["--channel", "GFP"], [1]), (["--channel", "0"], [0])],
        ids=["all", "by name", "by number"],
    )
    @pytest.mark.parametrize("command", COMMANDS)
    def test_they_choose_and_are_written(self, columns, tmp_path, named, command, flags, channels):
        path, image = named
        found = columns(command, path, *flags)
        assert found["euler_number"] == [euler(image[c]) for c in channels]
        names = read_csv(tmp_path / "out.csv").to_pydict()["channel"]
        rows = 1 if command == "batch" else len(AT)
        assert names == [["DAPI", "GFP"][c] for c in channels for _ in range(rows)]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_unknown_names_are_refused(self, tmp_path, capsys, named, command):
        path, _ = named
        out = ["--thresholds", "9,", "--out", str(tmp_path / "out.csv")]
        assert main([command, path, "--channel", "Cy5", *out]) in (1, 2)
        assert "--channel must be one of 0 to 1, DAPI, GFP, got 'Cy5'" in capsys.readouterr().err

    def test_they_are_described(self, named, say):
        path, _ = named
        assert "  names   DAPI, GFP\n" in say("info", path)
