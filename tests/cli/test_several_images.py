"""``ecc curve`` of several images: those that fail, figures beside them, and constant ones."""

import imageio.v3 as imageio
import numpy as np
import pytest
from io_helpers import noise, rows_of
from level_sets import numbers_at

from ecc_core.cli import main


@pytest.mark.parametrize("more", [[], ["--thresholds", "90,120"]], ids=["common range", "list"])
def test_others_go_on(tmp_path, capsys, more):
    """A damaged image and one of several channels are named, and the others are in the table."""
    for k in (0, 2):
        np.save(tmp_path / f"{k}.npy", noise(9, 8))
    (tmp_path / "1.npy").write_bytes(b"damaged")
    imageio.imwrite(tmp_path / "3.png", noise(9, 8, 3))
    paths = [str(tmp_path / name) for name in ("0.npy", "1.npy", "2.npy", "3.png")]
    assert main(["curve", *paths, "--quiet", *more]) == 1
    output, errors = capsys.readouterr()
    rows = rows_of(output)
    assert {row["input"] for row in rows} == {paths[0], paths[2]}
    image = noise(9, 8)
    numbers = [int(row["euler_number"]) for row in rows]
    at = [float(row["threshold"]) for row in rows]
    assert numbers == numbers_at(image, at)
    assert errors.count("ecc: failed: ") == 2
    assert f"{paths[1]}" in errors
    assert f"{paths[3]}" in errors


def test_a_pattern_leaves_out_own_figures(tmp_path, capsys):
    """A figure that was drawn in the folder of the images is no image, and it is said."""
    imageio.imwrite(tmp_path / "cells.png", noise(9, 8))
    flags = ["--out", str(tmp_path / "curve.csv"), "--plot", str(tmp_path / "curve.png")]
    assert main(["curve", str(tmp_path / "cells.png"), *flags]) == 0
    capsys.readouterr()
    assert main(["curve", str(tmp_path / "*.png")]) == 0
    output, errors = capsys.readouterr()
    assert {row["input"] for row in rows_of(output)} == {str(tmp_path / "cells.png")}
    assert "curve.png left out, a figure that ecc drew" in errors


@pytest.mark.parametrize("command", ["curve", "stack", "batch"])
def test_a_constant_image(tmp_path, command):
    """Evenly spaced thresholds of one value are one threshold."""
    np.save(tmp_path / "a.npy", np.full((5, 4), 7.0))
    out = tmp_path / "out.csv"
    flags = ["--thresholds", "3", "--range", "7,7", "--out", str(out), "--quiet"]
    assert main([command, str(tmp_path / "a.npy"), *flags]) == 0
    (row,) = rows_of(out)
    found = row["7.0"] if command == "batch" else row["euler_number"]
    assert found == "1"
    if command == "curve":
        assert main([command, str(tmp_path / "a.npy"), *flags[:2], *flags[4:]]) == 0
        assert [row["threshold"] for row in rows_of(out)] == ["7.0"]


def test_regions_from_the_end(tmp_path):
    """Negative numbers of a region count from the end, as in NumPy."""
    image = noise(12, 9)
    np.save(tmp_path / "a.npy", image)
    out = tmp_path / "out.csv"
    flags = ["--roi", ":-3,-5:", "--thresholds", "90,120", "--out", str(out), "--quiet"]
    assert main(["curve", str(tmp_path / "a.npy"), *flags]) == 0
    expected = numbers_at(image[:-3, -5:], (90, 120))
    assert [int(row["euler_number"]) for row in rows_of(out)] == expected


@pytest.mark.parametrize("more", [[], ["--betti"], ["--minkowski"], ["--components"]])
def test_a_figure_without_finite_thresholds(tmp_path, more):
    """Levels that are all infinite are in the table; there is nothing of them to draw."""
    np.save(tmp_path / "a.npy", np.array([[0, -np.inf, 0], [1, 2, 3]]))
    flags = ["--out", str(tmp_path / "o.csv"), "--plot", str(tmp_path / "o.png"), "--quiet"]
    flags += ["--thresholds=-inf,"]
    assert main(["curve", str(tmp_path / "a.npy"), *flags, *more]) == 0
    (row,) = rows_of(tmp_path / "o.csv")
    assert (row["threshold"], float(row["euler_number"])) == ("-inf", 1)
    assert (tmp_path / "o.png").stat().st_size > 0


@pytest.mark.filterwarnings("default:hardly any threshold")
@pytest.mark.parametrize("measures", [[], ["--betti", "--persistence", "2"]])
def test_batch_names_images_that_the_thresholds_miss(tmp_path, capsys, measures):
    """Those of another bit depth, said once for all; not a constant one, which may be blank."""
    image = noise(12, 9)
    images = {"a": image, "b": image.astype(np.uint16) * 256 + 300, "c": np.full_like(image, 7)}
    images |= {name: image / np.float32(512) + 0.25 for name in "defg"}
    for name, values in images.items():
        np.save(tmp_path / f"{name}.npy", values)
    paths = [tmp_path / f"{name}.npy" for name in images]
    command = ["batch", *paths, "--range", "0,255", *measures, "--out", tmp_path / "t.csv"]
    for again in ([], ["--resume"]):
        assert main([*map(str, command), *again]) == 0
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(
            "ecc: warning: hardly any threshold from 0 to 255 lies among the values of 5 of 7 "
            f"images: {paths[1]} ("
        )
        assert line.endswith("), and 2 more")
        assert str(paths[4]) in line
        assert str(paths[0]) not in line


@pytest.mark.filterwarnings("default:hardly any threshold")
@pytest.mark.parametrize(("given", "said"), [(["--range", "0,255"], True), ([], False)])
def test_stack_says_that_the_thresholds_miss_the_image(tmp_path, capsys, given, said):
    """Thresholds that are given, as of another bit depth; those over the range never miss it."""
    path = tmp_path / "b.npy"
    np.save(path, noise(12, 9).astype(np.uint16) * 256 + 300)
    command = ["stack", str(path), *given, "--out", str(tmp_path / "t.csv")]
    assert main(command) == 0
    errors = capsys.readouterr().err
    words = f"{path}: hardly any threshold from 0 to 255 lies among the values of the image, which"
    assert (words in errors) == said
