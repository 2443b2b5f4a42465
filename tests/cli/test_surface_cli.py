"""The command `ecc surface` writes what `euler_surface` returns."""

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result

FIRST, SECOND = np.random.default_rng(0).integers(0, 9, (2, 7, 11), dtype=np.uint8)


@pytest.fixture
def paths(tmp_path):
    for name, image in (("first", FIRST), ("second", SECOND / 10), ("both", [FIRST, SECOND])):
        np.save(tmp_path / f"{name}.npy", image)
    return [str(tmp_path / f"{name}.npy") for name in ("first", "second", "both")]


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".json"])
def test_files(paths, suffix, tmp_path):
    out, picture = tmp_path / f"s{suffix}", tmp_path / "s.png"
    assert main(["surface", *paths[:2], "--out", str(out), "--plot", str(picture)]) == 0
    assert read_result(out) == ecc.euler_surface(FIRST, SECOND / 10)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_options(paths, tmp_path):
    out = tmp_path / "s.npz"
    options = ["--thresholds-first", "1,4", "--thresholds-second", "5", "--range-second", "-1,1"]
    options += ["--connectivity", "1", "--superlevel", "second"]
    assert main(["surface", *paths[:2], "--out", str(out), *options]) == 0
    expected = ecc.euler_surface(
        FIRST,
        SECOND / 10,
        [1, 4],
        5,
        range_second=(-1, 1),
        connectivity=1,
        superlevel=(False, True),
    )
    assert read_result(out) == expected


def test_channels_of_one_file(paths, tmp_path):
    out = tmp_path / "s.npz"
    command = ["surface", paths[2], paths[2], "--axes", "CYX", "--channel", "0"]
    assert main([*command, "--second-channel", "1", "--out", str(out)]) == 0
    assert read_result(out) == ecc.euler_surface(FIRST, SECOND)


def test_an_error_names_both_images(tmp_path, refuse):
    image = np.random.default_rng(0).random((6, 7))
    np.save(tmp_path / "a.npy", image)
    image[2, 3] = np.nan
    np.save(tmp_path / "b.npy", image)
    command = ["surface", str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    message = refuse(*command, "--out", tmp_path / "out.npz")
    assert "a.npy" in message
    assert "b.npy: " in message
    assert not (tmp_path / "out.npz").exists()
