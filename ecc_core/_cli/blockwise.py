"""Images larger than memory: the arguments of commands that take them, and their curves."""

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ecc_core._checks import check_range, check_threshold_array
from ecc_core._cli import options
from ecc_core._cli.version import version
from ecc_core._cpu.pool import available_cores
from ecc_core._io.parts import Parts, fingerprint, total_of_parts
from ecc_core._io.volumes import Volume, grown_chunks, open_volume
from ecc_core._optional import import_optional
from ecc_core._thresholds import even_thresholds
from ecc_core.errors import InputFileError

__all__ = ["Stack", "add_stack_arguments", "columns_of", "curves_of", "open_stack", "thresholds_of"]

Array = NDArray[Any]

BLOCK_BYTES = 1 << 24  # blocks are grown to this size from smaller chunks
BLOCKS_IN_MEMORY = 5  # for each worker: encoded and decoded points, planes and waiting results
SAMPLED_BLOCKS = 8
GROUP = 16  # blocks whose sum is kept on the disk
MOST_GROUPS = 4096
PATIENCE = 1.0  # seconds before the progress bar shows


class Stack(NamedTuple):
    """An image on the disk, in blocks that fit in memory.

    Attributes
    ----------
    image : dask array
    axes : str
        One letter for each axis.
    spatial : tuple of int
        Which of them are Z, Y and X.
    origin : str
        What tells a changed input from the same one.
    workers : int
        Threads whose blocks fit in memory together.
    """

    image: Any
    axes: str
    spatial: tuple[int, ...]
    origin: str
    workers: int


def add_stack_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is computed of an image, and with which means."""
    parser.add_argument(
        "--level", type=int, default=0, metavar="N", help="resolution of an OME-Zarr image"
    )
    parser.add_argument(
        "--axes",
        metavar="LETTERS",
        help="axes of the array where the file does not tell, such as CZYX",
    )
    parser.add_argument("--channel", type=int, metavar="N", help="index along the axis C")
    parser.add_argument(
        "--roi",
        type=roi,
        metavar="A:B,...",
        help="part of the image: a range for each of the axes Z, Y, X, such as :,100:200,:",
    )
    parser.add_argument(
        "--thresholds",
        type=options.thresholds,
        default=256,
        metavar="256|a,b,c",
        help="how many, evenly spaced over the range; or the thresholds themselves (default: 256)",
    )
    parser.add_argument(
        "--range",
        type=options.value_range,
        metavar="LO,HI",
        help="range of the thresholds (default: that of the type for 8-bit images, else the least "
        "and greatest value of a few blocks, which is shown)",
    )
    parser.add_argument("--connectivity", type=int, metavar="N", help="as for ecc curve")
    parser.add_argument("--superlevel", action="store_true", help="sets of values >= t")
    parser.add_argument(
        "--nan", choices=("raise", "omit"), default="raise", help="as for ecc curve"
    )
    parser.add_argument(
        "--workers", type=positive, metavar="N", help="threads (default: one for each core)"
    )
    parser.add_argument(
        "--max-memory",
        type=memory,
        default=1 << 30,
        metavar="SIZE",
        help="about how much memory to use, such as 600M or 4G; fewer threads where blocks are "
        "large (default: 1G)",
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a running dask cluster instead of threads"
    )


def positive(text: str) -> int:
    """Return a positive number."""
    if not re.fullmatch(r"0*[1-9]\d*", text):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return int(text)


def memory(text: str) -> int:
    """Return a number of bytes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text.upper())
    size = 0 if found is None else int(float(found[1]) * 1024 ** " KMGT".index(found[2] or " "))
    if size < 1:
        raise argparse.ArgumentTypeError(f"must be a size such as 600M or 4G, got {text!r}")
    return size


def roi(text: str) -> tuple[slice, ...]:
    """Return ranges of indices."""
    parts = text.split(",")
    if not all(re.fullmatch(r"\d*:\d*", part) for part in parts):
        raise argparse.ArgumentTypeError(f"must be ranges such as 0:64,:,100:, got {text!r}")
    ends = [[int(end) if end else None for end in part.split(":")] for part in parts]
    return tuple(slice(*pair) for pair in ends)


