"""Coefficients of images, their sums in bins, and curves of any number of thresholds by these."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import cupy
import numpy as np

from ecc_core._arithmetic import ceil_div
from ecc_core._backends.cuda import programs
from ecc_core._backends.cuda.arrays import Placement, arrange
from ecc_core._backends.cuda.bins import BINS, Prepared, Rules, table_memory
from ecc_core._backends.cuda.calls import Call, Reply, plan_call, take_reply
from ecc_core._backends.cuda.kernels import (
    ELEMENTS,
    ITEM_BYTES,
    NAN_NONE,
    NAN_OMIT,
    NAN_REPORT,
    Struct,
    Variant,
    processors,
    shared_limit,
)
from ecc_core._backends.cuda.points import (
    POINTS,
    plan_points,
)
from ecc_core._backends.cuda.recipe import IMAGE, image_struct, is_long_line
from ecc_core._backends.cuda.samples import (
    SAMPLES,
    Arrangement,
    Images,
    placed_samples,
    plain_samples,
)
from ecc_core._backends.cuda.scan import running_sums

COEFFICIENTS = Struct("coefficients.cuh", "Coefficients")
DATA, MASK = map(IMAGE.word, ("data", "mask"))
OUT, TO_COUNTS, FLAG = map(COEFFICIENTS.word, ("out", "counts", "not_finite"))
SAMPLES_DATA, SAMPLES_MASK = map(SAMPLES.word, ("data", "mask"))
COEFFICIENTS_OUT, REPORTED, TICKET = map(POINTS.word, ("coefficients", "not_finite", "ticket"))
COLUMNS = 120  # Columns of an image that a warp owns.
ROWS = 7  # Rows of a volume that a warp owns.
THREADS = {2: 256, 3: 384}  # Threads of a block, by the number of axes of an image.
RESIDENT = {2: 2, 3: 1}  # So many blocks must fit on a multiprocessor.
THREADS_COUNTING = {2: 512, 3: 384}  # Threads of a block that has a multiprocessor to itself.
COST_OF_A_UNIT = {2: 4, 3: 2}  # The cost of a unit beside its rows or slices, in rows or slices.
# Coefficients are summed directly where an image has as many rows and columns, and as many samples
# for each bin.
LEAST_SIDES = (8, 16)
SAMPLES_A_BIN = 16
MOST_IMAGES = (1 << 16) - 1  # The most rows of a grid.


def image_coefficients(
    images: Images, *, scans: bool = True, for_host: bool = False
) -> tuple[Any, Any]:
    """Return coefficients, int8 of the image's shape, and a flag. Does not wait.

    `scans`: whether kernels may be used that treat NaN as a number. Their flag tells whether floats
    may contain NaN, else it tells whether NaN is an error and has been seen. It is None if that
    cannot be, a Reply if `for_host` and there is one, and otherwise an array on the device.
    """
    (array, *_), mask, direction, variant = images
    out = cupy.empty(array.shape, np.int8)
    call = None
    if scans and mask is None and direction is None:
        call = _plan(Placement.of(array), variant, None)
    if call is not None:
        return out, _launch(call, array, variant=variant, place=OUT, result=out, for_host=for_host)
    reports = variant.nan == NAN_REPORT
    flag = None
    if out.size:
        if reports:
            flag = take_reply(array.device.id) if for_host else cupy.zeros(1, np.int64)
        launch_points(_point_coefficients(Arrangement.of(images)), images.addresses, out, flag)
    return out, flag


def launch_points(call: Call, addresses: tuple[int, int], out: Any, flag: Any) -> None:
    """Write coefficients by the kernel for images of any strides.

    `addresses` are those of the images and the masks. The flag is a Reply, an array or None.
    """
    data, mask = addresses
    samples, points, _ = call.places
    words = [(samples + SAMPLES_DATA, data), (samples + SAMPLES_MASK, mask)]
    words.append((points + COEFFICIENTS_OUT, out.data.ptr))
    if isinstance(flag, Reply):
        words.append((points + REPORTED, flag.address))
        words.append((points + TICKET, flag.memory.data.ptr))
    elif flag is not None:
        words.append((points + REPORTED, flag.data.ptr))
    call.launch(words)


def prepared_coefficients(images: Arrangement) -> tuple[Callable[..., None], bool]:
    """Return what writes the coefficients of images, and whether it needs a Reply as flag.

    The function takes the addresses of images and masks, the array of the coefficients, and the
    flag or None. The flag means what it does in :func:`image_coefficients`.
    """
    variant = images.variant
    call = None
    if images.mask is None and images.direction is None:
        call = _plan(images.placement, variant, None)
    if call is None:
        return partial(launch_points, _point_coefficients(images)), variant.nan == NAN_REPORT
    image, points, _ = call.places

    def launch(addresses: tuple[int, int], out: Any, flag: Any) -> None:
        words = [(image + DATA, addresses[0]), (points + OUT, out.data.ptr)]
        if flag is not None:
            words += [(points + FLAG, flag.address), (points + FLAG + 1, flag.memory.data.ptr)]
        call.launch(words)

    return launch, "float" in variant.element


@programs.plan
def _point_coefficients(arrangement: Arrangement) -> Call:
    """Return the launch that writes the coefficients of images of any strides."""
    return plan_points(placed_samples(arrangement, vector=False), {"OUTPUT": 0})


def coefficient_call(placement: Placement, variant: Variant) -> tuple[Call, int, int, int]:
    """Return a launch that writes the coefficients of any images.

    Then follow the places of the addresses of images, masks and coefficients among its words. Masks
    have the layout of the images, and infinite samples are not told from those they hide.
    """
    call = _plan(placement, variant, None)
    if call is not None:
        return call, call.places[0] + DATA, call.places[0] + MASK, call.places[1] + OUT
    item = ITEM_BYTES[variant.element]
    steps = tuple(step // item for step in placement.strides)
    hidden = placement._replace(strides=steps) if variant.masked else None
    samples = plain_samples(placement, variant, hidden)
    call = plan_points(samples, {"OUTPUT": 0})
    image, points, _ = call.places
    return call, image + SAMPLES_DATA, image + SAMPLES_MASK, points + COEFFICIENTS_OUT


def _launch(
    call: Call,
    array: Any,
    variant: Variant,
    place: int,
    result: Any,
    words: Iterable[tuple[int, int]] = (),
    *,
    for_host: bool = False,
) -> Any:
    """Launch the kernel for an array, and return the flag."""
    image, points, _ = call.places
    flag: Any = None
    addresses: list[int] = []
    if "float" in variant.element and for_host:
        flag = take_reply(array.device.id)
        addresses = [flag.address, flag.memory.data.ptr]
    elif "float" in variant.element:
        flag = cupy.zeros(2, np.int64)
        addresses = [flag.data.ptr, flag.data.ptr + 8]
    given = (image + DATA, array.data.ptr), (points + place, result.data.ptr)
    call.launch([*given, *enumerate(addresses, points + FLAG), *words])
    return flag


@programs.plan
def _plan(placement: Placement, variant: Variant, rules: Rules | None) -> Call | None:
    """Return the launch that writes coefficients, or adds them by these rules for bins."""
    shape = placement.shape
    item = ITEM_BYTES[variant.element]
    device = placement.device
    ndim = len(shape) - 1
    size = math.prod(shape)
    small = ndim == 1 or shape[-2] < LEAST_SIDES[0] or shape[-1] < LEAST_SIDES[1] or not size
    if small or item > 4:
        return None
    layout = arrange(placement, item, True)
    if layout is None:
        return None
    counts = rules is not None
    shared = 0
    options = variant.options() | {
        "ELEMENT": "Bool" if variant.element == "bool" else ELEMENTS[variant.element],
        "NAN": min(variant.nan, NAN_REPORT),  # The kernel treats NaN as a number.
        "VECTOR": int(layout.vector),
        "COUNTS": int(counts),
        "BLOCKS": 1 if counts else RESIDENT[ndim],
    }
    threads = (THREADS_COUNTING if counts else THREADS)[ndim]
    warps = threads // 32
    blocks = processors(device) * (1 if counts else RESIDENT[ndim])
    images = layout.images
    if rules is not None:
        shared = 4 * (rules.levels // 2 + 1)
        blocks = ceil_div(blocks, images)
        unfit = size < SAMPLES_A_BIN * images * rules.levels or images > MOST_IMAGES
        if unfit or shared > shared_limit(device):
            return None
        options["BINS"] = rules.single
    _, height, width = layout.shape
    across = ceil_div(width, COLUMNS)
    down = ceil_div(height, ROWS) if ndim == 3 else 1
    columns = across * down * (1 if counts else images)

    def cost(chunk: int) -> float:
        units = columns * ceil_div(shape[1], chunk)
        return ceil_div(units, blocks * warps) * (chunk + COST_OF_A_UNIT[ndim])

    chunk = min((8, 16, 32, 64, 128, 256), key=cost)
    units = columns * ceil_div(shape[1], chunk)
    points = COEFFICIENTS(across=across, down=down, chunk=chunk, units=units)
    grid = (min(blocks, ceil_div(units, warps)), images) if counts else (ceil_div(units, warps),)
    given = (image_struct(layout), points, BINS())
    source = f"coefficients{ndim}d"
    return plan_call(
        source,
        "coefficients",
        macros=options,
        grid=grid,
        threads=threads,
        arguments=given,
        shared=shared,
    )


FEW_LEVELS = 12_000  # The sums of so many levels leave room for other blocks.
COUNTS = Struct("counts.cu", "Counts")
COUNTED = COUNTS.word("coefficients")
"""The first of three words: the bins and the flag follow."""


def counted_curves(
    images: Images, prepared: Prepared, own: tuple[int, int] | None
) -> tuple[Any, Any, Any]:
    """Return curves at the levels, a flag that is set if there may be a NaN, and their memory."""
    view, mask, direction, variant = images
    scans = variant.nan != NAN_OMIT
    array = view.array
    rules = prepared.rules
    bins = cupy.zeros((len(array), rules.levels + 1), np.int64)
    call = None
    if scans and mask is None and direction is None and own is None:
        call = _plan(Placement.of(array), variant, rules)
    if call is not None:  # Blocks sum in shared memory.
        rule = enumerate(prepared.bins.tolist(), call.places[2])
        flag = _launch(call, array, variant=variant, place=TO_COUNTS, result=bins, words=rule)
        values = running_sums(bins, variant.superlevel)
        return values, flag, (bins, flag)
    line = is_long_line(array.shape) and own is None
    found: Any = None
    if line:
        flag = cupy.zeros(1, np.int64) if variant.nan == NAN_REPORT else None
    else:
        found, flag = image_coefficients(images, scans=scans)
        # Samples that never enter have the coefficient 0, so they need not be hidden.
        mask = None
        variant = variant._replace(nan=NAN_NONE, masked=False)
    if own is not None:
        part = slice(None), slice(*own)
        view = view._replace(array=array[part])
        found = cupy.ascontiguousarray(found[part])
    given = Images(view, mask, direction, variant)
    call, heights = _plan_counts(Arrangement.of(given), rules, line)
    samples, counts, rule_place = call.places
    addresses = (0 if one is None else one.data.ptr for one in (found, bins, flag))
    words = [*given.words(samples), *enumerate(addresses, counts + COUNTED)]
    call.launch([*words, *enumerate(prepared.bins.tolist(), rule_place)])
    values = running_sums(bins, variant.superlevel)
    return values, flag, (found, flag, bins, given, heights)


@programs.plan
def _plan_counts(arrangement: Arrangement, rules: Rules, line: bool) -> tuple[Call, Any]:
    """Return the launch that adds coefficients to bins, and heights on the device that it reads."""
    samples = placed_samples(arrangement, not line)
    count = arrangement.placement.shape[0]
    shared, macros = table_memory(rules)
    own_sums = rules.levels <= FEW_LEVELS and count <= (MOST_IMAGES if line else 1)
    if own_sums:
        shared += 16 * (rules.levels // 8 + 1)
    macros |= {"BINS": rules.single, "COUNTS": int(own_sums), "LINE": int(line)}
    rows = count if own_sums else 1
    call = samples.plan("counts", "count", macros, COUNTS(), BINS(), shared=shared, rows=rows)
    return call, samples.memory
