"""CZI, ND2 and LIF, through bioio's readers."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._io.stored import Opened, Request
from ecc_core._io.units import in_micrometers
from ecc_core._optional import import_optional

__all__ = ["SUFFIXES", "open_microscope"]

SUFFIXES = (".czi", ".nd2", ".lif")


def open_microscope(path: Path, request: Request) -> Opened:
    """Open one scene of a file."""
    kind = path.suffix.lower()[1:]
    purpose = f"reading {kind.upper()} files"
    reader = import_optional(f"bioio_{kind}", extra=kind, purpose=purpose).Reader
    image = import_optional("bioio", extra=kind, purpose=purpose).BioImage(path, reader=reader)
    image.set_scene(request.pick_series([str(scene) for scene in image.scenes]))
    sizes = image.physical_pixel_sizes
    steps = {axis: getattr(sizes, axis) for axis in "ZYX"}
    spacing = in_micrometers(steps, dict.fromkeys("ZYX", "um"))
    lengths = dict(zip(image.dims.order, image.shape, strict=True))
    axes = "".join(a for a, n in lengths.items() if a in "YX" or n > 1)
    array = _Planes(image.get_image_dask_data(axes))
    return Opened(
        array,
        axes,
        array.chunks,
        spacing=spacing,
        unit="micrometer" if spacing else "",
        series=len(image.scenes),
    )


class _Planes:
    """A dask array that is computed when it is indexed."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.chunks = tuple(max(1, lengths[0]) for lengths in array.chunks)

    def __getitem__(self, index: tuple[slice | int, ...]) -> NDArray[Any]:
        return np.asarray(self.array[index].compute(scheduler="synchronous"))
