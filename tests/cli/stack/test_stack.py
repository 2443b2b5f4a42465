"""`ecc stack`: what is computed, and with which means."""

import json
import threading
import time
from typing import Any

import numpy as np
import pytest
from io_helpers import columns, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, assert_curve, noise

import ecc_core as ecc
from ecc_core._blocks.work import Work
from ecc_core.cli import main


def test_batch_axes(stack, tmp_path):
    image = noise(2, 3, 9, 8, 7)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "TCZYX")
    table = stack(path, "--thresholds", LEVELS)
    expected = ecc.euler_curve(image, np.arange(9), axis=(2, 3, 4)).values
    assert table["euler_number"] == expected.ravel().tolist()
    assert table["t"] == np.repeat([0, 1], 27).tolist()
    assert table["c"] == np.tile(np.repeat([0, 1, 2], 9), 2).tolist()
    table = stack(path, "--thresholds", LEVELS, "--channel", 2)
    assert table["euler_number"] == expected[:, 2].ravel().tolist()
    assert "c" not in table


def test_omitted_nan(stack, tmp_path):
    image = noise(9, 8, 7, dtype="float32")
    image[3, 3, 3:5] = np.nan
    path = write_zarr(tmp_path / "a.zarr", image)
    assert_curve(stack(path, "--thresholds", LEVELS, "--nan", "omit"), image, nan="omit")


def test_the_range_of_bytes_is_that_of_the_type(stack, tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image)
    table = stack(path, "--thresholds", 18)
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
    out, plot = tmp_path / "a.json", tmp_path / "a.png"
    arguments = ["--thresholds", LEVELS, "--roi", ":,:,2:9", "--plot", str(plot)]
    assert main(["stack", str(path), "--out", str(out), *arguments]) == 0
    metadata = json.loads(out.read_text())["metadata"]
    assert metadata["settings"]["thresholds"] == list(range(9))
    assert metadata["settings"]["roi"] == [[None, None], [None, None], [2, 9]]
    described = {"path": str(path), "axes": "ZYX", "shape": [9, 20, 7], "dtype": "uint8"}
    assert metadata["inputs"] == [{**described, "spacing": None, "unit": None}]
    assert plot.stat().st_size > 0


# Directions


def test_a_direction(stack, tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image)
    given = ["--direction", "-1,0.5,2", "--direction-scale", 0.25, "--spacing", "2,1,0.5"]
    table = stack(path, *given, "--range", "-5,12", "--thresholds", 30, "--roi", ":,3:,:")
    tilt = {"direction": (-1, 0.5, 2), "direction_scale": 0.25, "spacing": (2, 1, 0.5)}
    at, values = ecc.euler_curve(image[:, 3:], 30, range=(-5, 12), **tilt)
    assert table["threshold"] == at.tolist()
    assert table["euler_number"] == values.tolist()


# Labels


def assert_regions(table: dict[str, list[float]], image: Any, labels: Any, **options: Any) -> None:
    ids, _, values = ecc.region_curves(image, labels, np.arange(9), **options)
    assert table["label"] == np.repeat(ids, 9).tolist()
    assert table["threshold"] == np.tile(np.arange(9), ids.size).tolist()
    assert table["euler_number"] == values.ravel().tolist()


@pytest.fixture
def labels(image: np.ndarray) -> np.ndarray:
    """Labels that touch and cross chunks."""
    coarse = noise(3, 4, 4, seed=5).repeat(5, 0).repeat(5, 1).repeat(5, 2)
    return coarse[: image.shape[0], : image.shape[1], : image.shape[2]].astype(np.uint16) * 100


@pytest.mark.parametrize("connectivity", [1, 3])
def test_labels(stack, tmp_path, image, labels, connectivity):
    path = write_zarr(tmp_path / "a.zarr", image)
    other = write_zarr(tmp_path / "a_labels.zarr", labels, chunks=(3, 7, 5))
    arguments = ["--thresholds", LEVELS, "--connectivity", connectivity]
    table = stack(path, *arguments, "--labels", other)
    assert_regions(table, image, labels, connectivity=connectivity)
    table = stack(path, *arguments, "--labels", "{stem}_labels.zarr", "--roi", "1:,2:9,:11")
    part = (slice(1, None), slice(2, 9), slice(11))
    assert_regions(table, image[part], labels[part], connectivity=connectivity)


