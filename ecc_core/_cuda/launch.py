"""The CUDA backend: from checked device arrays to curves and coefficients.

Images are CuPy arrays or torch tensors of shape (batch, *spatial) with 1 to 3 spatial axes; results
are of the same kind, on the same device, in the order of the library's current stream. Nothing
waits for the device except where an answer depends on the data: `nan="raise"` for floats, value
ranges, exact curves and regions.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import cupy
import numpy as np
from numpy.typing import NDArray

from ecc_core._cuda.arrays import Adopted, Image, adopt, lay_out
from ecc_core._cuda.bins import Prepared, prepare
from ecc_core._cuda.compile import kernel, processors, shared_limit
from ecc_core._cuda.tiling import plan2d, plan3d
from ecc_core._directions import Tilt
from ecc_core.errors import NAN_MESSAGE

__all__ = ["coefficients", "curve", "exact_curve", "region_curves", "value_range"]

Array = NDArray[Any]
Construction = Literal["V", "T"]

ELEMENTS = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "uint64": "unsigned long long",
    "int64": "long long",
    "float16": "Half",
    "bfloat16": "BFloat",
    "float32": "float",
    "float64": "double",
}
NAN_NONE, NAN_REPORT, NAN_OMIT = range(3)
SHARED, PACKED, GLOBAL = range(3)
COEFFICIENTS, COUNTS = range(2)

# Structures of image.cuh, march.cuh, histogram.cuh and points.cu.
IMAGE = np.dtype(
    [
        ("data", "u8"),
        ("mask", "u8"),
        ("strides", "i8", 3),
        ("mask_strides", "i8", 3),
        ("shape", "i4", 3),
    ],
    align=True,
)
TILING = np.dtype([(name, "i4") for name in ("across", "down", "chunk", "first", "last")])
RESULT = np.dtype(
    [(name, "u8") for name in ("values", "counts", "tickets", "not_finite")]
    + [(name, "i4") for name in ("blocks", "copies", "sign", "accumulate")],
    align=True,
)
POINTS = np.dtype([("coefficients", "u8"), ("regions", "u8"), ("total", "i8")])

TABLE_BYTES = 16 << 10  # of thresholds in shared memory
COPIES_BYTES = 4608  # of bins in shared memory, for each warp of a block
SHARED_BYTES = 64 << 10  # of bins in shared memory, in 32 bits each
SCAN_BINS = 4096  # more are summed by a kernel of their own
POINT_THREADS = 256


class Filtration(NamedTuple):
    """What the kernels are compiled for, whatever the thresholds."""

    construction: Construction
    superlevel: bool
    nan: int
    element: str
    masked: bool

    def options(self, prepared: Prepared | None) -> dict[str, Any]:
        """The macros of options.cuh that every kernel needs."""
        dual = self.construction == "T"
        return {
            "ELEMENT": ELEMENTS[self.element],
            "DOWN": int(dual != self.superlevel),
            "DUAL": int(dual),
            "SUPER": int(self.superlevel),
            "NAN": self.nan,
            "MASK": int(self.masked),
            "VECTOR": 0,
            "BINS": 1 if prepared is None else prepared.rule,
            "STORE": GLOBAL,
            "SHARED_TABLE": 0,
        }


def _filtration(image: Image, construction: Construction, superlevel: bool, nan: str) -> Filtration:
    floats = "float" in image.element
    policy = (NAN_OMIT if nan == "omit" else NAN_REPORT) if floats else NAN_NONE
    return Filtration(construction, superlevel, policy, image.element, image.mask is not None)


def curve(
    image: Any,
    thresholds: Any,
    *,
    construction: Construction,
    superlevel: bool,
    mask: Any,
    nan: str,
    tilt: Tilt | None = None,
    own: slice | None = None,
) -> Any:
    """Euler characteristic of each image of a batch at sorted thresholds: (batch, n) int64.

    `own` restricts the sum to some indices of the first spatial axis; where it ends inside the
    image, one more index must be there on that side.
    """
    with adopt(image) as adopted:
        images = adopted.array.shape[0]
        thresholds = thresholds if isinstance(thresholds, np.ndarray) else _to_host(thresholds)
        if adopted.array.size == 0 or thresholds.size == 0:
            return adopted.give_back(cupy.zeros((images, thresholds.size), np.int64))
        if tilt is not None:
            adopted = Adopted(_tilted(adopted.array, tilt), "float64", adopted.give_back)
        laid = lay_out(adopted, _as_cupy(mask), keep_order=own is not None)
        filtration = _filtration(laid, construction, superlevel, nan)
        device = laid.array.device.id
        prepared = prepare(thresholds, laid.element, superlevel, device)
        ambiguous = prepared.reaches_last and (laid.mask is not None or filtration.nan == NAN_OMIT)
        if ambiguous:
            values, flag = _count_points(laid, filtration, prepared, None, images)
        else:
            values, flag = _march(laid, filtration, prepared, device, own)
        _raise_for_nan(flag, laid)
        if prepared.pick is not None:
            level, empty = prepared.pick
            values = values[:, level] if prepared.levels else cupy.zeros((images, 1), np.int64)
            values = cupy.where(empty, 0, values)
        return adopted.give_back(values)


def _march(
    image: Image, filtration: Filtration, prepared: Prepared, device: int, own: slice | None
) -> tuple[Any, Any]:
    """Curves at the levels by the marching kernels, and the flag of values that are not finite."""
    images, depth, height, width = image.array.shape
    deep = image.ndim == 3
    first, last, _ = (own or slice(None)).indices(depth if deep else height)
    bins = prepared.levels + 1
    store = SHARED if 4 * bins <= SHARED_BYTES else GLOBAL
    if store == GLOBAL and 2 * bins + 4096 <= shared_limit(device) - TABLE_BYTES:
        store = PACKED
    if deep:
        few = (
            (16,) if store == PACKED else (8, 16) if 4 * bins > COPIES_BYTES * 4 else (4, 5, 8, 16)
        )
        tiling = plan3d(images, last - first, height, width, processors(device), few)
    else:
        warps = 24 if store == PACKED else 8
        tiling = plan2d(images, last - first, width, processors(device), warps)
    table = prepared.levels * prepared.key_size <= TABLE_BYTES
    copies = 1
    while store == SHARED and copies < 32 and 8 * bins * copies <= COPIES_BYTES * tiling.warps:
        copies *= 2
    words = {SHARED: bins * copies, PACKED: (bins + 1) // 2, GLOBAL: 0}[store]
    exchange = 2 * 32 * tiling.warps if deep else 0
    shared = 4 * (words + exchange) + (prepared.levels * prepared.key_size if table else 0) + 1024
    function = kernel(
        "curve3d" if deep else "curve2d",
        device,
        tuple(
            {
                **filtration.options(prepared),
                "VECTOR": int(image.aligned),
                "STORE": store,
                "SHARED_TABLE": int(table),
            }.items()
        ),
    )
    direct = tiling.blocks == 1 and store == SHARED
    buffer = _Buffer(images, prepared.levels, with_counts=not direct)
    buffer.clear(counts=not direct, flag=filtration.nan == NAN_REPORT)
    result = buffer.result()
    result["blocks"], result["copies"] = tiling.blocks, copies
    result["sign"] = -1 if filtration.construction == "T" and deep else 1
    result["accumulate"] = bins <= SCAN_BINS
    part = np.array((tiling.across, tiling.down, tiling.chunk, first, last), TILING)
    arguments = (_image_struct(image), part, prepared.bins, result)
    function((images * tiling.blocks,), (32 * tiling.warps,), arguments, shared_mem=shared)
    if not (direct or bins <= SCAN_BINS):
        buffer.accumulate(int(result["sign"]), filtration.superlevel)
    return buffer.values, buffer.flag if filtration.nan == NAN_REPORT else None


class _Buffer:
    """One allocation for a call: curves, then bins, tickets and the flag.

    A CUDA graph that has captured the call stays valid as long as the curves live.
    """

    def __init__(self, rows: int, count: int, *, with_counts: bool) -> None:
        self.rows, self.count = rows, count
        bins = rows * (count + 1) if with_counts else 0
        self.all = cupy.empty(rows * count + bins + rows + 1, np.int64)
        self.values = self.all[: rows * count].reshape(rows, count)
        self.flag = self.all[-1:]
        self.bins = bins

    def clear(self, *, counts: bool, flag: bool) -> None:
        if counts:
            start = self.rows * self.count
            (self.all.data + 8 * start).memset_async(0, 8 * (self.bins + self.rows + 1))
        elif flag:
            self.flag.data.memset_async(0, 8)

    def result(self) -> Array:
        start = self.all.data.ptr
        counts = start + 8 * self.rows * self.count
        tickets = counts + 8 * self.bins
        row = (start, counts, tickets, tickets + 8 * self.rows, 1, 1, 1, 0)
        return np.array(row, RESULT)

    def accumulate(self, sign: int, superlevel: bool) -> None:
        """Curves from the bins, in place."""
        start = self.rows * self.count
        counts = self.all[start : start + self.bins].reshape(self.rows, self.count + 1)
        if superlevel:
            running = cupy.cumsum(counts[:, :0:-1], axis=1)[:, ::-1]
        else:
            running = cupy.cumsum(counts[:, :-1], axis=1)
        cupy.multiply(running, sign, out=self.values)


def _image_struct(image: Image) -> Array:
    mask, strides = 0, (0, 0, 0)
    if image.mask is not None:
        mask, strides = image.mask.data.ptr, image.mask.strides[:3]
    array = image.array
    return np.array((array.data.ptr, mask, image.strides[:3], strides, array.shape[1:]), IMAGE)


def _count_points(
    image: Image, filtration: Filtration, prepared: Prepared, regions: Any, rows: int
) -> tuple[Any, Any]:
    """Curves point by point, of each image or of each region."""
    buffer = _Buffer(rows, prepared.levels, with_counts=True)
    buffer.clear(counts=True, flag=True)
    _points(image, filtration, prepared, buffer.result(), regions, None)
    sign = 1
    buffer.accumulate(sign, filtration.superlevel)
    return buffer.values, buffer.flag if filtration.nan == NAN_REPORT else None


def _points(
    image: Image,
    filtration: Filtration,
    prepared: Prepared | None,
    result: Array,
    regions: Any,
    out: Any,
) -> None:
    device = image.array.device.id
    options = {
        **filtration.options(prepared),
        "OUTPUT": COUNTS if out is None else COEFFICIENTS,
        "REGIONS": int(regions is not None),
    }
    function = kernel("points", device, tuple(options.items()))
    total = image.array.size
    place = np.array(
        (0 if out is None else out.data.ptr, 0 if regions is None else regions.data.ptr, total),
        POINTS,
    )
    bins = np.zeros((), prepare(np.zeros(1), "float32", False, device).bins.dtype)
    blocks = min(-(-total // POINT_THREADS), 64 * processors(device))
    arguments = (_image_struct(image), place, bins if prepared is None else prepared.bins, result)
    function((blocks,), (POINT_THREADS,), arguments)


def _raise_for_nan(flag: Any, image: Image) -> None:
    """Wait for the flag; where it is set, tell NaN from infinity by a second look."""
    if flag is None or not int(flag[0]):
        return
    numbers = image.array
    half = image.element == "bfloat16"
    bad = (numbers & 0x7FFF) > 0x7F80 if half else cupy.isnan(numbers)
    if image.mask is not None:
        bad &= image.mask.view(np.bool_)
    if bool(bad.any()):
        raise ValueError(NAN_MESSAGE)


def coefficients(
    image: Any, *, construction: Construction, superlevel: bool, mask: Any, nan: str
) -> Any:
    """Coefficient of every point of each image: int8, the image's shape."""
    with adopt(image) as adopted:
        return adopted.give_back(
            _coefficients(adopted, construction, superlevel, _as_cupy(mask), nan)
        )


