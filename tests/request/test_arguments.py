"""Every optional argument of every public function changes the result, or is an error."""

import functools
import inspect

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.quantities import CURVES

RNG = np.random.default_rng(1)
IMAGE = RNG.integers(0, 9, (8, 9)).astype(np.float32)
HOLED = IMAGE.copy()
HOLED[2, 3] = np.nan
MASK = IMAGE > 2
LABELS = np.repeat(np.arange(8) // 3, 9).reshape(8, 9)
TURNED = MASK[:, :8], np.rot90(MASK[:, :8])
POINTS = RNG.normal(size=(9, 3))


@functools.cache
def transform_of(turned: int) -> ecc.EulerTransform:
    return ecc.euler_transform(TURNED[turned], 8, 16, range=(-9, 9))


NAMES = [name for name in ecc.__all__ if inspect.isfunction(getattr(ecc, name))]
GIVEN = {"image": IMAGE, "labels": LABELS}


def needed_by(name):
    """The image and the labels, if a function needs these."""
    parameters = inspect.signature(getattr(ecc, name)).parameters.values()
    return {p.name: GIVEN[p.name] for p in parameters if p.default is p.empty and p.name in GIVEN}


# The positional arguments that each function needs. Functions make those that need kernels, which
# would otherwise be compiled while tests are collected, in every process.
NEEDED = {
    **{name: needed_by(name) for name in NAMES},
    "betti_matching": {"prediction": IMAGE, "target": IMAGE.T.reshape(8, 9)},
    "persistence_pairs": {"image": IMAGE, "dimension": 0},
    "persistent_regions": {"image": IMAGE, "min_persistence": 1},
    "euler_surface": {"first": IMAGE, "second": IMAGE.T.reshape(8, 9)},
    "euler_curve_shards": {"shards": [IMAGE[:3], IMAGE[3:]]},
    "euler_transform": {"image": MASK},
    "simplicial_curve": {"values": IMAGE[0], "simplices": [[0, 1], [1, 2], [3, 4]]},
    "simplicial_pairs": {"values": IMAGE[0], "simplices": [[i, i + 1] for i in range(7)]},
    "simplicial_transform": {"points": POINTS, "simplices": [[[0, 1], [1, 2], [3, 4]]]},
    "sample_directions": {"n": 4, "ndim": 2},
    "smooth_transform": {"transform": lambda: transform_of(0)},
    "transform_distance": {"a": lambda: transform_of(0), "b": lambda: transform_of(1)},
    "euler_curve_blocks": {"image": IMAGE, "thresholds": [1, 4]},
    "dask.region_curves": {"image": IMAGE, "labels": LABELS, "thresholds": [1, 4]},
    "local_curves": {"image": IMAGE, "window": 4, "thresholds": [1, 4]},
}
BLOCKS = ["euler_curve_blocks", "dask.region_curves", "local_curves"]
DIRECTION = {"direction": (1, 2)}
COUNT = {"thresholds": 7}
CHANGES = {
    "thresholds": ({"thresholds": [1, 4]}, {}),
    "thresholds_first": ({"thresholds_first": [1, 4]}, {}),
    "thresholds_second": ({"thresholds_second": [1, 4]}, {}),
    "range_first": ({"range_first": (2, 5)}, {}),
    "range_second": ({"range_second": (2, 5)}, {}),
    "range": ({"range": (2, 5), **COUNT}, {**COUNT, "range": (0, 8)}),
    "connectivity": ({"connectivity": 1}, {}),
    "superlevel": ({"superlevel": True}, {}),
    "mask": ({"mask": MASK}, {}),
    "nan": ({"image": HOLED, "nan": "omit"}, {}),
    "axis": ({"axis": 1}, {}),
    "direction": (DIRECTION, {}),
    "direction_scale": ({**DIRECTION, "direction_scale": 3.0}, DIRECTION),
    "spacing": ({**DIRECTION, "spacing": (2, 1)}, DIRECTION),
    "directions": ({"directions": 3}, {}),
    "heights": ({"heights": 5}, {}),
    "weighted": ({"image": IMAGE, "weighted": True}, {}),
    "normalize": ({"normalize": "radius"}, {}),
    "metric": ({"metric": "L1"}, {}),
    "rotation_invariant": ({"rotation_invariant": True}, {}),
    "estimator": ({"estimator": "crofton-4"}, {}),
    "boundary": ({"boundary": "periodic"}, {}),
    "ids": ({"ids": [2, 1, 5]}, {}),
    "dimension": ({"dimension": 1}, {}),
    "threshold": ({"threshold": 4}, {}),
    "rel_height": ({"rel_height": 0.5}, {}),
    "min_persistence": ({"min_persistence": 5}, {}),
    "weights": ({"weights": np.arange(9)}, {}),
    "center": ({"center": "mean"}, {}),
    "complete": ({"complete": True}, {}),
    "inlet": ({"inlet": IMAGE > 4}, {}),
    "outlet": ({"outlet": IMAGE > 4}, {}),
}
TRANSFORMED = "euler_transform", "region_transforms"
OF_REGIONS = [one.of_regions for one in CURVES.values() if one.of_regions]
SPECIAL = {
    **{
        (name, "spacing"): ({"spacing": (2, 1)}, {})
        for name in ("minkowski_curves", "component_curves", "region_minkowski", *TRANSFORMED)
    },
    **{(name, "range"): ({"range": (-2, 2)}, {}) for name in TRANSFORMED},
    **{
        ("simplicial_transform", name): ({name: value, "range": (-2, 2)}, {"range": (-2, 2)})
        for name, value in {
            "weights": np.arange(9),
            "center": "mean",
            "normalize": "radius",
        }.items()
    },
    ("simplicial_transform", "thresholds"): ({"thresholds": [-1, 1]}, {}),
    ("simplicial_transform", "range"): ({"range": (-2, 2)}, {}),
    **{
        (name, "complete"): ({"simplices": [[[0, 1, 2]]], "complete": True}, {})
        for name in ("simplicial_curve", "simplicial_pairs", "simplicial_transform")
    },
    ("betti_matching", "nan"): ({"prediction": HOLED, "nan": "omit"}, {}),
    ("betti_matching", "axis"): ({"axis": (1, 0)}, {}),
    ("euler_surface", "nan"): ({"first": HOLED, "nan": "omit"}, {}),
    ("euler_curve_shards", "nan"): ({"shards": [HOLED[:3], HOLED[3:]], "nan": "omit"}, {}),
    ("persistence_pairs", "axis"): ({"axis": (1, 0)}, {}),
    ("persistent_regions", "axis"): ({"axis": (1, 0)}, {}),
    ("local_curves", "nan"): ({"image": HOLED, "nan": "omit"}, {}),
}
# Values of arguments that must not change a result, and values that are refused.
SAME = {"workers": (3, 0), "block": (True, None), "progress": (print, 5), "devices": (None, [])}
SAME |= {(name, "boundary"): ("closed", "periodic") for name in TRANSFORMED}
SAME |= {(name, "axis"): ((1, 0), 1) for name in OF_REGIONS}


def function_of(name):
    if name in BLOCKS:
        pytest.importorskip("dask.array", reason="dask is not installed")
        import ecc_core.dask as blocks

        return getattr(blocks, name.rpartition(".")[2])
    return getattr(ecc, name)


def call(name, **options):
    """The arrays of a result, of dask arrays where the function takes no others."""
    given = {**NEEDED[name], **options}
    given = {key: value() if inspect.isfunction(value) else value for key, value in given.items()}
    if name in BLOCKS:
        import dask.array as da

        given["image"] = da.from_array(given["image"], chunks=3)
    result = function_of(name)(**given)
    parts = result if isinstance(result, tuple) or hasattr(result, "_fields") else (result,)
    if name == "component_curves":
        parts = (*parts, result.volume)  # The rest does not depend on `spacing`.
    if name == "betti_matching":
        parts = result.matches, result.prediction.births, result.target.births
    return [np.asarray(part) for part in parts]


def optional(name):
    parameters = inspect.signature(function_of(name)).parameters.values()
    return [p.name for p in parameters if p.default is not p.empty]


CASES = [(name, option) for name in NAMES for option in optional(name)]


def blocks_cases():
    try:
        return [(name, option) for name in BLOCKS for option in optional(name)]
    except pytest.skip.Exception:
        return []


def same(first, second):
    return len(first) == len(second) and all(map(np.array_equal, first, second))


@pytest.mark.parametrize(("name", "option"), CASES + blocks_cases())
def test_an_argument_is_used(name, option):
    if kept := SAME.get((name, option), SAME.get(option)):
        value, refused = kept
        if option not in ("block", "progress"):
            assert same(call(name), call(name, **{option: value}))
            with pytest.raises((TypeError, ValueError), match=f"`{option}`"):
                call(name, **{option: refused})
        return
    assert option in CHANGES, f"`{option}` of {name} has no case here"
    changed, base = SPECIAL.get((name, option), CHANGES[option])
    found = call(name, **changed)
    if option == "nan":
        with pytest.raises(ValueError, match="nan="):
            call(name, **{**changed, "nan": "raise"})
        return
    assert not same(found, call(name, **base))


@pytest.mark.parametrize(("name", "option"), CASES + blocks_cases())
def test_nonsense_is_an_error_that_names_the_argument(name, option):
    if option in ("devices", "block"):
        return
    base = {} if option not in ("spacing", "direction_scale") else DIRECTION
    if "direction" not in optional(name):
        base = {}
    with pytest.raises((TypeError, ValueError), match=f"`{option}`"):
        call(name, **base, **{option: object()})


@pytest.mark.parametrize("name", ["euler_curve", "region_curves", "euler_curve_shards"])
def test_arguments_that_exclude_each_other(name):
    with pytest.raises(ValueError, match="`range` must be None where `thresholds` is an array"):
        call(name, thresholds=[1, 2], range=(1, 2))
