"""Files that would run code, or have other files read."""

import json
from pathlib import Path

import h5py
import numcodecs
import numpy as np
import pytest
from io_helpers import noise, write_hdf5, write_zarr


class TestForeignCode:
    @pytest.mark.parametrize("where", ["filters", "compressor"])
    def test_zarr_arrays_are_not_unpickled(self, refused, tmp_path, where):
        class Trap:
            def __reduce__(self) -> tuple[object, ...]:
                return Path.touch, (tmp_path / "loaded",)

        path = tmp_path / "a.zarr"
        path.mkdir()
        codec = {"id": "pickle", "protocol": 5}
        described = {
            "zarr_format": 2,
            "shape": [4, 4],
            "chunks": [4, 4],
            "dtype": "|u1",
            "order": "C",
            "fill_value": 0,
            "filters": None,
            "compressor": None,
        }
        described[where] = [codec] if where == "filters" else codec
        (path / ".zarray").write_text(json.dumps(described))
        trap = np.empty(1, object)
        trap[0] = Trap()
        (path / "0.0").write_bytes(numcodecs.Pickle().encode(trap))
        assert "pickled Python objects, which are never loaded" in refused(path)
        assert not (tmp_path / "loaded").exists()

    def test_hdf5_values_in_other_files(self, refused, tmp_path):
        noise(4, 5).tofile(tmp_path / "secret.bin")
        write_hdf5(tmp_path / "secret.h5", noise(4, 5))
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file.create_dataset("raw", (4, 5), "u1", external=str(tmp_path / "secret.bin"))
        layout = h5py.VirtualLayout((4, 5), "u1")
        layout[...] = h5py.VirtualSource(tmp_path / "secret.h5", "raw", (4, 5))
        with h5py.File(tmp_path / "b.h5", "w") as file:
            file.create_virtual_dataset("raw", layout)
        for name in ("a.h5", "b.h5"):
            assert "the values of raw lie in other files, which are not read" in refused(
                tmp_path / name
            )

    @pytest.mark.parametrize("zarr_format", [2, 3])
    def test_a_folder_in_the_place_of_a_chunk(self, refused, tmp_path, zarr_format):
        write_zarr(tmp_path / "a.zarr", noise(9, 9), zarr_format=zarr_format)
        chunk = tmp_path / "a.zarr" / ("0.0" if zarr_format == 2 else "c/0/0")
        chunk.unlink()
        chunk.mkdir()
        assert f"{chunk} is a folder" in refused(tmp_path / "a.zarr")

    def test_zarr_chunks_of_size_0(self, refused, tmp_path):
        write_zarr(tmp_path / "a.zarr", noise(9, 9))
        file = tmp_path / "a.zarr" / "zarr.json"
        described = json.loads(file.read_text())
        described["chunk_grid"]["configuration"]["chunk_shape"] = [0, 8]
        file.write_text(json.dumps(described))
        assert str(tmp_path / "a.zarr") in refused(tmp_path / "a.zarr")