def _coefficients(
    adopted: Adopted, construction: Construction, superlevel: bool, mask: Any, nan: str
) -> Any:
    out = cupy.empty(adopted.array.shape, np.int8)
    if out.size == 0:
        return out
    image = lay_out(adopted, mask, keep_order=True)
    filtration = _filtration(image, construction, superlevel, nan)
    flag = cupy.zeros(1, np.int64)
    result = np.zeros((), RESULT)
    result["not_finite"] = flag.data.ptr
    _points(image, filtration, None, result, None, out)
    _raise_for_nan(flag if filtration.nan == NAN_REPORT else None, image)
    return out


def exact_curve(
    image: Any,
    *,
    construction: Construction,
    superlevel: bool,
    mask: Any,
    nan: str,
    tilt: Tilt | None = None,
) -> tuple[Any, Any]:
    """The levels at which the curve of one image (batch of 1) changes, and the values there."""
    with adopt(image) as adopted:
        if tilt is not None:
            adopted = Adopted(_tilted(adopted.array, tilt), "float64", adopted.give_back)
        counts = _coefficients(adopted, construction, superlevel, _as_cupy(mask), nan)
        changes = counts != 0
        found = adopted.array[changes]
        if adopted.element == "bfloat16":
            found = (found.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        levels, where = cupy.unique(found, return_inverse=True)
        jumps = cupy.zeros(levels.size, np.int64)
        cupy.add.at(jumps, where, counts[changes].astype(np.int64))
        levels, jumps = levels[jumps != 0], jumps[jumps != 0]
        values = cupy.cumsum(jumps[::-1])[::-1] if superlevel else cupy.cumsum(jumps)
        if adopted.element == "bfloat16":
            levels = (levels.view(np.uint32) >> 16).astype(np.int16)
            return _to_bfloat16(adopted.give_back(levels)), adopted.give_back(values)
        return adopted.give_back(levels), adopted.give_back(cupy.ascontiguousarray(values))


def _to_bfloat16(tensor: Any) -> Any:
    import torch

    return tensor.view(torch.bfloat16)


def region_curves(
    image: Any, labels: Any, thresholds: Any, *, construction: Construction, superlevel: bool
) -> tuple[Any, Any]:
    """Ids of the regions, increasing, and the curve of each: (k,), (k, n) int64."""
    with adopt(image) as adopted:
        regions = cupy.ascontiguousarray(_as_cupy(labels))
        thresholds = thresholds if isinstance(thresholds, np.ndarray) else _to_host(thresholds)
        ids = cupy.unique(regions)
        ids = ids[ids != 0]
        values = cupy.zeros((ids.size, thresholds.size), np.int64)
        if ids.size and thresholds.size:
            rows = cupy.where(regions != 0, cupy.searchsorted(ids, regions) + 1, 0)
            rows = rows.astype(np.int32)
            single = Adopted(adopted.array[None], adopted.element, adopted.give_back)
            laid = lay_out(single, None, keep_order=True)
            filtration = _filtration(laid, construction, superlevel, "raise")
            device = laid.array.device.id
            prepared = prepare(thresholds, laid.element, superlevel, device)
            values, flag = _count_points(laid, filtration, prepared, rows, int(ids.size))
            _raise_for_nan(flag, laid)
            if prepared.pick is not None:
                level, empty = prepared.pick
                values = cupy.where(empty, 0, values[:, level] if prepared.levels else 0)
        return adopted.give_back(ids), adopted.give_back(values)


def value_range(image: Any, *, mask: Any, nan: str, tilt: Tilt | None = None) -> tuple[Any, Any]:
    """Smallest and largest finite value that is not masked; (None, None) where there is none."""
    with adopt(image) as adopted:
        array = adopted.array
        if tilt is not None:
            array = _tilted(array, tilt)
        elif adopted.element == "bfloat16":
            array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        mask = _as_cupy(mask)
        if mask is not None:
            array = array[cupy.broadcast_to(mask, array.shape)]
        if array.size == 0:
            return None, None
        low, high = array.min(), array.max()
        if array.dtype.kind == "f" and not bool(cupy.isfinite(low) & cupy.isfinite(high)):
            if nan == "raise" and bool(cupy.isnan(low) | cupy.isnan(high)):
                raise ValueError(NAN_MESSAGE)
            array = array[cupy.isfinite(array)]
            if array.size == 0:
                return None, None
            low, high = array.min(), array.max()
        return low.get()[()], high.get()[()]


def _tilted(array: Any, tilt: Tilt) -> Any:
    """X + a * <u, x> in float64, in the order of operations of Tilt.add."""
    ndim = len(tilt.terms)
    height: Any = None
    for axis, terms in enumerate(tilt.terms):
        term = cupy.asarray(terms).reshape((-1,) + (1,) * (ndim - axis - 1))
        height = term if height is None else height + term
    return array.astype(np.float64) + tilt.scale * height


def _as_cupy(array: Any) -> Any:
    if array is None or isinstance(array, cupy.ndarray):
        return array
    return cupy.from_dlpack(array.detach())


def _to_host(thresholds: Any) -> Array:
    return np.asarray(_as_cupy(thresholds).get())
