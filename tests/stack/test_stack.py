"""`ecc stack`: images on the disk, block by block."""

import json
from pathlib import Path

import numpy as np
import pytest
import tifffile
import zarr

import ecc_core as ecc
from ecc_core.cli import main


def write_ome(path: Path, images: list[np.ndarray], axes: str, *, version: str) -> Path:
    group = zarr.create_group(path, zarr_format=2 if version == "0.4" else 3)
    for level, image in enumerate(images):
        array = group.create_array(
            str(level), shape=image.shape, dtype=image.dtype, chunks=(4,) * image.ndim
        )
        array[...] = image
    described = [
        {
            "axes": [{"name": name} for name in axes.lower()],
            "datasets": [{"path": str(level)} for level in range(len(images))],
        }
    ]
    if version == "0.4":
        group.attrs["multiscales"] = described
    else:
        group.attrs["ome"] = {"version": version, "multiscales": described}
    return path


# What can be read


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_zarr(stack, tmp_path, zarr_format, dtype, noise, write_zarr, assert_curve, levels):
    image = noise(9, 20, 17, dtype=dtype)
    path = write_zarr(tmp_path / "a.zarr", image, zarr_format=zarr_format)
    assert_curve(stack(path, "--thresholds", levels), image)


def test_zarr_shards(stack, tmp_path, image, write_zarr, assert_curve, levels):
    path = write_zarr(tmp_path / "a.zarr", image, shards=(8, 8, 8))
    assert_curve(stack(path, "--thresholds", levels), image)


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_ome_zarr(stack, tmp_path, image, version, assert_curve, levels):
    path = write_ome(tmp_path / "a.zarr", [image, image[::2, ::2, ::2]], "ZYX", version=version)
    assert_curve(stack(path, "--thresholds", levels), image)
    assert_curve(stack(path, "--thresholds", levels, "--level", 1), image[::2, ::2, ::2])


@pytest.mark.parametrize("compression", [None, "zlib"])
def test_tiff(stack, tmp_path, image, compression, assert_curve, levels):
    tifffile.imwrite(tmp_path / "a.tif", image, compression=compression)
    assert_curve(stack(tmp_path / "a.tif", "--thresholds", levels), image)


def test_a_folder_of_tiff_files(stack, tmp_path, image, assert_curve, levels):
    folder = tmp_path / "slices"
    folder.mkdir()
    for i, plane in enumerate(image):
        tifffile.imwrite(folder / f"{i:03d}.tif", plane)
    assert_curve(stack(folder, "--thresholds", levels), image)


@pytest.mark.parametrize("shape", [(50,), (20, 17), (9, 20, 17)])
def test_npy(stack, tmp_path, shape, noise, assert_curve, levels):
    image = noise(*shape)
    np.save(tmp_path / "a.npy", image)
    assert_curve(stack(tmp_path / "a.npy", "--thresholds", levels), image)


# What is computed


def test_batch_axes(stack, tmp_path, noise, levels):
    image = noise(2, 3, 9, 8, 7)
    path = write_ome(tmp_path / "a.zarr", [image], "TCZYX", version="0.5")
    table = stack(path, "--thresholds", levels)
    expected = ecc.euler_curve(image, np.arange(9), axis=(2, 3, 4)).values
    assert table["euler_number"] == expected.ravel().tolist()
    assert table["t"] == np.repeat([0, 1], 27).tolist()
    assert table["c"] == np.tile(np.repeat([0, 1, 2], 9), 2).tolist()
    table = stack(path, "--thresholds", levels, "--channel", 2)
    assert table["euler_number"] == expected[:, 2].ravel().tolist()
    assert "c" not in table


def test_a_region(stack, tmp_path, image, write_zarr, assert_curve, levels):
    path = write_zarr(tmp_path / "a.zarr", image)
    table = stack(path, "--thresholds", levels, "--roi", "2:7,:,3:")
    assert_curve(table, image[2:7, :, 3:])


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("superlevel", [False, True])
def test_settings(
    stack, tmp_path, image, connectivity, superlevel, write_zarr, assert_curve, levels
):
    path = write_zarr(tmp_path / "a.zarr", image)
    flags = ["--superlevel"] if superlevel else []
    table = stack(path, "--thresholds", levels, "--connectivity", connectivity, *flags)
    assert_curve(table, image, connectivity=connectivity, superlevel=superlevel)


def test_omitted_nan(stack, tmp_path, noise, write_zarr, assert_curve, levels):
    image = noise(9, 8, 7, dtype="float32")
    image[3, 3, 3:5] = np.nan
    path = write_zarr(tmp_path / "a.zarr", image)
    assert_curve(stack(path, "--thresholds", levels, "--nan", "omit"), image, nan="omit")


def test_the_range_of_bytes_is_that_of_the_type(stack, tmp_path, image, write_zarr):
    path = write_zarr(tmp_path / "a.zarr", image)
    table = stack(path, "--thresholds", 18)
    at, values = ecc.euler_curve(image, 18, range=(0, 255))
    assert table["threshold"] == at.tolist()
    assert table["euler_number"] == values.tolist()