def test_labels_and_omitted_nan(stack, tmp_path, image, labels):
    image = image.astype(np.float32)
    missing = image == 3
    image[missing] = np.nan
    np.save(tmp_path / "labels.npy", labels)
    path = write_zarr(tmp_path / "a.zarr", image)
    arguments = ["--thresholds", LEVELS, "--labels", tmp_path / "labels.npy"]
    table = stack(path, *arguments, "--nan", "omit")
    assert_regions(table, np.nan_to_num(image), np.where(missing, 0, labels))


def test_labels_of_an_ome_zarr_image(stack, tmp_path, labels):
    """All channels have the same labels, which have a channel axis of one."""
    image = noise(2, *labels.shape)
    path = write_ome_zarr(tmp_path / "a.ome.zarr", [image], "CZYX")
    write_ome_zarr(path / "labels" / "cells", [labels[None]], "CZYX")
    table = stack(path, "--thresholds", LEVELS, "--labels", "{input}/labels/cells")
    ids = np.setdiff1d(labels, [0])
    expected = [ecc.region_curves(channel, labels, np.arange(9)).values for channel in image]
    assert table["c"] == np.repeat([0, 1], ids.size * 9).tolist()
    assert table["label"] == np.tile(np.repeat(ids, 9), 2).tolist()
    assert table["euler_number"] == np.ravel(expected).tolist()


def test_labels_that_change_with_time(stack, tmp_path):
    image, labels = noise(2, 3, 8, 9), noise(2, 8, 9, seed=4)
    path = write_ome_zarr(tmp_path / "a.zarr", [image], "TCYX")
    write_ome_zarr(tmp_path / "b.zarr", [labels], "TYX")
    table = stack(path, "--thresholds", LEVELS, "--labels", tmp_path / "b.zarr", "--channel", 1)
    rows = [ecc.region_curves(image[t, 1], labels[t], np.arange(9)) for t in range(2)]
    assert table["t"] == np.repeat([0, 1], [9 * row.labels.size for row in rows]).tolist()
    assert table["euler_number"] == np.concatenate([r.values.ravel() for r in rows]).tolist()


def test_nothing_is_labelled(tmp_path, image):
    path = write_zarr(tmp_path / "a.zarr", image)
    np.save(tmp_path / "labels.npy", np.zeros_like(image))
    out = tmp_path / "a.csv"
    arguments = ["--thresholds", LEVELS, "--labels", str(tmp_path / "labels.npy")]
    assert main(["stack", str(path), "--out", str(out), *arguments]) == 0
    assert out.read_text() == "label,threshold,euler_number\n"


# Means


SECONDS = 60  # far more than a thread needs to start


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
        time.sleep(0.001)  # the moment in which another block could be begun

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.running -= 1


@pytest.mark.parametrize(
    ("means", "most"),
    [
        (["--workers", "1"], 1),
        (["--workers", "3"], 3),
        (["--workers", "3", "--max-memory", "700"], 2),  # of 5 times 64 bytes for each block
    ],
)
def test_workers_and_memory(stack, tmp_path, image, monkeypatch, means, most):
    meeting, emit = Meeting(most), Work.emit

    def meet(self: Work, block: tuple[int, ...]) -> Any:
        with meeting:
            return emit(self, block)

    monkeypatch.setattr(Work, "emit", meet)
    path = write_zarr(tmp_path / "a.zarr", image[:, :16, :16])
    means = means if "--max-memory" in means else [*means, "--max-memory", "6000"]
    assert_curve(stack(path, "--thresholds", LEVELS, *means), image[:, :16, :16])
    assert max(meeting.counts) == most
