"""`ecc batch` on OME-Zarr plates: a row for each field and channel; interrupted runs go on."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from dask_helpers import local_cluster
from io_helpers import rows_of, write_ome_zarr
from stack_helpers import noise

import ecc_core as ecc
from ecc_core._cli import batch
from ecc_core._io.parts import Parts
from ecc_core.cli import main

LEVELS = "0,3,5,8"
WELLS = ("A/1", "A/2", "B/1", "B/2")
FIELDS = ("0", "1")


@pytest.fixture
def images(tmp_path: Path) -> dict[tuple[str, str], np.ndarray]:
    """A plate of four wells with two fields of two channels each."""
    plate = zarr.create_group(tmp_path / "p.zarr")
    described = [{"path": well} for well in WELLS]
    plate.attrs["ome"] = {"version": "0.5", "plate": {"name": "screen", "wells": described}}
    found = {}
    for number, well in enumerate(WELLS):
        group = plate.create_group(well)
        group.attrs["ome"] = {"version": "0.5", "well": {"images": [{"path": f} for f in FIELDS]}}
        for field in FIELDS:
            image = noise(2, 30, 20, seed=10 * number + int(field))
            write_ome_zarr(tmp_path / "p.zarr" / well / field, [image], "CYX", zarr_format=3)
            found[well, field] = image
    return found


@pytest.fixture
def command(tmp_path: Path, images: Any) -> list[str]:
    out = ["--out", str(tmp_path / "out.csv"), "--thresholds", LEVELS]
    return ["batch", str(tmp_path / "p.zarr"), *out]


def assert_table(path: Path, images: dict[tuple[str, str], np.ndarray]) -> None:
    rows = rows_of(path)
    at = [int(level) for level in LEVELS.split(",")]
    expected = []
    for (well, field), image in images.items():
        place = ["screen", well.replace("/", ""), *well.split("/"), field]
        for channel, plane in enumerate(image):
            numbers = ecc.euler_curve(plane, at).values.tolist()
            expected.append([*place, str(channel), *map(str, numbers)])
    names = ["plate", "well", "row", "column", "field", "c", *LEVELS.split(",")]
    assert [[row[name] for name in names] for row in rows] == expected
    assert [name for name in rows[0] if name != "input"] == names


def test_a_row_for_each_field_and_channel(command, images, tmp_path):
    assert main(command) == 0
    assert_table(tmp_path / "out.csv", images)
    assert not (tmp_path / "out.csv.parts").exists()


def test_info(command, images, tmp_path, say):
    path = str(tmp_path / "p.zarr")
    names = [f"{well.replace('/', '')}: {path}/{well}/0, {path}/{well}/1" for well in WELLS]
    lines = ["  plate   screen", *(f"  well    {name}" for name in names)]
    assert say("info", path).splitlines() == [path, *lines]
    (found,) = json.loads(say("info", path, "--json"))
    assert found["wells"]["B2"] == [f"{path}/B/2/0", f"{path}/B/2/1"]


def test_a_damaged_field(command, images, tmp_path, capsys):
    chunk = tmp_path / "p.zarr/A/2/1/0/c/0/0/0"
    chunk.write_bytes(b"damaged")
    assert main(command) == 1
    assert capsys.readouterr().err.startswith(f"ecc: failed: {tmp_path}/p.zarr/A/2/1: cannot read")
    del images["A/2", "1"]
    assert_table(tmp_path / "out.csv", images)


def test_paths_stay_inside(command, images, tmp_path, capsys):
    plate = zarr.open_group(tmp_path / "p.zarr")
    plate.attrs["ome"] = {"version": "0.5", "plate": {"wells": [{"path": "../secret"}]}}
    assert main(command) == 1  # The code for images that failed.
    assert "leaves the image: ../secret" in capsys.readouterr().err


def test_resuming(command, images, tmp_path, monkeypatch):
    """Blocks that are done are not computed again, unless their files have changed."""
    monkeypatch.setattr(batch, "LEAST_KEPT_SECONDS", 0)
    computed: list[str] = []
    compute = batch.curves_of

    def curves_of(stack: Any, *arguments: Any, **named: Any) -> Any:
        if len(computed) == 5:
            raise KeyboardInterrupt
        computed.append(str(stack.blocks.image.source.path))
        return compute(stack, *arguments, **named)

    monkeypatch.setattr(batch, "curves_of", curves_of)
    assert main(command) == 130
    assert not (tmp_path / "out.csv").exists()
    first = list(computed)
    computed.clear()
    chunk = tmp_path / "p.zarr/A/1/0/0/c/0/0/0"
    other = tmp_path / "p.zarr/A/1/1/0/c/0/0/0"
    chunk.unlink()
    chunk.write_bytes(other.read_bytes())
    images["A/1", "0"][:, :4, :4] = images["A/1", "1"][:, :4, :4]
    assert main([*command, "--resume"]) == 0
    assert_table(tmp_path / "out.csv", images)
    assert computed[0] == first[0]
    assert not set(computed[1:]) & set(first)
    assert len(computed) == 4


def test_a_killed_worker(command, images, tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "LEAST_KEPT_SECONDS", 0)
    keep = Parts.keep
    kept = []
    with local_cluster() as cluster:

        def kill_one(self: Parts, *arguments: Any) -> None:
            keep(self, *arguments)
            kept.append(arguments)
            if len(kept) == 3:
                os.kill(cluster.workers[0].pid, signal.SIGKILL)

        monkeypatch.setattr(Parts, "keep", kill_one)
        assert main([*command, "--scheduler", cluster.scheduler_address]) == 0
    assert len(kept) >= 8
    assert_table(tmp_path / "out.csv", images)
