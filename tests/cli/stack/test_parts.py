"""`ecc stack --part` and `ecc merge`: the table of one run, byte by byte, or an error."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_helpers import write_ome_zarr, write_zarr
from stack_helpers import LEVELS, failing_after, noise

from ecc_core._io.blocks import Blocks
from ecc_core.cli import main
from ecc_core.io import merge_parts, read_part

SHAPE = (19, 20, 17)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are the stored chunks."""
    monkeypatch.setattr("ecc_core._cli.block_sizes.BLOCK_BYTES", 1)


@pytest.fixture
def parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Compute parts of an image, and return their files."""

    def files(path: Any, numbers: Sequence[str], *flags: object) -> list[Path]:
        found = []
        for number in numbers:
            out = tmp_path / f"{Path(path).stem}-{number.replace('/', '-of-')}.npz"
            line = ["stack", path, "--part", number, "--out", out, *flags]
            assert main([*map(str, line)]) == 0, capsys.readouterr().err
            found.append(out)
        assert not list(tmp_path.glob("*.parts"))
        capsys.readouterr()
        return found

    return files


@pytest.fixture
def whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Compute an image in one piece, and return the content of the table."""

    def content(path: Any, *flags: object, suffix: str = ".csv") -> bytes:
        out = tmp_path / f"whole{suffix}"
        assert main([*map(str, ["stack", path, "--out", out, *flags])]) == 0
        capsys.readouterr()
        return out.read_bytes()

    return content


def merged(files: Sequence[object], out: Path) -> bytes:
    assert main([*map(str, ["merge", *files, "--out", out])]) == 0
    return out.read_bytes()


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """An image of 27 chunks."""
    return write_zarr(tmp_path / "a.zarr", noise(*SHAPE), chunks=(8, 8, 8))


