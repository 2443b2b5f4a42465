"""`ecc` as a process: exit codes, signals, pipes and the progress bar."""

import io
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from io_helpers import noise
from processes import run_python

from ecc_core._cli.curve import held as read
from ecc_core._cli.version import version as package_version


def command(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start `ecc` as a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "ecc_core.cli", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


class TestProcess:
    def test_version(self):
        with command("--version") as process:
            assert process.communicate() == (f"ecc {version('napari-ecc')}\n", "")
            assert process.returncode == 0

    def test_version_of_a_checkout(self, monkeypatch):
        """The checkout is on the path without being installed."""

        def missing(name: str) -> str:
            raise PackageNotFoundError(name)

        monkeypatch.setattr("ecc_core._cli.version.installed_version", missing)
        assert package_version.__wrapped__() == "unknown"

    def test_help_is_quick_to_load(self):
        """A start is slow if it imports heavy modules, so that none may be loaded."""
        heavy = ("numba", "scipy", "matplotlib", "imageio", "tifffile", "pyarrow", "PIL", "tqdm")
        code = (
            "import sys; from ecc_core.cli import main\n"
            "try: main(['curve', '--help'])\n"
            f"finally: assert not (loaded := sys.modules.keys() & {set(heavy)}), loaded"
        )
        done = run_python(code)
        assert (done.returncode, done.stderr) == (0, "")
        options = ("--out", "--plot", "--labels", "--mask", "--channel", "gaussian_filter")
        assert [option for option in options if option not in done.stdout] == []
        assert "an apostrophe precedes file names" in " ".join(done.stdout.split())

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    def test_nobody_reads(self, tmp_path):
        np.save(tmp_path / "a.npy", np.arange(200_000))
        with command("curve", tmp_path / "a.npy", "--thresholds", 200_000) as process:
            assert process.stdout.readline() == "input,threshold,euler_number\n"
            process.stdout.close()
            assert process.stderr.read() == ""
        assert process.returncode == 141

    @pytest.mark.sweep
    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
    @pytest.mark.parametrize("arguments", [["--help"], ["info", "a.npy"], ["curve", "a.npy"]])
    @pytest.mark.parametrize(
        ("redirection", "code", "errors"),
        [
            (">/dev/full", 2, "ecc: error: No space left on device\n"),
            (">&-", 2, "ecc: error: stdout is closed\n"),
            (">/dev/full 2>&-", 2, ""),
            (">/dev/null 2>&-", 0, ""),
        ],
    )
    def test_output_that_cannot_be_written(self, tmp_path, arguments, redirection, code, errors):
        np.save(tmp_path / "a.npy", np.arange(1000))
        shell = ["sh", "-c", f'"$0" -m ecc_core.cli "$@" {redirection}', sys.executable]
        options = {"cwd": tmp_path, "capture_output": True, "text": True}
        done = subprocess.run([*shell, *arguments], check=False, **options)
        assert (done.returncode, done.stderr) == (code, errors)

    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    def test_interrupted(self, image_file, tmp_path):
        code = (
            "import signal, sys, ecc_core.curves\n"
            "from ecc_core.cli import main\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it\n"
            "def interrupt(*_, **__): signal.raise_signal(signal.SIGINT)\n"
            "ecc_core.curves.euler_curve = interrupt\n"
            "sys.exit(main(sys.argv[1:]))"
        )
        flags = [image_file, "--out", str(tmp_path / "c.csv")]
        done = run_python(code, "curve", *flags)
        assert (done.returncode, done.stdout) == (128 + signal.SIGINT, "")
        assert done.stderr == "ecc: interrupted\n"
        assert [p.name for p in tmp_path.iterdir()] == ["image.png"]

    @pytest.mark.sweep
    @pytest.mark.skipif(os.name != "posix", reason="POSIX signals and pipes")
    @pytest.mark.parametrize("module", ["numpy", "ecc_core.errors", "numba", "imageio"])
    @pytest.mark.parametrize("swallowed", [False, True])
    def test_interrupted_while_it_loads(self, image_file, module, swallowed):
        code = (
            "import contextlib, os, signal, sys\n"
            "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "class Interrupting:\n"
            "    def find_spec(self, name, *_):\n"
            f"        if name == {module!r}:\n"
            f"            sys.meta_path.remove(self)\n"
            f"            with contextlib.suppress({'BaseException' if swallowed else ''}):\n"
            "                os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.meta_path.insert(0, Interrupting())\n"
            "from ecc_core._command import main\n"
            "sys.exit(main())"
        )
        done = run_python(code, "curve", image_file, "--thresholds", "2")
        assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "ecc: interrupted\n")

    @pytest.mark.skipif(sys.platform != "linux", reason="such names are possible on Linux")
    def test_names_that_are_no_unicode(self, tmp_path):
        path = tmp_path / os.fsdecode(b"\xff.npy")
        np.save(path, noise(5, 5))
        with command("info", path, errors="surrogateescape") as process:
            output, errors = process.communicate()
        assert (process.returncode, errors) == (0, "")
        assert output.partition("\n")[0] == str(path)
        files = ["--out", tmp_path / "c.csv", "--plot", tmp_path / "c.svg"]
        with command("curve", *files, path, errors="surrogateescape") as process:
            output, errors = process.communicate()
        assert (process.returncode, output, errors) == (0, "", "")
        assert os.fsencode(path) in (tmp_path / "c.csv").read_bytes()
        assert r"\xff.npy" in (tmp_path / "c.svg").read_text()


def read_slowly(*arguments: Any) -> Any:
    time.sleep(0.2)  # At shorter intervals tqdm does not draw.
    return read(*arguments)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class TestProgress:
    @pytest.mark.parametrize("slow", [False, True])
    @pytest.mark.parametrize("terminal", [False, True])
    def test_only_on_a_terminal_and_only_if_it_takes_long(
        self, run, monkeypatch, image_file, slow, terminal
    ):
        stream = Terminal() if terminal else io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        monkeypatch.setattr("ecc_core._cli.progress.DELAY", 0.1 if slow else 1e9)
        if slow:
            monkeypatch.setattr("ecc_core._cli.curve.held", read_slowly)
        run(image_file)
        shown = stream.getvalue()
        assert ("curve of image.png" in shown) == (slow and terminal)
        assert (shown != "") == (slow and terminal)

    def test_without_tqdm(self, say, run, monkeypatch, image_file, tmp_path):
        expected = run(image_file)
        monkeypatch.setitem(sys.modules, "tqdm", None)
        assert run(image_file) == expected
        say("batch", image_file, noise(5, 5), "--thresholds", "0.5", "--out", tmp_path / "c.csv")
        assert (tmp_path / "c.csv").exists()
