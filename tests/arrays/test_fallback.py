"""Arrays on devices without kernels: computed by functions of the array API standard."""

import re

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core._arrays.adapters.jax import JAX
from ecc_core._arrays.adapters.torch import Torch
from ecc_core._backends import registry
from ecc_core._backends.plain.namespaces import NumPyFunctions
from ecc_core.errors import BackendError

RNG = np.random.default_rng(8)
IMAGE = RNG.integers(0, 5, (2, 5, 6)).astype(np.float32)
LABELS = RNG.integers(0, 3, IMAGE.shape, dtype=np.int32)
FUNCTIONS = (
    *("argsort", "any", "concat", "flip", "isfinite", "isnan", "max", "maximum", "min", "minimum"),
    *("permute_dims", "reshape", "searchsorted", "sort", "stack", "take", "unique_values"),
    *("where", "zeros_like", "broadcast_to"),
)


class Standard:
    """The part of the standard that is needed; no array leaves its device."""

    bool = np.bool_
    int8 = np.int8
    int64 = np.int64
    float32 = np.float32
    float64 = np.float64

    def __getattr__(self, name):
        assert name in FUNCTIONS, name
        numpy = NumPyFunctions()
        names = {"permute_dims": "transpose"}
        compute = getattr(numpy, names.get(name, name))

        def function(*arrays, **options):
            given = []
            for array in arrays:
                several = isinstance(array, list)
                given.append([one.held for one in array] if several else held(array))
            return Elsewhere(compute(*given, **options))

        return function

    def asarray(self, array, *, device=None):
        assert device == "chip:0"
        return Elsewhere(array)

    def astype(self, array, dtype):
        return Elsewhere(array.held.astype(dtype))


def held(array):
    return array.held if isinstance(array, Elsewhere) else array


class Elsewhere:
    """An array on a device of its own, with the methods of the standard only."""

    device = "chip:0"

    def __init__(self, array):
        self.held = np.asarray(array)
        self.shape, self.dtype, self.ndim = self.held.shape, self.held.dtype, self.held.ndim
        self.size = self.held.size

    def __array_namespace__(self):
        return Standard()

    def __array__(self, *_, **__):
        raise AssertionError("the array was copied to the host")

    def __getitem__(self, index):
        return Elsewhere(self.held[held(index)])

    def __bool__(self):
        return bool(self.held)

    def __int__(self):
        return int(self.held)

    def __float__(self):
        return float(self.held)


def _operator(name):
    def operate(self, *other):
        return Elsewhere(getattr(self.held, name)(*map(held, other)))

    return operate


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "and",
    "or",
    "eq",
    "ne",
    "le",
    "lt",
    "gt",
):
    setattr(Elsewhere, f"__{_name}__", _operator(f"__{_name}__"))
Elsewhere.__invert__ = _operator("__invert__")
Elsewhere.__hash__ = None


def _tensor(array):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(np.array(array))


def _of_jax(array):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    return jax.numpy.asarray(array)


ARRAYS = {"standard": Elsewhere, "torch": _tensor, "jax": _of_jax}


@pytest.fixture(params=ARRAYS)
def elsewhere(request, monkeypatch):
    """A function that puts arrays on a device without kernels, where the next call warns."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(Torch, "device", lambda *_: "mps:0")
    monkeypatch.setattr(Torch, "unwrap", lambda *arguments: arguments[1])
    monkeypatch.setattr(JAX, "device", lambda *_: "DLPack device 15")
    return ARRAYS[request.param]


def on_host(array):
    return array.held if isinstance(array, Elsewhere) else np.asarray(array)


CALLS = {
    "curve": lambda put: ecc.euler_curve(put(IMAGE), [0, 1.5, 3]),
    "batch": lambda put: ecc.euler_curve(put(IMAGE), 4, axis=(2, 1), superlevel=True),
    "mask": lambda put: ecc.euler_curve(put(IMAGE), [2], mask=put(IMAGE[0] > 1), axis=(1, 2)),
    "exact": lambda put: ecc.euler_curve(put(IMAGE), "exact", connectivity=1, superlevel=True),
    "bool": lambda put: ecc.euler_curve(put(IMAGE > 2), [0, 1], superlevel=True),
    "bytes": lambda put: ecc.euler_curve(put(IMAGE.astype(np.uint8)), 3, boundary="periodic"),
    "direction": lambda put: ecc.euler_curve(put(IMAGE[0]), [1, 2.25], direction=[1, -2]),
    "coefficients": lambda put: [ecc.euler_coefficients(put(IMAGE), connectivity=1)],
    "cubes": lambda put: [ecc.euler_coefficients(put(IMAGE), superlevel=True)],
    "regions": lambda put: ecc.region_curves(put(IMAGE), put(LABELS), 3),
    "surface": lambda put: ecc.euler_surface(put(IMAGE), put(IMAGE[::-1].copy()), [1, 3], [2]),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore:there are no kernels")
def test_results_are_those_of_the_host(elsewhere, name):
    """Exactly, on the same device, and with the same dtypes."""
    if elsewhere is _of_jax and name != "mask":
        pytest.skip("JAX compiles each operation for each shape, which takes seconds")
    found = CALLS[name](elsewhere)
    known = CALLS[name](np.asarray)
    expected = [np.asarray(array) for array in known]
    on_the_host = [on_host(array) for array in found]
    assert [array.dtype for array in on_the_host] == [array.dtype for array in expected]
    np.testing.assert_equal(on_the_host, expected)
    assert type(found[-1]) is type(elsewhere(IMAGE))


def test_the_first_call_warns(elsewhere, recwarn):
    image = elsewhere(IMAGE)
    assert ecc.euler_number(image) == ecc.euler_number(IMAGE)
    (said,) = [str(one.message) for one in recwarn if "no kernels" in str(one.message)]
    assert re.fullmatch(r"there are no kernels for .*: curves are computed slowly.*", said)
    ecc.euler_number(image)
    said = [str(one.message) for one in recwarn]
    assert sum("no kernels" in message for message in said) == 1


@pytest.mark.filterwarnings("ignore:there are no kernels")
def test_errors_are_those_of_the_host(elsewhere):
    missing = IMAGE.copy()
    missing[0, 2, 3] = np.nan
    with pytest.raises(ValueError, match="`image` must not contain NaN"):
        ecc.euler_curve(elsewhere(missing), [0])
    with pytest.raises(ValueError, match="`labels` must not be negative, got -1"):
        ecc.region_curves(elsewhere(IMAGE), elsewhere(LABELS - 1), [0])
    with pytest.raises(BackendError, match=r"Betti numbers are not available on .*: copy the arr"):
        ecc.persistence_pairs(elsewhere(IMAGE))


@pytest.mark.parametrize("function", [ecc.betti_curves, ecc.minkowski_curves, ecc.component_curves])
@pytest.mark.filterwarnings("ignore:there are no kernels")
def test_quantities_without_a_fallback(elsewhere, function):
    with pytest.raises(BackendError, match=r"are not available on .*: copy the arrays to the"):
        function(elsewhere(IMAGE), [0])
