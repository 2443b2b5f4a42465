"""The public functions on arrays of known libraries, against the reference, and of others.

These are computed as what they are, or refused.
"""

import array
import re

import numpy as np
import plain
import pytest
from filtrations import any_side
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from oracles import euler as reference

import ecc_core as ecc
from ecc_core._backends import register, supports
from ecc_core.errors import BackendError
from ecc_core.testing import strategies

RNG = np.random.default_rng(3)
SHAPES = [(9,), (5, 7), (3, 5, 6)]
DTYPES = (*strategies.NATIVE_DTYPES, *strategies.SWAPPED_DTYPES)


def host(library, array):
    """The NumPy array of a result, which must be an array of the library."""
    if library.name == "dask":
        array = array.compute()
    else:
        assert isinstance(array, type(library.asarray(np.zeros(2))))
    return np.asarray(array)


@settings(max_examples=100)
@given(st.data())
def test_curves(library, data):
    image = data.draw(strategies.images(dtypes=[d for d in DTYPES if library.supports(d)]))
    thresholds = data.draw(strategies.thresholds(image))
    mask = data.draw(st.none() | strategies.masks(image.shape))
    options = data.draw(any_side(image.ndim))
    before = image.copy()
    kept = {} if mask is None else {"mask": library.asarray(mask)}
    found = ecc.euler_curve(library.asarray(image), thresholds, **options, **kept)
    expected = reference.euler_curve(image, thresholds, mask=mask, **options)
    assert_array_equal(found.thresholds, thresholds)
    values = host(library, found.values)
    assert values.dtype == np.int64
    assert_array_equal(values, expected)
    assert_array_equal(image, before)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
def test_coefficients_numbers_and_regions(library, shape, dtype):
    image = RNG.integers(0, 5, shape).astype(dtype)
    labels = RNG.integers(0, 4, shape)
    mask = RNG.random(shape) < 0.7
    given = library.asarray(image)
    for connectivity in {1, len(shape)}:
        known = {"connectivity": connectivity}
        counts = ecc.euler_coefficients(given, mask=library.asarray(mask), **known)
        expected = reference.euler_coefficients(image, mask=mask, **known)
        found = host(library, counts)
        assert found.dtype == np.int8
        assert_array_equal(found, expected)
        number = ecc.euler_number(given, connectivity)
        assert int(number) == reference.euler_curve(image > 0, [1], superlevel=True, **known)[0]
        found = ecc.region_curves(given, library.asarray(labels), [0, 1, 2.5], **known)
        ids, rows = reference.region_curves(image, labels, [0, 1, 2.5], **known)
        assert_array_equal(host(library, found.labels), ids)
        assert_array_equal(host(library, found.values), rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_default_and_exact_thresholds(library, shape):
    if library.name == "dask":
        pytest.skip("a dask array is not read to find thresholds")
    image = RNG.normal(size=shape).astype(np.float32)
    found = ecc.euler_curve(library.asarray(image), 17)
    known = ecc.euler_curve(image, 17)
    for part, expected in zip(found, known, strict=True):
        assert host(library, part).dtype == expected.dtype
        assert_array_equal(host(library, part), expected)
    levels, values = ecc.euler_curve(library.asarray(image), "exact")
    at = reference.changing_levels(image, connectivity=None, superlevel=False)
    assert_array_equal(host(library, levels), at)
    assert_array_equal(host(library, values), reference.euler_curve(image, at))


def test_batches_and_directions(library):
    image = RNG.integers(0, 9, (3, 5, 6)).astype(np.int32)
    given = library.asarray(image)
    found = host(library, ecc.euler_curve(given, [2, 6], axis=(2, 0)).values)
    expected = [reference.euler_curve(image[:, i].T, [2, 6]) for i in range(5)]
    assert_array_equal(found, expected)
    options = {"direction": (1, 0, -1), "direction_scale": 0.5, "spacing": (1, 2, 1)}
    found = host(library, ecc.euler_curve(given, [2.25, 6], **options).values)
    assert_array_equal(found, ecc.euler_curve(image, [2.25, 6], **options).values)
    mask = RNG.random((5, 6)) < 0.7
    found = ecc.euler_curve(given, [2, 6], axis=(1, 2), mask=library.asarray(mask)).values
    expected = [reference.euler_curve(part, [2, 6], mask=mask) for part in image]
    assert_array_equal(host(library, found), expected)


def test_nan(library):
    image = RNG.random((5, 7)).astype(np.float32)
    image[2, 3] = np.nan
    given = library.asarray(image)
    with pytest.raises(ValueError, match="must not contain NaN"):
        host(library, ecc.euler_curve(given, [0.5]).values)
    if library.name != "dask":  # whose values are not read to find a range
        with pytest.raises(ValueError, match="must not contain NaN"):
            ecc.euler_curve(given, 3)
    found = host(library, ecc.euler_curve(given, [0.5, np.inf], nan="omit").values)
    assert_array_equal(found, reference.euler_curve(image, [0.5, np.inf]))


def test_transforms(library):
    mask = RNG.random((6, 7)) < 0.5
    if library.name == "plain":
        with pytest.raises(BackendError, match="Transforms are not available on plain:0"):
            ecc.euler_transform(library.asarray(mask), 4, 9)
        return
    if library.name == "dask":
        with pytest.raises(TypeError, match="`image` must be an array in memory, got a dask array"):
            ecc.euler_transform(library.asarray(mask), 4, 9)
        return
    for function in (ecc.euler_transform, ecc.region_transforms):
        found = function(library.asarray(mask), 4, 9)
        known = function(mask, 4, 9)
        for part, expected in zip(found, known, strict=True):
            assert_array_equal(host(library, part), expected)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("curve", lambda image: ecc.euler_curve(image, [2])),
        ("exact_curve", lambda image: ecc.euler_curve(image, "exact")),
        ("coefficients", ecc.euler_coefficients),
        ("number", ecc.euler_number),
        ("value_range", lambda image: ecc.euler_curve(image, 3)),
        ("surface", lambda image: ecc.euler_surface(image, image, [2], [2])),
    ],
)
def test_a_function_that_a_backend_lacks(name, call, monkeypatch):
    monkeypatch.delattr(plain.curves, name)
    message = f"`{name}` is not available on plain:0: copy the arrays to the host"
    with pytest.raises(BackendError, match=message):
        call(plain.Box(RNG.integers(0, 9, (5, 6))))


