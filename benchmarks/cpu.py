"""Times of the CPU backend against reading the image, copying it, and other libraries.

    python benchmarks/cpu.py [--quick] [--only SECTION]

Everything that a ratio compares is measured in one process, in turns; a time is the least of 9
turns, in which a call is repeated until 20 ms have passed. Peers that take longer than a second run
3 times, longer than 4 seconds once. Their curves are checked to be equal. Writes
benchmarks/results/cpu.json and cpu.md; `--only` replaces one section there, `--quick` takes small
images, for which there are no bars, and writes nothing. pyECT is measured where it is installed
(`pip install torch pyect`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from peers import PEERS
from report import TURNS, Row, in_turns, row, run
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree
from skimage import data

import ecc_core as ecc

COPY = "X.copy()"
FLOOR = "read floor"
BINCOUNT = "np.bincount"

PEER_BARS = {
    "numpy max + bincount": 50,
    "pyECT": 150,
    "cripser": 3000,
    "scikit-image": 10000,
    "GUDHI": 20000,
}


def field(shape: tuple[int, ...], sigma: float) -> np.ndarray:
    """Return uniform noise in [0, 1], or smoothed noise stretched to it; float32."""
    image = np.random.default_rng(7).random(shape, dtype=np.float32)
    if sigma:
        gaussian_filter(image, sigma, output=image, mode="wrap")
        image -= image.min()
        image /= image.max()
    return image


def as_dtype(image: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "float32":
        return image
    top = np.iinfo(dtype).max
    parts = [(part * top).astype(dtype) for part in image]
    return np.stack(parts)


def levels(dtype: str) -> np.ndarray:
    return np.linspace(0, 1 if dtype == "float32" else np.iinfo(dtype).max, 256)


def read(image: np.ndarray) -> Any:
    return image.reshape(-1).view("u8").sum()


def large(
    shape: tuple[int, ...], sigma: float, dtypes: dict[str, dict[str, str]], turns: int
) -> Iterator[Row]:
    """Yield our times against copying and reading an image; `dtypes` has the bars of each dtype."""
    smooth = field(shape, sigma)
    for dtype, bars in dtypes.items():
        image = as_dtype(smooth, dtype)
        at = levels(dtype)
        case = f"{'x'.join(map(str, shape))} {dtype} {f'sigma {sigma}' if sigma else 'noise'}"
        calls: dict[str, Callable[[], Any]] = {
            COPY: image.copy,
            FLOOR: lambda image=image: read(image),
        }
        for connectivity in (1, len(shape)):
            for workers in (1, 2):
                calls[f"{connectivity} {workers}"] = (
                    lambda image=image, at=at, connectivity=connectivity, workers=workers: (
                        ecc.euler_curve(image, at, connectivity=connectivity, workers=workers)
                    )
                )
            calls[f"{connectivity} range"] = lambda image=image, connectivity=connectivity: (
                ecc.euler_curve(image, connectivity=connectivity, workers=1)
            )
        if BINCOUNT in bars:
            calls[BINCOUNT] = lambda image=image: np.bincount(image.reshape(-1), minlength=256)
        in_turns(calls, 1)
        timed = in_turns(calls, turns)
        for connectivity in (1, len(shape)):
            one, two = (timed[f"{connectivity} {workers}"] for workers in (1, 2))
            for other in (COPY, FLOOR):
                yield row(case, connectivity, 1, one, (other, timed[other]), bars.get(other, ""))
            if BINCOUNT in bars:
                other = BINCOUNT, timed[BINCOUNT]
                yield row(case, connectivity, 1, one, other, bars[BINCOUNT], faster=True)
            bar = ">= 1.7" if len(shape) == 3 else ""
            yield row(case, connectivity, 2, two, ("one worker", one), bar, faster=True)
            found = timed[f"{connectivity} range"]
            yield row(f"{case}, range searched", connectivity, 1, found, (COPY, timed[COPY]))
            yield memory(case, image, at, connectivity)


def memory(case: str, image: np.ndarray, at: np.ndarray, connectivity: int) -> Row:
    """Return the peak memory of a call, in a new thread without buffers, divided by the image's."""
    call = threading.Thread(
        target=ecc.euler_curve,
        args=(image, at),
        kwargs={"connectivity": connectivity, "workers": 1},
    )
    tracemalloc.start()
    call.start()
    call.join()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bins = 8 * (1 << 16 if image.dtype == np.uint16 else 256)
    share = max(peak - bins, 0) / image.nbytes
    return Row(case, connectivity, 1, None, "extra memory / image", 0.0, 1, share, "<= 0.05")


