"""`ecc stack`: bad input gives one line that says what is wrong, and exit code 2."""

from importlib.util import find_spec

import dask
import h5py
import pytest
import zarr
from dask_helpers import local_cluster
from io_helpers import write_ome_zarr, write_zarr
from stack_helpers import noise

from ecc_core._io.parts import Parts
from ecc_core.cli import main


def test_complex_numbers(refused, tmp_path, image):
    path = write_zarr(tmp_path / "complex.zarr", image.astype("complex64"))
    assert "the image must have a boolean, integer or real floating dtype" in refused(path)


def test_levels(refused, tmp_path, image):
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "ZYX")
    assert "has levels 0 to 0, got level 3" in refused(path, "--level", 3)
    plain = write_zarr(tmp_path / "plain.zarr", image)
    assert "has levels 0 to 0, got level 1" in refused(plain, "--level", 1)


@pytest.mark.parametrize("escape", ["../secret", "/secret", "0/../../secret"])
def test_paths_stay_inside(refused, tmp_path, image, escape):
    write_zarr(tmp_path / "secret", image)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "ZYX", zarr_format=3)
    group = zarr.open_group(path)
    described = group.attrs["ome"]
    described["multiscales"][0]["datasets"][0]["path"] = escape
    group.attrs["ome"] = described
    assert f"the path of level 0 leaves the image: {escape}" in refused(path)


def test_truncated_hdf5(refused, tmp_path):
    (tmp_path / "a.h5").write_bytes(b"\x89HDF\r\n")
    assert str(tmp_path / "a.h5") in refused(tmp_path / "a.h5")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["text"] = "abc"
    assert "the dataset text is a single value" in refused(tmp_path / "b.h5")


@pytest.mark.skipif(find_spec("cupy") is not None, reason="CuPy is installed")
def test_no_cuda(refused, tmp_path, image):
    message = refused(write_zarr(tmp_path / "a.zarr", image), "--device", "cuda")
    assert "--device cuda needs cupy: pip install 'napari-ecc[cuda12]'" in message


def test_no_cluster(refused, tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image)
    with dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}):
        assert "127.0.0.1:1" in refused(path, "--scheduler", "tcp://127.0.0.1:1")


def test_a_lost_cluster(tmp_path, capsys, monkeypatch):
    """Parts that are done stay, and the log of dask is not shown."""
    path = write_zarr(tmp_path / "a.zarr", noise(40, 40, 40), chunks=(8, 8, 8))
    out = tmp_path / "curve.csv"
    cluster = local_cluster(n_workers=1, processes=False)
    keep = Parts.keep

    def lose(self, *arguments):
        keep(self, *arguments)
        monkeypatch.setattr(Parts, "keep", keep)
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"})
        cluster.close()

    monkeypatch.setattr(Parts, "keep", lose)
    address = cluster.scheduler_address
    command = ["stack", str(path), "--out", str(out), "--max-memory", "6K", "--workers", "2"]
    with dask.config.set({"distributed.comm.timeouts.connect": "60s"}):
        assert main([*command, "--range", "0,8", "--scheduler", address]) == 2
    message = capsys.readouterr().err
    assert message.startswith(f"ecc: error: --scheduler {address}: the cluster was lost")
    assert message.count("\n") == 1
    assert not out.exists()
    assert list(tmp_path.glob("curve.csv.parts/*.npy"))
    assert main([*command, "--range", "0,8", "--resume"]) == 0