def test_a_backend_has_no_other_parts():
    with pytest.raises(TypeError, match=r"parts of a backend are transforms, .* got transform$"):
        register("other", "module", transform="module")
    assert not supports("other:0")


IMAGE = np.array([[0, 1, 0], [1, 2, 1], [0, 1, 3]], np.int32)
KNOWN = [3, 0, 1]  # corners, a ring with a hole, and all but the last point


class Like:
    """Something that becomes an array, and says where it is."""

    def __init__(self, place=None, text=None, values=IMAGE):
        self.place, self.values = place, values
        if text is not None:
            self.device = text

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class Exporting(Like):
    def __dlpack_device__(self):
        return self.place


class OnlyExporting:
    def __dlpack__(self, **options):
        return IMAGE.__dlpack__(**options)

    def __dlpack_device__(self):
        return IMAGE.__dlpack_device__()


class Standard(Exporting):
    """An array of a library with a namespace of the standard."""

    @property
    def dtype(self):
        return self.values.dtype

    def __array_namespace__(self):
        return Namespace


class Namespace:
    @staticmethod
    def asarray(array):
        return Standard((1, 0), values=array)


@pytest.mark.parametrize(
    "image",
    [Like(), Like(text="cpu"), Exporting((1, 0)), Exporting((3, 0)), OnlyExporting()],
    ids=["__array__", "device", "DLPack", "pinned", "DLPack alone"],
)
def test_on_the_host(image):
    found = ecc.euler_curve(image, [0, 1, 2])
    assert type(found.values) is np.ndarray
    assert_array_equal(found.values, KNOWN)


@pytest.mark.parametrize(
    ("image", "place"),
    [
        (Exporting((2, 1)), "CUDA device 1"),
        (Exporting((10, 0)), "DLPack device 10"),
        (Like(text="GPU:0"), "GPU:0"),
    ],
)
def test_on_a_device(image, place):
    message = "`image` must be in host memory or on a CUDA device as a CuPy array or torch tensor"
    for function in (ecc.euler_curve, ecc.euler_coefficients, ecc.euler_transform):
        with pytest.raises((BackendError, ValueError), match=re.escape(place)) as caught:
            function(image)
        assert message in str(caught.value)
    with pytest.raises(ValueError, match=re.escape("`mask` must be on the image's device, numpy")):
        ecc.euler_curve(IMAGE, [0], mask=image)
    with pytest.raises(BackendError, match="arrays must be in host memory, got one"):
        ecc.euler_curve(IMAGE, image)


