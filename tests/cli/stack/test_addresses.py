"""`ecc stack` and `ecc batch` on images behind an address; the store is in this process."""

import json
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from io_helpers import columns, write_ome_zarr, write_zarr
from stack_helpers import LEVELS, assert_curve, noise

import ecc_core as ecc
from ecc_core._cli.errors import one_line
from ecc_core._io import retries
from ecc_core._io.parts import Parts
from ecc_core.cli import main


@pytest.fixture
def bucket(tmp_path: Path) -> Any:
    """An address that nobody else uses, and its end."""
    address = f"memory://{tmp_path.name}"
    yield address
    fsspec.filesystem("memory").rm(f"/{tmp_path.name}", recursive=True)


def test_levels_and_labels(stack, bucket, image):
    address = write_ome_zarr(f"{bucket}/a.zarr", [image, image[::2, ::2, ::2]], "ZYX")
    assert_curve(stack(address, "--thresholds", LEVELS, "--level", 1), image[::2, ::2, ::2])
    labels = (image > 3).astype(np.uint8)
    write_zarr(f"{address}/labels/cells", labels)
    table = stack(address, "--thresholds", LEVELS, "--labels", "{input}/labels/cells")
    known = ecc.region_curves(image, labels, np.arange(9)).values
    assert table["euler_number"] == known.ravel().tolist()


@pytest.mark.parametrize("change", ["none", "other", "removed"])
def test_resuming(bucket, tmp_path, monkeypatch, blocks_read, change):
    """Groups whose chunks have changed behind the address are computed again, and no others."""
    image = noise(160, 8, 8)
    address = write_zarr(f"{bucket}/a.zarr", image, chunks=(4, 8, 8))
    out = tmp_path / "a.csv"
    command = ["stack", address, "--out", str(out), "--thresholds", LEVELS, "--resume"]
    command += ["--max-memory", "3K", "--workers", "2"]
    monkeypatch.setattr(Parts, "clear", lambda _: None)
    assert main(command) == 0
    blocks_read.clear()
    files = fsspec.filesystem("memory")
    chunk = f"/{tmp_path.name}/a.zarr/c/0/0/0"
    if change == "other":
        image[:4] = 8 - image[:4]
        write_zarr(f"{bucket}/b.zarr", image, chunks=(4, 8, 8))
        files.copy(f"/{tmp_path.name}/b.zarr/c/0/0/0", chunk)
    elif change == "removed":
        image[:4] = 0
        files.rm(chunk)
    assert main(command) == 0
    assert_curve(columns(out), image)
    # A group of 16 has changed, and the block beside it reads it.
    changed = 0 if change == "none" else 17
    assert len(blocks_read) == changed


class Unsteady:
    """A store that answers the first requests for chunks of the second slab with errors."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: Exception, times: int) -> None:
        self.error, self.left, self.asked = error, times, 0
        memory = type(fsspec.filesystem("memory"))
        self.read = memory.cat_file
        monkeypatch.setattr(memory, "cat_file", lambda *given, **named: self(*given, **named))
        monkeypatch.setattr(retries, "DELAYS", (0, 0, 0))

    def __call__(self, filesystem: Any, path: str, *given: Any, **named: Any) -> bytes:
        if "/c/1/" in path:
            self.asked += 1
            if self.left:
                self.left -= 1
                raise self.error
        return self.read(filesystem, path, *given, **named)


class ServerError(Exception):
    """An error as libraries for the web raise it."""

    status = 503


@pytest.mark.parametrize("error", [OSError("SlowDown"), ServerError(), TimeoutError()])
def test_a_store_that_is_busy_is_asked_again(stack, bucket, image, monkeypatch, error):
    address = write_zarr(f"{bucket}/a.zarr", image, chunks=(4, 20, 17))
    store = Unsteady(monkeypatch, error, 3)
    assert_curve(stack(address, "--thresholds", LEVELS), image)
    assert (store.left, store.asked) == (0, 4)


def test_a_store_that_stays_busy_is_named(bucket, tmp_path, image, refuse, monkeypatch):
    """The groups of other chunks are kept, and a run that resumes asks for the rest only."""
    image = noise(160, 8, 8)
    address = write_zarr(f"{bucket}/a.zarr", image, chunks=(4, 8, 8))
    out = tmp_path / "a.csv"
    command = ["stack", address, "--out", out, "--thresholds", LEVELS, "--resume"]
    command += ["--max-memory", "3K", "--workers", "2"]
    store = Unsteady(monkeypatch, OSError("SlowDown"), 1000)
    message = refuse(*command)
    assert message == f"ecc: error: {address}: cannot read chunk [4:8, 0:8, 0:8]: SlowDown\n"
    assert len(list(tmp_path.glob("a.csv.parts/*.npy"))) == 2
    store.left = 0
    assert main([*map(str, command)]) == 0
    assert_curve(columns(out), image)


@pytest.mark.parametrize("error", [PermissionError("denied"), ValueError("checksum")])
def test_what_does_not_pass_is_not_tried_again(bucket, tmp_path, image, refuse, monkeypatch, error):
    address = write_zarr(f"{bucket}/a.zarr", image, chunks=(4, 20, 17))
    store = Unsteady(monkeypatch, error, 1000)
    line = ["--out", tmp_path / "a.csv", "--thresholds", LEVELS]
    assert str(error) in refuse("stack", address, *line)
    assert store.asked == 2  # The chunk is read, and once more to name it.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:word@host/a.zarr", "https://***@host/a.zarr"),
        ("https://h/a?X-Amz-Signature=12ab&b=1: no", "https://h/a?X-Amz-Signature=***&b=1: no"),
        ("https://h/a.zarr?sig=s3cret", "https://h/a.zarr?sig=***"),
        ("s3://bucket/a@b.zarr", "s3://bucket/a@b.zarr"),
    ],
)
def test_credentials_are_not_shown(text, shown):
    assert one_line(OSError(text)) == shown


def test_batch(bucket, tmp_path, image):
    for name, array in (("b", image), ("a", image[:5])):
        write_zarr(f"{bucket}/{name}.zarr", array)
    out = tmp_path / "a.json"
    assert main(["batch", f"{bucket}/*.zarr", "--out", str(out), "--thresholds", LEVELS]) == 0
    table = json.loads(out.read_text())["columns"]
    assert [address.rpartition("/")[2] for address in table["input"]] == ["a.zarr", "b.zarr"]
    columns = [table[level] for level in LEVELS.split(",")]
    found = np.transpose(columns).tolist()
    curves = [ecc.euler_curve(array, np.arange(9)) for array in (image[:5], image)]
    assert found == [curve.values.tolist() for curve in curves]


def test_a_corrupt_chunk(bucket, tmp_path, image, refuse):
    address = write_zarr(f"{bucket}/a.zarr", image)
    fsspec.filesystem("memory").pipe(f"/{tmp_path.name}/a.zarr/c/1/2/3", b"damaged")
    message = refuse("stack", address, "--out", tmp_path / "a.csv")
    assert f"{address}: cannot read chunk [4:8, 8:12, 12:16]: " in message
