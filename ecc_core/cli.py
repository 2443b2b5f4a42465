"""The command ``ecc``."""

import argparse
import errno
import logging
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from importlib import import_module
from io import StringIO, TextIOBase, TextIOWrapper
from typing import Any, NoReturn

from ecc_core._cli import options
from ecc_core._cli.errors import FailedImages, one_line
from ecc_core.errors import EccError

__all__ = ["main"]

COMMANDS = {
    "curve": "compute curves",
    "stack": "compute the curve of an image larger than memory",
    "merge": "make the table of an image from its parts",
    "batch": "compute the curves of many images",
    "score": "compare segmentations with their targets",
    "objects": "find the objects of an image that last",
    "compare": "test whether groups of the curves of a table differ",
    "transform": "compute the transform of a shape",
    "surface": "compute the surface of two images or channels",
    "info": "describe image files",
    "warmup": "compile the kernels for this machine ahead of time",
}
LOGGING_LIBRARIES = (
    *("bioio", "bioio_czi", "bioio_lif", "bioio_nd2", "distributed", "liffile", "mrcfile"),
    *("nd2", "nibabel", "nrrd", "pydicom", "tifffile"),
)
NEGATIVE_NUMBERS = re.compile(r"-[\d.i]")
"""An argument that begins like this, such as -1,1 or -inf, is a value and not an option."""
SOME_FAILED = 1
BAD_INPUT = 2
INTERNAL_ERROR = 70
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``ecc``.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments. Default: those of the process.

    Returns
    -------
    int
        Exit code: 0; 1 if some images of a batch failed; 2 if an input or output cannot be used,
        after one line on stderr; 70 after an error that should not happen; 130 if interrupted;
        141 if the output pipe was closed.

    Raises
    ------
    SystemExit
        With code 2 if the arguments are wrong, and 0 after ``--help`` and ``--version``.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from ecc_core.cli import main
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "image.npy")
    ...     np.save(path, np.array([[0, 1, 0], [1, 1, 1]], np.uint8))
    ...     main(["info", path])  # doctest: +ELLIPSIS
    /...
      shape   2 x 3 (YX)
      dtype   uint8
      unread  axes by type or name, ...
      range   0 to 1
      curve   256 thresholds from 0 to 1, 8-connected, sublevel sets
    0
    """
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = StringIO()
    # File names that are printed need not be valid Unicode.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")
    with _noted_interrupts() as interrupts, _quiet_readers():
        try:
            code = _run(argv)
        except KeyboardInterrupt:
            interrupts.append(None)
    if interrupts:
        print("ecc: interrupted", file=sys.stderr)
        return INTERRUPTED
    return code


@contextmanager
def _noted_interrupts() -> Iterator[list[None]]:
    """Give a list that grows with each interrupt.

    Some libraries swallow a KeyboardInterrupt while they are imported.
    """
    interrupts: list[None] = []

    def interrupt(*_: object) -> None:
        interrupts.append(None)
        raise KeyboardInterrupt

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _quiet_readers() -> Iterator[None]:
    """Silence the messages of libraries on damaged files, and print other warnings in one line.

    Files that a library cannot read make it raise an error, which is reported.
    """
    with warnings.catch_warnings():
        for library in LOGGING_LIBRARIES:
            logging.getLogger(library).setLevel(logging.CRITICAL)
            warnings.filterwarnings("ignore", module=rf"{library}(\.|$)")
        warnings.showwarning = lambda message, *_, **__: print(
            f"ecc: warning: {one_line(message)}", file=sys.stderr
        )
        yield


def _run(argv: Sequence[str] | None) -> int:
    """Run the command, report errors in one line each on stderr, and return the exit code."""
    try:
        try:
            given = sys.argv[1:] if argv is None else argv
            arguments = _parser(given).parse_args(given)
            with redirect_stderr(StringIO()) if arguments.quiet else nullcontext():
                return arguments.run(arguments) or 0
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return BROKEN_PIPE
    except FailedImages as error:
        for failure in error.args:
            print(f"ecc: failed: {failure}", file=sys.stderr)
        return SOME_FAILED
    except (EccError, OSError, ImportError, MemoryError) as error:
        _drop_output()
        print(f"ecc: error: {one_line(error)}", file=sys.stderr)
        return BAD_INPUT
    except Exception as error:
        if os.environ.get("ECC_TRACEBACK"):
            raise
        print(
            f"ecc: internal error: {type(error).__name__}: {one_line(error)} "
            "(please report it; ECC_TRACEBACK=1 in the environment shows where it happened)",
            file=sys.stderr,
        )
        return INTERNAL_ERROR


def _drop_output() -> None:
    """Discard text that cannot be written to stdout, because Python would try again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _ClosedOutput(TextIOBase):
    """A stdout that the calling process has closed, to which nothing can be written."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "stdout is closed")


class _Parser(argparse.ArgumentParser):
    """A parser that reports errors in one line, also that of a help that cannot be written."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = NEGATIVE_NUMBERS

    def print_help(self, file: Any = None) -> None:
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_INPUT, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


class _Version(argparse.Action):
    """Print the version, which is looked up only here because this takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from ecc_core._cli.version import version

        print(f"ecc {version()}")
        parser.exit()


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """Return a parser for the given arguments; only the module of their command is imported."""
    parser = _Parser(
        prog="ecc",
        description="Exact Euler characteristic curves, surfaces and transforms of 1-D, 2-D and "
        "3-D images.",
        epilog="Exit code: 0; 1 if some images of a batch failed; 2 for bad input, with one line "
        "on stderr; 130 if interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="show the version and exit",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, words in COMMANDS.items():
        if name not in given:
            commands.add_parser(name, help=words)
            continue
        command = import_module(f"ecc_core._cli.{name}")
        about = command.DESCRIPTION
        own = commands.add_parser(name, help=words, description=about, allow_abbrev=False)
        command.add_arguments(own)
        options.add(own, "--quiet")
        # Notes that were printed to stderr are not repeated for other images of the command.
        said: set[str] = set()
        own.set_defaults(run=command.run, said=said)
    return parser


if __name__ == "__main__":
    sys.exit(main())
