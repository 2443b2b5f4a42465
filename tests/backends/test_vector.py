"""The vector intrinsics of the CPU kernels and their plain twins: equal on random input."""

import inspect

import numpy as np
import pytest
from numba import njit
from oracles import vector_operations as plain

from ecc_core._backends.cpu import vector_bits, vector_tiles
from ecc_core._backends.cpu.encoders import cells, vector_cells, vector_even
from ecc_core._backends.cpu.regions import vector_regions
from ecc_core._backends.cpu.scans import vector_coefficients, vector_planes

PITCH = 128
ROWS = 16
STRIDE = ROWS + 16  # planes of one kind: rows, and spare words for the vectors' ends
KINDS = 7
ALL = 0xFFFFFFFFFFFFFFFF
KEY_DTYPES = ("uint8", "uint16", "uint32", "uint64")


VECTOR = {
    name: getattr(module, name)
    for module in (
        vector_even,
        vector_cells,
        vector_coefficients,
        vector_planes,
        vector_regions,
        vector_bits,
        vector_tiles,
    )
    for name in module.__all__
    if hasattr(getattr(module, name), "_defn")  # an intrinsic
}
HAS_COMPRESS = vector_coefficients.HAS_COMPRESS


def compiled(operation):
    @njit
    def call(*arguments):
        return operation(*arguments)

    return call


def both(name):
    """A compiled call of an operation, once of the intrinsic and once of its plain twin."""
    return compiled(VECTOR[name]), compiled(getattr(plain, name))


def random_keys(rng, dtype, top, size=40 * PITCH):
    """Keys of few or of all values, so that there are ties or large ones."""
    return rng.integers(0, top, size, dtype=dtype, endpoint=True)


def words(rng, *shape):
    return rng.integers(0, ALL, shape, dtype=np.uint64, endpoint=True)


