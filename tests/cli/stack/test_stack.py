"""`ecc stack` and `ecc batch`: what is computed, with which means, and what fails."""

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import tifffile
from io_helpers import columns, command_line, curves_in, rows_of, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, assert_curve, noise

import ecc_core as ecc
from ecc_core._blocks import window
from ecc_core._blocks.work import Work
from ecc_core._cli import batch
from ecc_core._io.stored import View, grown_chunks
from ecc_core.cli import main
from ecc_core.io import open_image


def test_the_range_of_bytes_is_that_of_the_type(stack, image):
    table = stack(image, "--thresholds", 18)
    at, values = ecc.euler_curve(image, 18, range=(0, 255))
    assert table["threshold"] == at.tolist()
    assert table["euler_number"] == values.tolist()


def test_other_ranges_are_estimated_and_shown(tmp_path, capsys):
    image = noise(4, 5, 6, dtype="uint16")
    path = write_zarr(tmp_path / "a.zarr", image)
    out = tmp_path / "a.csv"
    assert main(["stack", str(path), "--thresholds", "3", "--out", str(out)]) == 0
    assert capsys.readouterr().err == "ecc: range 0,8, from 1 of 1 blocks\n"
    assert columns(out)["threshold"] == [0, 4, 8]


def test_settings_are_kept_and_a_figure_is_drawn(tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image)
    out = tmp_path / "a.json"
    plot = tmp_path / "a.png"
    arguments = ["--thresholds", LEVELS, "--roi", ":,:,2:9", "--plot", str(plot)]
    assert main(["stack", str(path), "--out", str(out), *arguments]) == 0
    metadata = json.loads(out.read_text())["metadata"]
    assert metadata["settings"]["thresholds"] == list(range(9))
    assert metadata["settings"]["roi"] == [[None, None], [None, None], [2, 9]]
    described = {"path": str(path), "axes": "ZYX", "shape": [9, 20, 7], "dtype": "uint8"}
    assert metadata["inputs"] == [{**described, "spacing": None, "unit": None}]
    assert plot.stat().st_size > 0


def test_blocks_of_whole_shards_are_read(tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image, shards=(8, 8, 8))
    assert open_image(path).chunks == (8, 8, 8)
    blocks = View(open_image(path), (0, 1, 2), (3, 0, 0), (6, 20, 9), {}).chunks((8, 8, 8))
    assert blocks == ((5, 1), (8, 8, 4), (8, 1))  # Blocks end where shards do.


def test_pages_are_read_several_at_once(tmp_path, image):
    tifffile.imwrite(tmp_path / "a.tif", image)
    volume = open_image(tmp_path / "a.tif")
    assert volume.chunks == (1, 20, 17)
    assert grown_chunks(volume.chunks, image.shape, (0, 1, 2), 1, limit=1500) == (4, 20, 17)


# Labels


def test_labels_that_change_with_time(stack, tmp_path):
    image = noise(2, 3, 8, 9)
    labels = noise(2, 8, 9, seed=4)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "TCYX")
    write_ome_zarr(tmp_path / "b.zarr", [labels], "TYX")
    table = stack(path, "--thresholds", LEVELS, "--labels", tmp_path / "b.zarr", "--channel", 1)
    rows = [ecc.region_curves(image[t, 1], labels[t], np.arange(9)) for t in range(2)]
    numbers = [row.values.ravel() for row in rows]
    sizes = [of_time.size for of_time in numbers]
    assert table["t"] == np.repeat([0, 1], sizes).tolist()
    assert table["euler_number"] == np.concatenate(numbers).tolist()


def test_nothing_is_labelled(tmp_path, image):
    out = tmp_path / "a.csv"
    labelled = [image, "--labels", np.zeros_like(image)]
    assert main(["stack", *command_line(tmp_path, *labelled, "--thresholds", 5, "--out", out)]) == 0
    assert out.read_text() == "label,threshold,euler_number\n"


# Means


SECONDS = 60
"""Far more than a thread needs to start."""


class Meeting:
    """Lets the first blocks go on only when so many are being read at once."""

    def __init__(self, most: int) -> None:
        self.most, self.running, self.counts = most, 0, [0]
        self.changed = threading.Condition()

    def __enter__(self) -> None:
        with self.changed:
            self.running += 1
            self.counts.append(self.running)
            self.changed.notify_all()
            self.changed.wait_for(lambda: max(self.counts) >= self.most, SECONDS)
        time.sleep(0.001)  # Another block could begin meanwhile.

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.running -= 1


