"""Counts of values that have entered, for values that are no image, such as births of classes.

They get keys as the values of images do, which takes 1 to 2 ns for each value, where a binary
search among 256 levels takes 60.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.cpu.encoders.plans import Plan, curve_plans
from ecc_core._backends.cpu.scans.blocks import load_box
from ecc_core._backends.cpu.scans.stacks import cumulate
from ecc_core._backends.cpu.sources import Block, Source, scratch

Array = NDArray[Any]
Values = NDArray[np.int64]


def plan_of(dtype: np.dtype[Any], thresholds: Array, superlevel: bool, points: int = 0) -> Plan:
    """Return the plan whose keys are ranks; for many `points` it may have more bins."""
    native = dtype.newbyteorder("=")
    return curve_plans(native, thresholds, superlevel, False, masked=False, points=points)[-1]


def keys_of(values: Array, plan: Plan) -> Array:
    """Return the keys of values, (n,), in memory that the next call writes to."""
    keys = scratch.take("keys of values", values.size, plan.key_dtype)
    box = Block((0, 0, 0), (1, 1, values.size))
    load_box(plan, Source(values[None, None]), None, box, keys, 0, (0, 0))
    return keys


def entered(values: Array, plan: Plan, weights: Array | None = None) -> Values:
    """Count the values that have entered at each threshold; with integer `weights`, add these."""
    return entered_keys(keys_of(values, plan), plan, weights)


def entered_keys(keys: Array, plan: Plan, weights: Array | None = None) -> Values:
    """Count the keys that have entered at each threshold; with integer `weights`, add these."""
    counts = np.bincount(keys, weights, minlength=plan.top + 1).astype(np.int64, copy=False)
    found = np.zeros((1, plan.entered.size), np.int64)
    cumulate(counts[None], None, False, 1, plan.entered, found)
    sums: Values = found[0]
    return sums


def entered_in_regions(values: Array, regions: Array, count: int, plan: Plan) -> Values:
    """Count the values of each of the regions 1 to `count`, (count, n)."""
    bins = plan.top + 1
    places = (regions.astype(np.int64) - 1) * bins + keys_of(values, plan)
    histograms = np.bincount(places, minlength=count * bins).reshape(count, bins)
    found = np.zeros((count, plan.entered.size), np.int64)
    cumulate(histograms, None, False, 1, plan.entered, found)
    return found