def smooth_volumes(quick: bool) -> Iterator[Row]:
    """Smooth volumes."""
    bars = {
        "uint8": {COPY: "<= 1.3", FLOOR: "<= 5"},
        "uint16": {COPY: "<= 1.0"},
        "float32": {COPY: "<= 1.0"},
    }
    shape = (64, 128, 128) if quick else (512, 512, 512)
    yield from large(shape, 8, bars, 2 if quick else TURNS)


def noise_volumes(quick: bool) -> Iterator[Row]:
    """Noise."""
    bars = {"uint8": {BINCOUNT: ">= 5"}, "uint16": {}, "float32": {}}
    shape = (64, 128, 128) if quick else (512, 512, 512)
    yield from large(shape, 0, bars, 2 if quick else TURNS)


def images(quick: bool) -> Iterator[Row]:
    """Large images."""
    bars = {"uint8": {FLOOR: "<= 5"}, "float32": {FLOOR: "<= 3"}}
    shape = (1024, 1024) if quick else (8192, 8192)
    yield from large(shape, 8, bars, 2 if quick else TURNS)


def thresholds(quick: bool) -> Iterator[Row]:
    """Thresholds that are not even."""
    image = field((1024, 1024) if quick else (4096, 4096), 8)
    spread = {
        "quantiles": np.quantile(image.reshape(-1)[::997], np.linspace(0, 1, 256)),
        "geometric from 1e-6": np.geomspace(1e-6, 1, 256),
        "random": np.sort(np.random.default_rng(3).random(256)),
        "half of them 1e-6 apart": np.sort([*np.linspace(0, 1, 128), *0.5 + 1e-6 * np.arange(128)]),
    }
    calls = {
        name: lambda at=at: ecc.euler_curve(image, at, connectivity=1, workers=1)
        for name, at in {"even": levels("float32"), **spread}.items()
    }
    in_turns(calls, 1)
    timed = in_turns(calls, 2 if quick else TURNS)
    for name in spread:
        case = f"{image.shape[0]}x{image.shape[1]} float32, {name}"
        yield row(case, 1, 1, timed[name], ("even thresholds", timed["even"]), "<= 4")


def against(image: np.ndarray, case: str, bars: dict[str, int], turns: int) -> Iterator[Row]:
    """Our curve against those of the peers."""
    at = np.arange(256)
    for connectivity in (1, image.ndim):
        peers = {name: make(image, connectivity) for name, make in PEERS.items()}
        calls: dict[str, Callable[[], Any]] = {k: call for k, call in peers.items() if call}
        calls["ours"] = lambda connectivity=connectivity: (
            ecc.euler_curve(image, at, connectivity=connectivity, workers=1).values
        )
        calls["ours"]()
        timed = in_turns(calls, turns)
        ours = timed.pop("ours")
        for name, peer in timed.items():
            if not np.array_equal(peer.result, ours.result):
                raise AssertionError(f"the curve of {name} is another one")
            bar = f">= {bars[name]}" if name in bars else ""
            yield row(case, connectivity, 1, ours, (name, peer), bar, faster=True)
        if connectivity == 1 and "pyECT" not in timed:
            print("pyECT is left out: pip install torch pyect", file=sys.stderr)