@pytest.mark.parametrize(
    ("means", "most"),
    [
        (["--workers", "1"], 1),
        (["--workers", "3"], 3),
        (["--workers", "3", "--max-memory", "700"], 2),  # Each block takes 5 times 64 bytes.
    ],
)
def test_workers_and_memory(stack, image, monkeypatch, means, most):
    meeting = Meeting(most)
    process = Work.process

    def meet(self: Work, block: tuple[int, ...]) -> Any:
        with meeting:
            return process(self, block)

    monkeypatch.setattr(Work, "process", meet)
    part = image[:, :16, :16]
    means = means if "--max-memory" in means else [*means, "--max-memory", "6000"]
    assert_curve(stack(part, "--thresholds", LEVELS, *means), part)
    assert max(meeting.counts) == most


# Batches


def run(folder: Path, *inputs: str, out: str = "table.csv", options: tuple[str, ...] = ()) -> int:
    """Run the command on files of a folder."""
    paths = [str(folder / name) for name in inputs]
    return main(["batch", *paths, "--out", str(folder / out), "--thresholds", LEVELS, *options])


def test_small_images_cost_no_files_and_no_threads(tmp_path, monkeypatch):
    """A flush to the disk, or starting a thread, takes longer than such an image."""
    for name in "abc":
        np.save(tmp_path / f"{name}.npy", noise(9, 8))
    assert run(tmp_path, "*.npy") == 0  # This compiles the kernels.
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    monkeypatch.setattr(window, "ThreadPoolExecutor", None)
    assert run(tmp_path, "*.npy") == 0
    assert len(rows_of(tmp_path / "table.csv")) == 3
    assert len(flushed) == 2  # The table and its folder are flushed.


def test_labels_of_channels(tmp_path):
    """A column for the channel and one for the label; images without channels have -1.

    All channels have the same labels, which have a channel axis of one.
    """
    image = noise(2, 5, 6, seed=3)
    labels = (noise(5, 6, seed=4) > 3).astype(np.uint8)
    write_ome_zarr(tmp_path / "labels.zarr", [labels[None]], "CYX")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["plane"] = image[0]
    write_ome_zarr(tmp_path / "b.zarr", [image], "CYX")
    options = ("--labels", str(tmp_path / "labels.zarr"))
    assert run(tmp_path, "*.h5/plane", "b.zarr", options=options) == 0
    rows = rows_of(tmp_path / "table.csv")
    assert [(row["c"], row["label"]) for row in rows] == [("-1", "1"), ("0", "1"), ("1", "1")]
    expected = [ecc.region_curves(plane, labels, np.arange(9)).values[0] for plane in image]
    assert curves_in(rows, LEVELS.split(",")) == [expected[i].tolist() for i in (0, 0, 1)]


def test_failures_are_named_and_the_others_kept(tmp_path, monkeypatch, capsys):
    images = {"a": noise(9, 8, 7), "c": noise(6, 6, 6, seed=2)}
    for name in "abcde":
        write_zarr(tmp_path / f"{name}.zarr", images.get(name, noise(12, 13)))
    (tmp_path / "b.zarr/c/1/2").write_bytes(b"damaged")
    (tmp_path / "d.zarr/zarr.json").write_text('{"zarr_format": 3,')
    (tmp_path / "f.zarr").mkdir()
    compute = batch.curves_of

    def fail(stack: Any, *rest: Any, **named: Any) -> Any:
        if Path(stack.blocks.image.source.path).stem == "e":
            raise ZeroDivisionError("division by zero")
        return compute(stack, *rest, **named)

    monkeypatch.setattr(batch, "curves_of", fail)
    assert run(tmp_path, "*.zarr", out="table.json") == 1
    errors = capsys.readouterr().err.splitlines()
    known = ("b.zarr: cannot read chunk [4:8, 8:12]: ", "d.zarr", "e.zarr: division by zero", "f")
    starts = [f"ecc: failed: {tmp_path / start}" for start in known]
    pairs = zip(sorted(errors), starts, strict=True)
    assert [line for line, start in pairs if not line.startswith(start)] == []
    table = json.loads((tmp_path / "table.json").read_text())
    assert [Path(path).stem for path in table["columns"]["input"]] == ["a", "c"]
    curves = [ecc.euler_curve(image, np.arange(9)) for image in images.values()]
    expected = np.transpose([curve.values for curve in curves])
    assert [table["columns"][level] for level in LEVELS.split(",")] == expected.tolist()
    assert len(table["metadata"]["failed"]) == 4
    assert table["metadata"]["settings"]["thresholds"] == list(range(9))


def test_all_fail(tmp_path, capsys):
    (tmp_path / "empty.zarr").mkdir()
    assert run(tmp_path, "*.zarr") == 1
    assert not (tmp_path / "table.csv").exists()
    assert capsys.readouterr().err.count("ecc: failed: ") == 1
