"""Images and times on a CUDA device, by CuPy alone."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np
from cupyx.scipy.ndimage import gaussian_filter


def field(shape: tuple[int, ...], sigma: float, dtype: str, images: int = 1) -> Any:
    """Return uniform or smoothed noise, stretched to [0, 1]; integers fill their range."""
    rng = cupy.random.default_rng(7)
    image = rng.random((images, *shape), dtype=cupy.float32)
    if sigma:
        for single in image:
            single[...] = gaussian_filter(single, sigma, mode="wrap")
        image -= image.min()
        image /= image.max()
    if dtype == "float32":
        return image
    return (image * np.iinfo(dtype).max).astype(dtype)


def read_rate() -> float:
    """Return the bytes a second of a max-reduction of 4 GiB."""
    data = cupy.zeros(1 << 30, np.float32)
    data += 1
    return data.nbytes / events(lambda: cupy.max(data), 10)


def events(call: Any, repeats: int) -> float:
    """Return the seconds of a call, the least of several repeats."""
    call()
    best = float("inf")
    start = cupy.cuda.Event()
    stop = cupy.cuda.Event()
    for _ in range(repeats):
        start.record()
        call()
        stop.record()
        stop.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(start, stop) / 1e3)
    return best


def replay(call: Any, times: int = 200, calls: int = 1) -> float:
    """Return the seconds of a call in a CUDA graph."""
    cupy.cuda.Device().synchronize()  # The arguments may still be computed.
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        call()
        stream.synchronize()
        stream.begin_capture()
        kept = [call() for _ in range(calls)]
        graph = stream.end_capture()
        graph.launch(stream)
        stream.synchronize()
        best = float("inf")
        start = cupy.cuda.Event()
        stop = cupy.cuda.Event()
        for _ in range(3):
            start.record(stream)
            for _ in range(times):
                graph.launch(stream)
            stop.record(stream)
            stop.synchronize()
            best = min(best, cupy.cuda.get_elapsed_time(start, stop) / 1e3 / times / calls)
    del kept
    return best