def volume_peers(quick: bool) -> Iterator[Row]:
    """Other libraries, volume."""
    n = 24 if quick else 128
    image = as_dtype(field((n, n, n), 2), "uint8")
    yield from against(image, f"{n}x{n}x{n} uint8 sigma 2", PEER_BARS, TURNS)


def image_peers(quick: bool) -> Iterator[Row]:
    """Other libraries, photograph."""
    image = data.cell()
    image = image[:64, :64].copy() if quick else image
    case = f"skimage.data.cell() {image.shape[0]}x{image.shape[1]} uint8"
    yield from against(image, case, {}, TURNS)


FIRST_CALL = """
import sys, time
import numpy as np, ecc_core as ecc
image = np.zeros([int(n) for n in sys.argv[2:]], sys.argv[1])
start = time.perf_counter()
ecc.euler_curve(image, np.linspace(0, 1, 256))
print(time.perf_counter() - start)
"""


def first_calls(quick: bool) -> Iterator[Row]:
    """First call in a process."""
    for dtype, shape in (("uint8", (64, 64)), ("uint8", (64,) * 3), ("float32", (64,) * 3)):
        times: dict[str, list[float]] = {"cold": [], "cached": []}
        for _ in range(1 if quick else 3):
            with tempfile.TemporaryDirectory() as folder:
                for kind in ("cold", *["cached"] * 3):
                    words = [sys.executable, "-c", FIRST_CALL, dtype, *map(str, shape)]
                    environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
                    done = subprocess.run(words, env=environment, capture_output=True, check=True)
                    times[kind].append(float(done.stdout))
        for kind, bar in (("cached", "<= 0.5"), ("cold", "<= 3")):
            best = min(times[kind])
            case = f"{'x'.join(map(str, shape))} {dtype}, {kind}"
            count = len(times[kind])
            yield Row(case, len(shape), 1, best * 1e3, "seconds", 0.0, count, best, bar)


def regions(quick: bool) -> Iterator[Row]:
    """Regions."""
    n, count = (256, 50) if quick else (2048, 2000)
    rng = np.random.default_rng(5)
    points = np.indices((n, n)).reshape(2, -1).T
    nearest = cKDTree(rng.random((count, 2)) * n).query(points)[1]
    labels = (nearest.reshape(n, n) + 1).astype(np.int32)
    for dtype in ("uint8", "float32"):
        image = as_dtype(field((n, n), 2), dtype)
        at = levels(dtype)
        for connectivity in (1, 2):
            options: dict[str, Any] = {"connectivity": connectivity, "workers": 1}
            calls = {
                "ours": lambda image=image, at=at, options=options: ecc.region_curves(
                    image, labels, at, **options
                ),
                "euler_curve": lambda image=image, at=at, options=options: ecc.euler_curve(
                    image, at, **options
                ),
            }
            in_turns(calls, 1)
            timed = in_turns(calls, TURNS)
            case = f"{n}x{n} {dtype}, {count} touching regions"
            other = "one euler_curve", timed["euler_curve"]
            yield row(case, connectivity, 1, timed["ours"], other, "<= 10")


SECTIONS: dict[str, Callable[[bool], Iterator[Row]]] = {
    "volumes": smooth_volumes,
    "noise": noise_volumes,
    "images": images,
    "thresholds": thresholds,
    "peers": volume_peers,
    "photograph": image_peers,
    "first": first_calls,
    "regions": regions,
}


ABOUT = """\
256 thresholds. All calls of a row are repeated alternately in one process, at least 20 ms each
time, and the least times are compared.
`connectivity` 1 is the V-construction, the other value the T-construction. The read
floor is `X.reshape(-1).view("u8").sum()`. Written by `python benchmarks/cpu.py`."""

if __name__ == "__main__":
    run("cpu", "Times on the CPU", ABOUT, SECTIONS)