def test_other_ranges_are_estimated_and_shown(tmp_path, capsys, noise, write_zarr, columns):
    image = noise(4, 5, 6, dtype="uint16")
    path = write_zarr(tmp_path / "a.zarr", image)
    out = tmp_path / "a.csv"
    assert main(["stack", str(path), "--thresholds", "3", "--out", str(out)]) == 0
    assert capsys.readouterr().err == "ecc: range 0,8, from 1 of 1 blocks\n"
    assert columns(out)["threshold"] == [0, 4, 8]


def test_settings_are_kept_and_a_figure_is_drawn(tmp_path, image, write_zarr, levels):
    path = write_zarr(tmp_path / "a.zarr", image)
    out, plot = tmp_path / "a.json", tmp_path / "a.png"
    arguments = ["--thresholds", levels, "--roi", ":,:,2:9", "--plot", str(plot)]
    assert main(["stack", str(path), "--out", str(out), *arguments]) == 0
    metadata = json.loads(out.read_text())["metadata"]
    assert metadata["settings"]["thresholds"] == list(range(9))
    assert metadata["settings"]["roi"] == [[None, None], [None, None], [2, 9]]
    assert metadata["inputs"] == [{"path": str(path), "shape": [9, 20, 7], "dtype": "uint8"}]
    assert plot.stat().st_size > 0


# Bad input


def test_bad_images(refused, tmp_path, image, write_zarr):
    assert "no such file or folder" in refused(tmp_path / "none.zarr")
    (tmp_path / "empty").mkdir()
    assert "holds neither a Zarr image nor TIFF files" in refused(tmp_path / "empty")
    (tmp_path / "a.txt").write_text("text")
    assert "must be a Zarr or TIFF folder" in refused(tmp_path / "a.txt")
    (tmp_path / "a.tif").write_bytes(b"II*\0 nothing")
    assert str(tmp_path / "a.tif") in refused(tmp_path / "a.tif")
    zarr.create_group(tmp_path / "group.zarr").create_array("x", shape=(2, 2), dtype="u1")
    assert "is no OME-Zarr image; arrays in this group: x" in refused(tmp_path / "group.zarr")
    path = write_zarr(tmp_path / "complex.zarr", image.astype("complex64"))
    assert "`image` must be of booleans, integers or real floats" in refused(path)


def test_objects_are_refused(refused, tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}, {}]), allow_pickle=True)
    assert "Python objects in dtype" in refused(tmp_path / "a.npy")


def test_levels(refused, tmp_path, image, write_zarr):
    path = write_ome(tmp_path / "a.zarr", [image], "ZYX", version="0.5")
    assert "has levels 0 to 0, got level 3" in refused(path, "--level", 3)
    plain = write_zarr(tmp_path / "plain.zarr", image)
    assert "is an array without levels, got level 1" in refused(plain, "--level", 1)


@pytest.mark.parametrize("escape", ["../secret", "/secret", "0/../../secret"])
def test_paths_stay_inside(refused, tmp_path, image, escape, write_zarr):
    write_zarr(tmp_path / "secret", image)
    path = write_ome(tmp_path / "a.zarr", [image], "ZYX", version="0.5")
    group = zarr.open_group(path)
    described = group.attrs["ome"]
    described["multiscales"][0]["datasets"][0]["path"] = escape
    group.attrs["ome"] = described
    assert f"the path of level 0 leaves the image: {escape}" in refused(path)


def test_a_corrupt_chunk(refused, tmp_path, image, write_zarr):
    path = write_zarr(tmp_path / "a.zarr", image)
    (path / "c" / "1" / "2" / "3").write_bytes(b"damaged")
    message = refused(path)
    assert f"{path}: cannot read chunk [4:8, 8:12, 12:16]: " in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--range", "300,400"], "--range 300,400 has no value of uint8"),
        (["--range", "4,1"], "`range` must be finite with low <= high"),
        (["--thresholds", "2,1"], "`thresholds` must be increasing"),
        (["--thresholds", "1,2", "--range", "0,1"], "--range must be left out"),
        (["--thresholds", "exact"], "--thresholds must be a number or a list"),
        (["--connectivity", "2"], "`connectivity` must be 1 or 3"),
        (["--roi", ":,:"], "--roi must have a range for each of the axes ZYX, got 2"),
        (["--channel", "0"], "--channel must be left out, there is no axis C, got 0"),
        (["--axes", "YX"], "`axes` must be one letter per axis"),
        (["--axes", "ABC"], "none of its axes ABC is Z, Y or X"),
        (["--max-memory", "1"], "need --max-memory of at least 1M"),
    ],
)
def test_bad_arguments(refused, tmp_path, image, arguments, message, write_zarr):
    assert message in refused(write_zarr(tmp_path / "a.zarr", image), *arguments)