def assert_twins(functions, make_arguments, outputs, cut=None):
    """Both results and the arrays at `outputs` are equal after a call with equal arguments."""
    seen = []
    for function in functions:
        arguments = make_arguments()
        result = function(*arguments)
        arrays = [arguments[i] for i in outputs]
        seen.append((result, [a[:result] if cut else a for a in arrays]))
    assert seen[0][0] == seen[1][0]
    for found, expected in zip(seen[0][1], seen[1][1], strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def plane_functions():
    return {
        2: both("planes_2d"),
        3: both("planes_3d"),
    }


@pytest.mark.parametrize("dtype", KEY_DTYPES)
@pytest.mark.parametrize("ndim", [2, 3])
def test_planes(plane_functions, dtype, ndim):
    rng = np.random.default_rng(ndim)
    for top in (2, np.iinfo(dtype).max):
        keys = random_keys(rng, dtype, top)
        starts = (5, 5 + (ROWS + 2) * PITCH)[: ndim - 1]

        def arguments(keys=keys, starts=starts):
            return keys, *starts, PITCH, ROWS, np.zeros(KINDS * STRIDE, np.uint64), 3, STRIDE

        assert_twins(plane_functions[ndim], arguments, [-3])
        planes = arguments()
        plane_functions[ndim][0](*planes)
        assert np.count_nonzero(planes[-3]) > (3, 7)[ndim - 2] * ROWS // 2


@pytest.fixture(scope="module")
def order_functions():
    return both("order_planes")


@pytest.mark.parametrize(
    ("dtype", "labels_dtype"), list(zip(KEY_DTYPES, ["uint16", "uint32"] * 2, strict=True))
)
def test_order_planes(order_functions, dtype, labels_dtype):
    rng = np.random.default_rng(3)
    for top, flip in ((3, 0), (np.iinfo(dtype).max, ALL)):
        keys, labels = random_keys(rng, dtype, top), random_keys(rng, labels_dtype, 2)

        def arguments(keys=keys, labels=labels, flip=flip):
            planes = np.zeros(4 * STRIDE, np.uint64)
            flip = np.uint64(flip)
            return keys, labels, PITCH, 2 * PITCH + 1, PITCH, ROWS, flip, planes, 1, 2 * STRIDE

        assert_twins(order_functions, arguments, [7])


@pytest.fixture(scope="module")
def coefficient_functions():
    return {
        2: both("coefficients_2d"),
        3: both("coefficients_3d"),
    }


@pytest.mark.parametrize("ndim", [2, 3])
def test_coefficients(coefficient_functions, ndim):
    rng = np.random.default_rng(10 + ndim)
    starts = (3, 3 * STRIDE + 3, 7 * STRIDE + 3)[: 1 if ndim == 2 else 3]
    for case in range(30):
        planes = words(rng, 11 * STRIDE)
        carry = words(rng, 5 * 8)
        if case % 2:  # many rows of the word without a coefficient
            planes[:] = np.where(rng.random(planes.size) < 0.9, np.uint64(ALL), planes)
            carry[:] = 0
        edge = int(case % 3 == 0)
        if edge:  # the first word of a row: nothing came before
            carry[:] = 0
        valid = np.uint64(ALL if case % 5 else 0x0FF0)
        own = 8 if case % 4 else 5

        def arguments(planes=planes, carry=carry, edge=edge, valid=valid, own=own):
            queue = np.zeros((6, 32), np.uint64)
            into = (queue, 6, valid, own, 1000, PITCH)
            out = np.zeros(5 * 8, np.uint64)
            return planes, *starts, STRIDE, carry.copy(), 8, np.uint64(edge), out, into

        assert_twins(coefficient_functions[ndim], arguments, [-5, -2])
        queues = []
        for function in coefficient_functions[ndim]:
            given = arguments()
            _, queued = function(*given)
            queues.append(given[-1][0][:, 6:queued])
        np.testing.assert_array_equal(*queues)
        assert queues[0].shape[1] <= own
        if HAS_COMPRESS and case == 1:
            assert queues[0].shape[1] > 0


def test_expand_coefficients():
    functions = both("expand_coefficients")
    coefficients = words(np.random.default_rng(4), 5 * 8)
    for row in range(8):
        out = np.zeros(80, np.int8)
        assert_twins(functions, lambda row=row, out=out: (coefficients, row, out.copy(), 3), [2])


@pytest.fixture(scope="module")
def event_functions():
    return both("append_events")


@pytest.mark.skipif(not HAS_COMPRESS, reason="used only where the machine can compress")
@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_append_events(event_functions, dtype):
    rng = np.random.default_rng(5)
    keys = random_keys(rng, dtype, np.iinfo(dtype).max)
    queue = words(rng, 6, 12)
    queue[4, :4] = ALL, 0, 1 << 63, 1  # and random ones
    queue[5] = rng.integers(0, keys.size - 64, 12)
    for row in range(12):

        def arguments(row=row):
            return queue, row, keys, np.zeros(256, dtype), np.zeros(256, np.int8), 7

        assert_twins(event_functions, arguments, [3, 4], cut=True)


@pytest.mark.skipif(not HAS_COMPRESS, reason="used only where the machine can compress")
@pytest.mark.parametrize(("dtype", "labels_dtype"), [("uint8", "uint32"), ("uint32", "uint16")])
def test_append_region_events(dtype, labels_dtype):
    functions = both("append_region_events")
    rng = np.random.default_rng(9)
    keys = random_keys(rng, dtype, np.iinfo(dtype).max)
    labels = random_keys(rng, labels_dtype, 2)
    for wanted in (ALL, 0, 1 << 63, *words(rng, 3)):
        planes = tuple(words(rng, 4))

        def arguments(wanted=wanted, planes=planes):
            lists = (np.zeros(256, kind) for kind in (dtype, labels_dtype, np.int8))
            return planes, np.uint64(wanted), 70, keys, labels, *lists, 7

        assert_twins(functions, arguments, [5, 6, 7], cut=True)


@pytest.mark.parametrize("dtype", ["uint8", "int64"])
def test_runs_of_labels(dtype):
    rng = np.random.default_rng(12)
    changes, fill = both("label_changes"), both("fill_vector")
    for top in (1, 100):
        row = random_keys(rng, dtype, top, 160)
        assert_twins(changes, lambda row=row: (row, 33), [])
        value = row.dtype.type(7)
        assert_twins(fill, lambda row=row, value=value: (row.copy(), 33, value), [0])


BINS = [f"bin_{kind}{lanes}" for kind in ("", "checked_") for lanes in ("vector", "value")]


@pytest.fixture(scope="module")
def bin_functions():
    return {name: both(name) for name in BINS}


@pytest.mark.parametrize("name", BINS)
@pytest.mark.parametrize(
    ("dtype", "key_dtype"),
    [("float32", "uint8"), ("float64", "uint16"), ("int32", "uint32"), ("uint64", "uint8")],
)
def test_bins(bin_functions, name, dtype, key_dtype):
    rng = np.random.default_rng(6)
    kind = np.dtype(dtype).kind
    values = rng.integers(0 if kind == "u" else -20, 120, 64).astype(dtype)
    if kind == "f":
        values += rng.random(64).astype(dtype)
        values[[3, 20]], values[[7, 30]], values[[11, 40]] = np.nan, np.inf, -np.inf
    levels = np.arange(100).astype(dtype)
    for first, direction, downwards in ((0, 0, 0), (101, -1, 0), (5, 0, 1)):
        regular = int(kind == "f" and direction == 0)
        slope, offset = (-1.01, 100.3) if downwards else (1.01, 0.3)
        digits = 10 if "checked" in name else 0
        scale, bins = (
            (
                slope * 2**digits,
                offset * 2**digits,
                40.0,
                *((99.0, -1.0) if downwards else (0.0, 1.0)),
            ),
            (first, direction, 100, 41, downwards, 100, first and 100, digits, 102, regular),
        )
        order = levels[::-1].copy() if downwards else levels

        def arguments(at, order=order, scale=scale, bins=bins):
            return values, np.zeros(64, key_dtype), at, order, scale, bins

        for at in (0, 3, 24, 48):
            assert_twins(bin_functions[name], lambda at=at: arguments(at), [1])


@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_small_keys(dtype):
    vector, plain_one = both("small_keys")
    top = np.iinfo(dtype).max
    keys = random_keys(np.random.default_rng(9), dtype, 5, 3 * 64)
    keys[::7] = top
    for bound in (0, 3, top - 1, top):
        for at in (0, 5, 128):
            found = vector(keys, at, np.uint64(bound))
            assert found == plain_one(keys, at, np.uint64(bound))


def test_count_ones():
    vector, plain_one = both("count_ones")
    for word in (*words(np.random.default_rng(10), 20), np.uint64(ALL), np.uint64(0)):
        assert vector(word) == plain_one(word)


@pytest.mark.parametrize("dtype", KEY_DTYPES)
def test_transpose_tile(dtype):
    functions = both("transpose_tile")
    image = random_keys(np.random.default_rng(8), dtype, 100, 40 * 20).reshape(40, 20)
    for y, x in ((0, 0), (24, 4), (7, 1)):
        address = image.ctypes.data + y * image.strides[0] + x * image.itemsize

        def arguments(address=address):
            return address, image.strides[0], np.zeros(16 * 21, dtype), 3, 20

        assert_twins(functions, arguments, [2])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint32", "int64", "uint64"])
def test_find_cells(dtype):
    functions = both("find_cells")
    rng = np.random.default_rng(7)
    dtype = np.dtype(dtype)
    values = rng.integers(-20 if dtype.kind != "u" else 0, 60, 64).astype(dtype)
    if dtype.kind == "f":
        values[[3, 20]], values[[7, 30]], values[[11, 40]] = np.nan, np.inf, -np.inf
        values[[9, 33]] = -0.0, 0.0
    else:
        values[[7, 11]] = np.iinfo(dtype).max, np.iinfo(dtype).min
    number = np.dtype(f"f{dtype.itemsize}").type
    keys = np.zeros(80, f"u{dtype.itemsize}")
    full = np.iinfo(keys.dtype).max
    for flip, stored, turn in ((0, 0, 0), (full, 0, full), (full, full, 0)):
        limit = cells.ordered_keys(np.array([31], dtype))[0] ^ keys.dtype.type(flip)
        order = tuple(keys.dtype.type(number) for number in (flip, stored, turn, limit))
        grid = (number(2), number(0.5), number(20))
        found = []
        for function, at in zip(functions * 2, (0, 0, 16, 16), strict=True):
            own = keys.copy()
            own[5:69] = cells.ordered_keys(values)
            own[5:21] = cells.ordered_keys(values[at : at + 16])
            places = np.zeros(80, np.uint32)
            turns = 4 if at == 0 else 1
            flags = function(values, at, turns, places, own, 5, grid, order)
            found.append((flags, places[: 5 + 16 * turns], own[5 : 5 + 16 * turns]))
        for vector, plain_one in (found[:2], found[2:]):
            assert vector[0] == plain_one[0]
            np.testing.assert_array_equal(vector[1], plain_one[1])
            np.testing.assert_array_equal(vector[2], plain_one[2])


@pytest.mark.parametrize("key_dtype", ["uint32", "uint64"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_rank_cells(dtype, key_dtype):
    functions = both("rank_cells")
    rng = np.random.default_rng(8)
    keys = random_keys(rng, key_dtype, np.iinfo(key_dtype).max, 64)
    places = rng.integers(0, 9, 64).astype(np.uint32)
    only = random_keys(rng, key_dtype, np.iinfo(key_dtype).max, 9)
    entries = words(rng, 9)
    if key_dtype == "uint32":
        entries = np.arange(9, dtype=np.uint64) << np.uint64(32)
        entries += np.uint64(1 << 32) - only.astype(np.uint64)

    def arguments(at):
        return places, keys, at, 20, entries, only, np.zeros(64, dtype), 7

    for at in (0, 3, 44):
        assert_twins(functions, lambda at=at: arguments(at), [6])


def test_twins_have_the_same_arguments():
    for name in plain.__all__:
        if name in BINS:
            continue  # made by a function, with arguments of its own
        found = list(inspect.signature(getattr(plain, name).py_func).parameters)
        expected = list(inspect.signature(VECTOR[name]._defn).parameters)[1:]
        assert found == expected, name
    assert set(VECTOR) == set(plain.__all__)