def test_results_come_back_through_the_namespace():
    found = ecc.euler_curve(Standard((1, 0)), [0, 1, 2])
    assert type(found.values) is Standard
    assert_array_equal(found.values, KNOWN)


def test_a_namespace_that_rounds_is_an_error(monkeypatch):
    exact = Namespace.asarray
    monkeypatch.setattr(Namespace, "asarray", lambda array: exact(np.asarray(array, np.float16)))
    with pytest.raises(BackendError, match="does not hold the results' float64 exactly as"):
        ecc.euler_curve(Standard((1, 0)), 256, range=(0, 1))


def test_sequences_buffers_and_numbers():
    assert_array_equal(ecc.euler_curve(IMAGE.tolist(), [0, 1, 2]).values, KNOWN)
    row = array.array("i", [0, 2, 1])
    assert_array_equal(ecc.euler_curve(row, [0, 1, 2]).values, [1, 2, 1])


def test_pandas():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.DataFrame(IMAGE)
    assert_array_equal(ecc.euler_curve(table, [0, 1, 2]).values, KNOWN)
    column = pandas.Series([0, 2, 1], dtype="Int64")
    column[1] = pandas.NA
    with pytest.raises((TypeError, ValueError), match="`image` must"):
        ecc.euler_curve(column, [0])


def test_subclasses_of_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")

    class Meta(torch.Tensor):
        __module__ = "monai.data.meta_tensor"

    found = ecc.euler_curve(torch.from_numpy(IMAGE).as_subclass(Meta), [0, 1, 2])
    assert isinstance(found.values, torch.Tensor)
    assert_array_equal(found.values.numpy(), KNOWN)


def test_views_of_tensors_are_what_they_show():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = np.random.default_rng(5).integers(0, 9, (7, 11, 66)).astype(np.float32)
    tensor = torch.from_numpy(image)
    shown = torch.from_numpy(image % 3 > 0)
    options = {"axis": (0, 2), "superlevel": True}
    turned = tensor.permute(2, 0, 1)[::2]
    mask = shown.permute(2, 0, 1)[::2]
    found = ecc.euler_curve(turned, [3.0, 4.0], mask=mask, **options)
    expected = ecc.euler_curve(turned.numpy(), [3.0, 4.0], mask=mask.numpy(), **options)
    assert_array_equal(found.values.numpy(), expected.values)
    negated = torch.complex(tensor, -tensor).conj().imag  # a view with the negative bit
    assert negated.is_neg()
    assert ecc.euler_curve(negated, 5) == ecc.euler_curve(tensor, 5)
    learned = torch.tensor(image, requires_grad=True)
    assert ecc.euler_curve(learned, 5) == ecc.euler_curve(tensor, 5)
    thresholds = torch.tensor([1.0, 3.0])
    assert ecc.euler_curve(tensor, thresholds).thresholds is thresholds


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "uint64", "float32", "bfloat16"])
def test_persistence_of_tensors(dtype):
    """A float64 tensor of differences, also where births are float32 in place of bfloat16."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = torch.tensor([0, 100, 1, 99, 0]).to(getattr(torch, dtype))
    pairs = ecc.persistence_pairs(image, 0, superlevel=True)
    assert pairs.births.dtype == (torch.float32 if dtype == "bfloat16" else image.dtype)
    assert pairs.persistence.dtype == torch.float64
    assert pairs.persistence.tolist() == [np.inf, 98]
    levels = ecc.betti_curves(image, "exact", superlevel=True).thresholds
    assert levels.dtype == pairs.births.dtype


def test_bfloat16_is_exact():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    noise = np.random.default_rng(5).integers(0, 9, (11, 66)) * 1.01
    image = torch.from_numpy(noise).bfloat16()
    levels = image.float().unique()
    direction = torch.tensor([1.0, 0.5])
    for options in ({}, {"direction": direction, "direction_scale": 0.1}):
        found = ecc.euler_curve(image, levels.bfloat16(), **options)
        assert found.values.equal(ecc.euler_curve(image.float(), levels, **options).values)
        options["direction"] = direction.bfloat16() if options else None
        found = ecc.euler_curve(image, levels, **options)
    assert ecc.euler_number(image) == ecc.euler_number(image.float())
    found = ecc.euler_transform(image > 3, direction[None].bfloat16(), levels.bfloat16())
    assert found.values.equal(ecc.euler_transform(image > 3, direction[None], levels).values)


def test_tensors_that_are_no_arrays_of_numbers_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match="`image` must be a dense tensor, got layout torch"):
        ecc.euler_curve(torch.ones(3, 3).to_sparse(), 5)
    for dtype in (torch.complex64, torch.float8_e4m3fn):
        with pytest.raises(TypeError, match="`image` must have a boolean, integer or real"):
            ecc.euler_curve(torch.zeros(2, 2).to(dtype), [0])


def test_jax_without_64_bits():
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    image = jax.numpy.asarray(IMAGE)
    found = ecc.euler_curve(image, 7)
    assert isinstance(found.values, jax.Array)
    assert (found.values.dtype, found.thresholds.dtype) == (np.int64, np.float64)
    known = ecc.euler_curve(IMAGE, 7)
    assert_array_equal(found.values, known.values)
    assert_array_equal(found.thresholds, known.thresholds)
    with pytest.raises(TypeError, match="`image` must have a boolean, integer or real"):
        ecc.euler_curve(image.astype(jax.numpy.float8_e4m3fn), [0])


def test_objects_that_are_no_arrays_are_refused():
    """Their items are no rows: NumPy takes an image of SimpleITK for a row of all its pixels."""
    sitk = pytest.importorskip("SimpleITK")
    sparse = pytest.importorskip("scipy.sparse")
    xarray = pytest.importorskip("xarray")
    image = np.arange(12.0).reshape(3, 4)
    how = {
        "SimpleITK.GetArrayFromImage": sitk.GetImageFromArray(image),
        "toarray": sparse.csr_array(image),
        "one of its variables": xarray.Dataset({"a": (("y", "x"), image)}),
    }
    for words, no_array in how.items():
        match = f"must be an array, got an object of type .*{words}"
        for name, function in (
            ("image", lambda given: ecc.euler_curve(given, [5])),
            ("labels", lambda given: ecc.region_curves(image, given, [5])),
            ("mask", lambda given: ecc.euler_curve(image, [5], mask=given)),
        ):
            with pytest.raises(TypeError, match=f"`{name}` {match}"):
                function(no_array)


def test_arrays_of_objects_are_named_by_their_dtype():
    """A table of pandas is an array, unless its columns are of a type that may be missing."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.arange(12).reshape(3, 4))
    assert_array_equal(ecc.euler_curve(frame, [5]).values, [1])
    with pytest.raises(TypeError, match=r"`image` must have a boolean, .* got object"):
        ecc.euler_curve(frame.astype("Int16"), [5])


