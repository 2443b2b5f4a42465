"""Compile the kernels for common images ahead of time, or load them from the cache."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from ecc_core import components, curves, geometry, regions, topology, transforms

__all__ = ["warmup"]

CURVES = (np.uint8, np.float32, np.uint16)
OTHERS = (np.uint8, np.float32)
RANGE: Any = {"range": (0, 1)}


def warmup(
    *, block: bool = False, progress: Callable[[str], None] | None = None
) -> threading.Thread:
    """Compile the kernels for common images in the background, or load them from the cache.

    First those of Euler characteristic curves, then those of regions, Betti curves, persistent
    regions, Minkowski functionals and transforms, in 2-D and 3-D. With an empty cache this takes
    one or two minutes of processor time. A fork meanwhile, as by a ``DataLoader`` with workers,
    waits until the current step is done.

    Parameters
    ----------
    block : bool, default False
        Wait until compilation has finished.
    progress : callable, optional
        Is called at the beginning of each step, from the thread, with the name of the step.

    Returns
    -------
    threading.Thread
        The thread that compiles the kernels.

    Raises
    ------
    TypeError
        If `progress` cannot be called.

    Examples
    --------
    >>> import ecc_core as ecc
    >>> ecc.warmup(block=True).is_alive()
    False
    """
    from ecc_core._backends import process_forks

    if not (progress is None or callable(progress)):
        raise TypeError(f"`progress` must be a function or None, got {progress!r}")

    def work() -> None:
        for name, call in steps():
            if progress is not None:
                progress(name)
            with process_forks.paused:
                call()

    thread = threading.Thread(target=work, name="ecc-warmup", daemon=True)
    thread.start()
    if block:
        thread.join()
    return thread


def steps() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each step and a call that compiles its kernels, the commonest first."""
    for dtype in CURVES:
        for image in _images(dtype):
            yield f"curves, {_kind(image)}", partial(curves.euler_curve, image, 2)
    for dtype in OTHERS:
        for image in _images(dtype):
            labels = np.ones(image.shape, np.int32)
            tasks: dict[str, Callable[[], Any]] = {
                "regions": partial(regions.region_curves, image, labels, 2, **RANGE),
                "Betti curves": partial(topology.betti_curves, image, 2, **RANGE),
                "persistent regions": partial(components.persistent_regions, image, 1),
                "Minkowski functionals": partial(geometry.minkowski_curves, image, 2, **RANGE),
            }
            for name, call in tasks.items():
                yield f"{name}, {_kind(image)}", call
    for image in _images(np.bool_):
        yield f"transforms, {image.ndim}-D", partial(transforms.euler_transform, ~image, 2, 2)


def _images(dtype: Any) -> list[np.ndarray[Any, np.dtype[Any]]]:
    return [np.zeros((4,) * ndim, dtype) for ndim in (2, 3)]


def _kind(image: np.ndarray[Any, np.dtype[Any]]) -> str:
    return f"{image.dtype} {image.ndim}-D"