WINDOW = ["--boundary", "half-open", "--mask", "{folder}/mask.npy"]
LABELS = ["--labels", "{folder}/mask.npy"]


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["--connectivity", "1", "--superlevel"],
        ["--boundary", "closed,periodic,half-open"],
        ["--minkowski", "crofton-13", "--density", "--spacing", "2,1,0.5"],
        ["--betti"],
        ["--components", "--betti", "--connectivity", "1", "--superlevel"],
        ["--betti", "--minkowski", "exact", "--mask", "{folder}/mask.npy"],
        LABELS,
        [*LABELS, "--minkowski", "exact", "--boundary", "periodic"],
        WINDOW,
        [*WINDOW, "--minkowski", "crofton-13", "--density"],
        ["--boundary", "half-open", *LABELS, "--minkowski", "exact"],
        ["--smooth", "0.2"],
        ["--direction", "1,2,0"],
        ["--roi", "1:,:-2,3:"],
    ],
    ids=" ".join,
)
def test_the_table_of_one_run(tmp_path, stored, parts, whole, flags):
    np.save(tmp_path / "mask.npy", noise(*SHAPE, seed=1) // 3)
    flags = [flag.format(folder=tmp_path) for flag in flags]
    flags += ["--thresholds", LEVELS]
    files = parts(stored, ["3/3", "1/3", "2/3"], *flags, "--workers", 1)
    expected = whole(stored, *flags, "--workers", 2)
    assert merged(files, tmp_path / "merged.csv") == expected


@pytest.mark.parametrize("more", [[], ["--labels", "{}/l.zarr"], ["--betti"]], ids=str)
def test_axes_other_than_space(tmp_path, parts, whole, more):
    """Channels, with and without labels, and the metadata of JSON."""
    path = write_ome_zarr(tmp_path / "a.zarr", [noise(2, 3, 9, 8)], "TCYX")
    write_ome_zarr(tmp_path / "l.zarr", [noise(2, 9, 8, seed=4) // 4], "TYX")
    flags = ["--thresholds", LEVELS, *[flag.format(tmp_path) for flag in more]]
    files = parts(path, ["1/3", "2/3", "3/3"], *flags)
    assert merged(files, tmp_path / "m.json") == whole(path, *flags, suffix=".json")


@pytest.mark.parametrize("chunks", [(1, 20, 17), (19, 3, 17)])
def test_rows_of_blocks(tmp_path, parts, whole, chunks):
    """Any two boxes that touch are joined."""
    path = write_zarr(tmp_path / "a.zarr", noise(*SHAPE), chunks=chunks)
    flags = ["--thresholds", LEVELS, "--betti"]
    files = parts(path, ["1/3", "2/3", "3/3"], *flags)
    assert merged(files[::-1], tmp_path / "merged.csv") == whole(path, *flags)


def test_as_many_parts_as_blocks(tmp_path, parts, whole, refuse):
    path = write_zarr(tmp_path / "a.zarr", noise(8, 7, 5))
    flags = ["--thresholds", LEVELS, "--betti"]
    files = parts(path, [f"{i + 1}/8" for i in range(8)], *flags)
    assert merged([tmp_path / "a-*.npz"], tmp_path / "m.csv") == whole(path, *flags)
    assert len(files) == 8
    message = refuse("stack", path, "--part", "3/9", "--out", tmp_path / "p.npz", *flags)
    reason = "--part must be I/N with N of at most 8, as the image has no more blocks, got 3/9"
    assert message == f"ecc: error: {reason}\n"


def test_the_estimated_range_is_that_of_one_run(tmp_path, parts, whole):
    path = write_zarr(tmp_path / "a.zarr", noise(*SHAPE, dtype="uint16"))
    files = parts(path, ["1/2", "2/2"], "--thresholds", 9)
    expected = whole(path, "--thresholds", 9, "--workers", 8)
    assert merged(files, tmp_path / "merged.csv") == expected


def test_other_divisions_fit_if_they_do_not_overlap(tmp_path, stored, parts, whole, refuse):
    flags = ["--thresholds", LEVELS]
    half, third, quarter, last = parts(stored, ["1/2", "2/3", "3/4", "4/4"], *flags)
    assert merged([last, half, quarter], tmp_path / "m.csv") == whole(stored, *flags)
    message = refuse("merge", half, third, quarter, "--out", tmp_path / "n.csv")
    assert f"{third}, part 2/3, and {half}, part 1/2, overlap" in message
    message = refuse("merge", half, last, "--out", tmp_path / "n.csv")
    assert "parts are missing: the blocks from 1/2 to 3/4 of all" in message
    assert not (tmp_path / "n.csv").exists()


def test_repeated_and_missing_parts(tmp_path, stored, parts, whole, refuse, capsys):
    flags = ["--thresholds", LEVELS]
    first, second, third = parts(stored, ["1/3", "2/3", "3/3"], *flags)
    again = tmp_path / "again.npz"
    again.write_bytes(second.read_bytes())
    assert merged([first, second, third, again], tmp_path / "m.csv") == whole(stored, *flags)
    arguments = ["merge", first, second, third, again, "--out", tmp_path / "m.csv"]
    assert main([*map(str, arguments)]) == 0
    message = f"{again}, part 2/3, and {second}, part 2/3, are the same: it is counted once"
    assert capsys.readouterr().err == f"ecc: {message}\n"
    with pytest.warns(UserWarning, match="are the same"):
        merge_parts([first, second, third, again])
    message = refuse("merge", second, "--out", tmp_path / "n.csv")
    assert message == "ecc: error: parts are missing: 1/3, 3/3\n"


SPACED = LEVELS.replace(",", ", ")
OTHER_OPTIONS = {
    "--connectivity 1": "computed with --connectivity 1, not without --connectivity",
    "--thresholds 0,1": f"computed with --thresholds [0, 1], not with --thresholds [{SPACED}]",
    "--betti": "computed with --betti, not without --betti",
}


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        *((flags.split(), f"it was {reason}") for flags, reason in OTHER_OPTIONS.items()),
        (["--roi", "1:,:,:"], "another image, its shape is [18, 20, 17], not [19, 20, 17]"),
    ],
)
def test_parts_of_other_options(tmp_path, stored, parts, refuse, flags, reason):
    usual = ["--thresholds", LEVELS]
    (first,) = parts(stored, ["1/2"], *usual)
    (second,) = parts(stored, ["2/2"], *usual, *flags)
    message = refuse("merge", first, second, "--out", tmp_path / "m.csv")
    assert message == f"ecc: error: {second}: does not belong to {first}: {reason}\n"


def test_parts_of_other_blocks(tmp_path, stored, parts, refuse, monkeypatch):
    """Parts differ where --max-memory does."""
    (first,) = parts(stored, ["1/2"], "--thresholds", LEVELS)
    monkeypatch.setattr("ecc_core._cli.block_sizes.BLOCK_BYTES", 1 << 11)
    (second,) = parts(stored, ["2/2"], "--thresholds", LEVELS)
    message = refuse("merge", first, second, "--out", tmp_path / "m.csv")
    assert "it was cut into other blocks: give the same --max-memory" in message


@pytest.mark.parametrize("name", ["a", "b"])
def test_parts_of_another_image(tmp_path, stored, parts, refuse, name):
    """The other image has another name, or the same name and shape in another folder."""
    (tmp_path / "other").mkdir()
    other = write_zarr(tmp_path / "other" / f"{name}.zarr", noise(*SHAPE, seed=1))
    flags = ["--thresholds", LEVELS]
    (first,), (second,) = parts(stored, ["1/2"], *flags), parts(other, ["2/2"], *flags)
    reason = "some of its values differ" if name == "a" else "it is b.zarr, not a.zarr"
    message = refuse("merge", first, second, "--out", tmp_path / "m.csv")
    assert message.endswith(f"does not belong to {first}: another image, {reason}\n")


def test_parts_of_another_version(tmp_path, stored, parts, refuse, monkeypatch):
    flags = ["--thresholds", LEVELS]
    (first,) = parts(stored, ["1/2"], *flags)
    monkeypatch.setattr("ecc_core._cli.outputs.version", lambda: "99")
    (second,) = parts(stored, ["2/2"], *flags)
    message = refuse("merge", first, second, "--out", tmp_path / "m.csv")
    assert "it was computed by napari-ecc 99, not by napari-ecc" in message


@pytest.mark.parametrize("size", [0, 10, 500, -1])
def test_truncated_and_foreign_files(tmp_path, stored, parts, refuse, size):
    (part,) = parts(stored, ["1/1"], "--thresholds", LEVELS)
    part.write_bytes(part.read_bytes()[:size])
    message = refuse("merge", part, "--out", tmp_path / "m.csv")
    assert f"{part}: is no part of ecc stack, or is truncated or damaged: " in message
    np.savez(part, a=np.arange(3))
    assert f"{part}: is no part of ecc stack" in refuse("merge", part, "--out", tmp_path / "m.csv")


def test_a_flipped_bit(tmp_path, stored, parts, refuse):
    (part,) = parts(stored, ["1/1"], "--thresholds", LEVELS)
    content = bytearray(part.read_bytes())
    at = content.rindex(np.load(part)["0"].tobytes())
    content[at] ^= 1
    part.write_bytes(content)
    assert f"{part}: is no part" in refuse("merge", part, "--out", tmp_path / "m.csv")


@pytest.mark.parametrize("number", ["0/4", "5/4", "1", "1/0", "a/b", "1/2/3", "-1/2"])
def test_numbers_of_no_part(tmp_path, stored, refuse, number):
    message = refuse("stack", stored, f"--part={number}", "--out", tmp_path / "p.npz")
    assert "must be one of several parts, such as 3/64, the first of which is 1/64" in message
    assert message.endswith(f"got '{number}' (see ecc stack --help)\n")


def test_what_does_not_go_with_parts(tmp_path, stored, refuse):
    out = tmp_path / "p.npz"
    assert "--part must be given" in refuse("stack", stored, "--out", out)
    message = refuse("stack", stored, "--part", "1/2", "--out", tmp_path / "p.csv")
    assert f"{tmp_path / 'p.csv'}: type not supported together with --part, must be .npz" in message
    plotted = ["--part", "1/2", "--out", out, "--plot", tmp_path / "p.png"]
    assert "--plot must be given to ecc merge" in refuse("stack", stored, *plotted)
    message = refuse("merge", tmp_path / "none-*.npz", "--out", tmp_path / "m.csv")
    assert f"{tmp_path / 'none-*.npz'}: no such file" in message


def test_a_part_is_resumed(tmp_path, blocks_read, whole):
    image = noise(48, 32, 16)
    path = write_zarr(tmp_path / "a.zarr", image, chunks=(8, 8, 8))
    flags = ["--thresholds", LEVELS]
    second = ["stack", str(path), "--part", "2/2", "--out", str(tmp_path / "p-2.npz"), *flags]
    with failing_after(1, OSError(28, "No space left on device")):
        assert main(second) == 2
    assert not (tmp_path / "p-2.npz").exists()
    assert len(list(tmp_path.glob("p-2.npz.parts/*.npy"))) == 1
    blocks_read.clear()
    assert main([*second, "--resume"]) == 0
    assert len(blocks_read) == 24 - 16
    assert main([*second[:3], "1/2", "--out", str(tmp_path / "p-1.npz"), *flags]) == 0
    assert merged([tmp_path / "p-*.npz"], tmp_path / "m.csv") == whole(path, *flags)


def test_blocks_of_other_parts_are_not_read_whole(tmp_path, monkeypatch, parts):
    """Only the first plane of the blocks behind a part is read."""
    path = write_zarr(tmp_path / "a.zarr", noise(16, 8, 8), chunks=(4, 8, 8))
    read: list[tuple[int, ...]] = []
    call = Blocks.__call__

    def noted(self: Blocks, box: Any) -> Any:
        read.append(tuple(part.stop - part.start for part in box))
        return call(self, box)

    monkeypatch.setattr(Blocks, "__call__", noted)
    parts(path, ["1/2"], "--thresholds", LEVELS)
    assert sorted(read) == [(1, 8, 8), (4, 8, 8), (4, 8, 8)]


def test_from_python(tmp_path, stored, parts, whole):
    files = parts(stored, ["1/2", "2/2"], "--thresholds", LEVELS)
    columns, metadata = merge_parts(files)
    table = json.loads(whole(stored, "--thresholds", LEVELS, suffix=".json"))
    assert {name: column.tolist() for name, column in columns.items()} == table["columns"]
    assert json.loads(json.dumps(metadata)) == table["metadata"]
    part = read_part(files[1])
    assert (part.number, part.count, part.path) == (2, 2, files[1])
    assert part.image["shape"] == list(SHAPE)
    assert part.settings["thresholds"] == list(range(9))


def test_an_array_is_no_part(tmp_path, refuse):
    np.save(tmp_path / "a.npy", np.eye(3))
    message = refuse("merge", tmp_path / "a.npy", "--out", tmp_path / "m.csv")
    assert message.strip().endswith("damaged: it is no ZIP archive, or not all of one")
