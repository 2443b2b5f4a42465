"""Tables are written without loss, and whole or not at all."""

import csv
import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pyarrow.parquet as parquet
import pytest
from matplotlib.figure import Figure

from ecc_core.io import (
    FIGURE_SUFFIXES,
    TABLE_SUFFIXES,
    atomic_file,
    check_output,
    write_figure,
    write_table,
)

COLUMNS = {
    "input": np.array(["a.png", "b, \u00e9.png", 'c"\n.png']),
    "threshold": np.array([-np.inf, 0.1, np.inf], np.float32),
    "euler_number": np.array([-(2**62), 0, 2**53 + 1]),
}


METADATA = {"version": "1", "settings": {"range": [0, 1], "labels": None}}


class TestTables:
    def test_csv(self, tmp_path):
        """Text that spreadsheets would run is escaped."""
        names = ["=1+1.png", "+a", "-a", "@a", "\ta", "\rc", "a=1", "a\rb", "b, \u00e9", 'c"\n.png']
        thresholds = np.array([-np.inf, 0.1, np.inf, *range(7)], np.float32)
        values = np.array([-(2**62), -1, 2**53 + 1, *range(7)])
        columns = {"input": np.array(names), "threshold": thresholds, "euler_number": values}
        write_table(tmp_path / "t.csv", columns, metadata=METADATA)
        with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
        assert header == list(columns)
        found = list(zip(*rows, strict=True))
        assert list(found[0]) == [*(f"'{name}" for name in names[:6]), *names[6:]]
        np.testing.assert_array_equal(np.array(found[1], np.float64), thresholds)
        assert list(map(int, found[2])) == values.tolist()

    @pytest.mark.parametrize("suffix", TABLE_SUFFIXES)
    def test_names_that_are_not_unicode(self, tmp_path, suffix):
        name = os.fsdecode(b"caf\xe9-\xc3\xa9.png")
        path = tmp_path / f"t{suffix}"
        write_table(path, {"input": np.array([name])}, metadata={"inputs": [name]})
        if suffix == ".csv":
            assert path.read_bytes() == b"input\ncaf\xe9-\xc3\xa9.png\n"
        elif suffix == ".json":
            assert json.loads(path.read_text())["columns"]["input"] == [name]
        else:
            assert parquet.read_table(path)["input"].to_pylist() == ["caf\\xe9-\u00e9.png"]

    def test_json(self, tmp_path):
        write_table(tmp_path / "t.json", COLUMNS, metadata=METADATA)
        text = (tmp_path / "t.json").read_text(encoding="utf-8")
        table = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
        assert table["metadata"] == METADATA
        assert table["columns"] == {
            "input": COLUMNS["input"].tolist(),
            "threshold": ["-inf", float(np.float32(0.1)), "inf"],
            "euler_number": COLUMNS["euler_number"].tolist(),
        }

    @pytest.mark.parametrize("dtype", ["u1", "i8", "u8", "f4", "f8", ">f4", "?"])
    def test_parquet(self, tmp_path, dtype):
        columns = {**COLUMNS, "threshold": np.array([0, 1, 1], dtype)}
        write_table(tmp_path / "t.parquet", columns, metadata=METADATA)
        table = parquet.read_table(tmp_path / "t.parquet")
        assert table.column_names == list(columns)
        np.testing.assert_equal({name: table[name].to_numpy() for name in columns}, dict(columns))
        assert table["threshold"].to_numpy().dtype == np.dtype(dtype).newbyteorder("=")
        assert json.loads(table.schema.metadata[b"ecc"]) == METADATA

    def test_columns_of_different_length(self, tmp_path):
        with pytest.raises(ValueError, match="`columns` must be 1-D and of the same length"):
            write_table(tmp_path / "t.csv", {"a": [1], "b": [1, 2]})
        assert list(tmp_path.iterdir()) == []


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestAtomicity:
    @pytest.fixture(params=[*TABLE_SUFFIXES, *FIGURE_SUFFIXES])
    def path(self, request, tmp_path):
        return tmp_path / f"t{request.param}"

    @pytest.mark.parametrize("where", ["fsync", "replace"])
    @pytest.mark.parametrize("content", [None, "old"])
    def test_full_disk(self, path, monkeypatch, where, content):
        if content:
            path.write_text(content)
        monkeypatch.setattr(os, where, no_space)
        with pytest.raises(OSError, match="No space left on device") as caught:
            self.write(path)
        assert caught.value.filename == str(path)
        left = {p: p.read_text() for p in path.parent.iterdir()}
        assert left == ({path: "old"} if content else {})

    @staticmethod
    def write(path: Path) -> None:
        if path.suffix in TABLE_SUFFIXES:
            write_table(path, COLUMNS)
        else:
            write_figure(path, Figure(figsize=(1, 1)))

    @pytest.mark.skipif(os.name != "posix", reason="POSIX locks")
    def test_what_a_killed_process_has_left(self, tmp_path):
        """The next write of that file removes what is left, but not what is being written."""
        code = (
            "import sys, time\n"
            "from ecc_core.io import atomic_file\n"
            "with atomic_file(sys.argv[1]) as file:\n"
            "    print('open', flush=True)\n"
            "    time.sleep(600)"
        )
        path = tmp_path / "t[1].csv"
        command = [sys.executable, "-c", code, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "open\n"
            (left,) = tmp_path.iterdir()
            other = tmp_path / left.name.replace("t[1]", "t1")
            other.write_text("another file's")
            write_table(path, COLUMNS)
            assert left.exists()
            process.kill()
        assert left.exists()
        write_table(path, COLUMNS)
        assert set(tmp_path.iterdir()) == {path, other}

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_an_error_while_writing(self, tmp_path, error):
        path = tmp_path / "t.csv"
        path.write_text("old")

        def write_half() -> None:
            with atomic_file(path) as file:
                file.write(b"half")
                file.flush()
                assert path.read_text() == "old"
                raise error

        with pytest.raises(error):
            write_half()
        assert path.read_text() == "old"
        assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]

    def test_nothing_else_is_left(self, path):
        path.write_text("old")
        self.write(path)
        assert list(path.parent.iterdir()) == [path]
        assert path.stat().st_size > 100

    def test_the_content_is_on_the_disk_before_the_name(self, tmp_path, monkeypatch):
        calls = Mock(wraps=os)
        for name in ("fsync", "replace"):
            monkeypatch.setattr(os, name, getattr(calls, name))
        write_table(tmp_path / "t.csv", COLUMNS)
        assert [name for name, *_ in calls.mock_calls[:2]] == ["fsync", "replace"]

    @pytest.mark.skipif(os.name != "posix", reason="POSIX permissions and links")
    def test_permissions_and_links_are_the_usual(self, tmp_path):
        (tmp_path / "plain").write_text("")
        (tmp_path / "real").mkdir()
        (tmp_path / "t.csv").symlink_to(tmp_path / "real" / "t.csv")
        write_table(tmp_path / "t.csv", COLUMNS)
        assert (tmp_path / "t.csv").is_symlink()
        written = tmp_path / "real" / "t.csv"
        assert written.stat().st_mode == (tmp_path / "plain").stat().st_mode


class TestCheckOutput:
    def test_good(self, tmp_path):
        assert check_output(tmp_path / "t.CSV", TABLE_SUFFIXES) == tmp_path / "t.CSV"
        assert list(tmp_path.iterdir()) == []

    def test_bad(self, tmp_path, monkeypatch):
        """Other suffixes and folders that are missing are refused to commands."""
        (tmp_path / "folder.csv").mkdir()
        with pytest.raises(FileExistsError, match="not a regular file"):
            check_output(tmp_path / "folder.csv", TABLE_SUFFIXES)
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="is not writable"):
            check_output(tmp_path / "t.csv", TABLE_SUFFIXES)