def open_stack(path: str, arguments: argparse.Namespace) -> Stack:
    """Open an image as a dask array of blocks that fit in memory."""
    volume = open_volume(path, level=arguments.level, axes=arguments.axes)
    spatial = _spatial(volume.axes)
    if not spatial:
        raise InputFileError(f"{path}: none of its axes {volume.axes} is Z, Y or X")
    image, workers = _dask_array(volume, spatial, arguments)
    selected, axes = _select(path, image, volume.axes, spatial, arguments)
    return Stack(selected, axes, _spatial(axes), _origin(Path(path)), workers)


def _spatial(axes: str) -> tuple[int, ...]:
    return tuple(i for i, letter in enumerate(axes) if letter in "ZYX")


def _dask_array(
    volume: Volume, spatial: tuple[int, ...], arguments: argparse.Namespace
) -> tuple[Any, int]:
    """The image in blocks, and how many workers have room for theirs."""
    da = import_optional("dask.array", extra="dask", purpose="reading images block by block")
    source, itemsize = volume.source, volume.source.dtype.itemsize
    limit = min(BLOCK_BYTES, arguments.max_memory // BLOCKS_IN_MEMORY)
    chunks = grown_chunks(volume.chunks, source.shape, spatial, itemsize, limit)
    room = arguments.max_memory // (math.prod(chunks) * itemsize * BLOCKS_IN_MEMORY)
    if room < 1:
        needed = -(-math.prod(chunks) * itemsize * BLOCKS_IN_MEMORY // (1 << 20))
        raise InputFileError(
            f"{source.path}: its chunks of shape {chunks} need --max-memory of at least "
            f"{needed}M, got {arguments.max_memory >> 20}M"
        )
    meta = np.empty((0,) * source.ndim, source.dtype)
    image = da.from_array(source, chunks=chunks, meta=meta)
    return image, min(room, arguments.workers or available_cores())


def _select(
    path: str, image: Any, axes: str, spatial: tuple[int, ...], arguments: argparse.Namespace
) -> tuple[Any, str]:
    """Take the region and the channel that are asked for."""
    index: list[Any] = [slice(None)] * image.ndim
    if arguments.roi is not None:
        if len(arguments.roi) != len(spatial):
            named = "".join(axes[i] for i in spatial)
            raise InputFileError(
                f"{path}: --roi must have a range for each of the axes {named}, "
                f"got {len(arguments.roi)}"
            )
        for axis, part in zip(spatial, arguments.roi, strict=True):
            index[axis] = part
    if arguments.channel is not None:
        count = image.shape[axes.index("C")] if "C" in axes else 0
        if not 0 <= arguments.channel < count:
            allowed = f"0 to {count - 1}" if count else "left out, there is no axis C"
            raise InputFileError(
                f"{path}: --channel must be {allowed}, got {arguments.channel} (axes {axes})"
            )
        index[axes.index("C")] = arguments.channel
        axes = axes.replace("C", "")
    return image[tuple(index)], axes


def _origin(path: Path) -> str:
    """What tells a changed input from the same one, without reading it all."""
    described = [path] if path.is_file() else sorted(path.glob("*.json")) + sorted(path.glob(".z*"))
    facts = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in described]
    return repr([str(path.resolve()), *facts])


def thresholds_of(stack: Stack, arguments: argparse.Namespace) -> Array:
    """The thresholds, from a range that is given, that of the type, or that of some blocks."""
    wanted = arguments.thresholds
    if isinstance(wanted, str):
        raise InputFileError(
            "--thresholds must be a number or a list; exact needs the image in memory"
        )
    try:
        if not isinstance(wanted, int):
            if arguments.range is not None:
                raise ValueError("--range must be left out where --thresholds are a list")
            return check_threshold_array(wanted)
        low, high = check_range(arguments.range or _usual_range(stack))
    except ValueError as error:
        raise InputFileError(options.one_line(error)) from None
    dtype = stack.image.dtype
    if dtype.kind in "iu" and (low > np.iinfo(dtype).max or high < np.iinfo(dtype).min):
        raise InputFileError(f"--range {low},{high} has no value of {dtype}")
    return even_thresholds(low, high, wanted)


def _usual_range(stack: Stack) -> tuple[Any, Any]:
    image = stack.image
    if image.dtype.kind == "b":
        return 0, 1
    if image.dtype.kind in "iu" and image.dtype.itemsize == 1:
        info = np.iinfo(image.dtype)
        return int(info.min), int(info.max)
    numbers = np.unique(np.linspace(0, image.npartitions - 1, SAMPLED_BLOCKS).astype(int))
    low: Any = np.inf
    high: Any = -np.inf
    for number in numbers:
        block = image.blocks[np.unravel_index(number, image.numblocks)].compute(scheduler="sync")
        finite = block[np.isfinite(block)]
        if finite.size:
            low, high = min(low, finite.min()), max(high, finite.max())
    if low > high:
        raise ValueError("--range must be given: there is no finite value in some blocks")
    sys.stderr.write(
        f"ecc: range {low},{high}, from {numbers.size} of {image.npartitions} blocks\n"
    )
    return low.item(), high.item()


def curves_of(
    stack: Stack, at: Array, arguments: argparse.Namespace, folder: Path, *, resume: bool
) -> NDArray[np.int64]:
    """The curves, (*batch, n); partial sums are kept in a folder."""
    from ecc_core._dask.run import compute_groups
    from ecc_core.dask import euler_curve_blocks

    settings = {name: getattr(arguments, name) for name in ("connectivity", "superlevel", "nan")}
    blocks = euler_curve_blocks(stack.image, at, axis=stack.spatial, **settings)
    *batch, rows, n = blocks.shape
    size = max(GROUP, -(-rows // MOST_GROUPS))
    job = {
        "version": version(),
        "origin": stack.origin,
        "dtype": stack.image.dtype.str,
        "chunks": stack.image.chunks,
        "selection": [arguments.level, arguments.axes, arguments.channel, repr(arguments.roi)],
        "thresholds": [at.dtype.str, at.tobytes().hex()],
        "settings": settings,
        "size": size,
    }
    parts = Parts(folder, fingerprint(job), (*batch, n))
    if not resume:
        parts.clear()

    def compute(missing: list[int], finished: Callable[[int, Array], None]) -> None:
        with _progress(stack, -(-rows // size), len(missing)) as advance:

            def each(number: int, values: Array) -> None:
                finished(number, values)
                advance()

            compute_groups(
                blocks,
                size,
                missing,
                each,
                workers=stack.workers,
                scheduler=arguments.scheduler,
            )

    histograms = total_of_parts(parts, -(-rows // size), compute)
    order = slice(None, None, -1 if arguments.superlevel else 1)
    return histograms[..., order].cumsum(axis=-1)[..., order]


@contextmanager
def _progress(stack: Stack, groups: int, missing: int) -> Iterator[Callable[[], None]]:
    """Show bytes, rate and time left on stderr, if that is a terminal."""
    try:
        tqdm = import_optional("tqdm", extra="io", purpose="a progress bar")
    except ImportError:  # the work does without
        yield lambda: None
        return
    share = stack.image.nbytes / groups
    with tqdm.tqdm(
        total=stack.image.nbytes,
        initial=share * (groups - missing),
        unit="B",
        unit_scale=True,
        delay=PATIENCE,
        disable=None,
        file=sys.stderr,
        leave=False,
    ) as bar:
        yield lambda: bar.update(share)


def columns_of(stack: Stack, at: Array, values: NDArray[np.int64]) -> dict[str, Array]:
    """One row for each threshold of each curve, with the place on the batch axes."""
    batch = values.shape[:-1]
    letters = [letter for letter in stack.axes if letter not in "ZYX"]
    columns = {
        letter.lower(): np.repeat(index.ravel(), at.size)
        for letter, index in zip(letters, np.indices(batch), strict=True)
    }
    columns["threshold"] = np.tile(at, math.prod(batch))
    columns["euler_number"] = values.ravel()
    return columns