def test_numbers_with_masks_or_units_are_refused():
    """NumPy would take what is behind a mask, and leave out the unit."""
    units = pytest.importorskip("astropy.units")
    image = np.arange(12.0).reshape(3, 4)
    ecc.euler_curve(image, np.array([1.0, 5.0]))  # which a planned call may be kept for
    hidden = np.ma.masked_greater([1.0, 5.0], 3)
    with pytest.raises(ValueError, match="`thresholds` must have no masked entries, got 1"):
        ecc.euler_curve(image, hidden)
    with pytest.raises(ValueError, match="`direction` must have no masked entries, got 1"):
        ecc.euler_curve(image, [5], direction=hidden)
    with pytest.raises(ValueError, match="`simplices` must have no masked entries, got 1"):
        ecc.simplicial_curve([0, 1, 2], np.ma.masked_equal([[0, 1], [1, 2]], 0), [5])
    with pytest.raises(TypeError, match="`thresholds` must have no unit: pass its `value`, got m"):
        ecc.euler_curve(image, [1, 5] * units.m)


def test_surfaces_of_masked_arrays():
    """Masked elements of the second image enter neither set, as those of a mask."""
    image = RNG.integers(0, 5, (5, 7))
    hidden = RNG.random(image.shape) < 0.3
    found = ecc.euler_surface(image, np.ma.array(image, mask=hidden), [1, 3], [2, 4])
    known = ecc.euler_surface(image, image, [1, 3], [2, 4], mask=~hidden)
    assert_array_equal(found.values, known.values)


def test_boundaries_in_an_array():
    image = RNG.integers(0, 5, (5, 7))
    words = ["closed", "periodic"]
    found = ecc.euler_curve(image, [2], boundary=np.array(words))
    assert_array_equal(found.values, ecc.euler_curve(image, [2], boundary=words).values)
    assert found.boundary == tuple(words)
