"""Arrays of other libraries, sequences, buffers and numbers, and what is no array."""

import array
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc
from ecc_core.errors import BackendError

RNG = np.random.default_rng(3)
IMAGE = np.array([[0, 1, 0], [1, 2, 1], [0, 1, 3]], np.int32)
KNOWN = [3, 0, 1]
"""The curve of the corners, of a ring with a hole, and of all but the last point."""


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


ELSEWHERE = [
    (Exporting((2, 1)), "CUDA device 1"),
    (Exporting((10, 0)), "DLPack device 10"),
    (Like(text="GPU:0"), "GPU:0"),
]


@pytest.mark.parametrize("function", [ecc.euler_curve, ecc.euler_coefficients, ecc.euler_transform])
@pytest.mark.parametrize(("image", "place"), ELSEWHERE, ids=[place for _, place in ELSEWHERE])
def test_on_a_device(image, place, function):
    message = "`image` must be in host memory or on a CUDA device as a CuPy array or torch tensor"
    with pytest.raises((BackendError, ValueError), match=re.escape(place)) as caught:
        function(image)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "image", [image for image, _ in ELSEWHERE], ids=[place for _, place in ELSEWHERE]
)
def test_other_arguments_on_a_device(image):
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

    def asarray(array):
        return exact(np.asarray(array, np.float16))

    monkeypatch.setattr(Namespace, "asarray", asarray)
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
    negated = torch.complex(tensor, -tensor).conj().imag  # This view has the negative bit.
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
    found = ecc.euler_curve(image, levels.bfloat16())
    assert found.values.equal(ecc.euler_curve(image.float(), levels).values)
    along = {"direction": direction, "direction_scale": 0.1}
    known = ecc.euler_curve(image.float(), levels, **along).values
    assert ecc.euler_curve(image, levels.bfloat16(), **along).values.equal(known)
    along["direction"] = direction.bfloat16()
    assert ecc.euler_curve(image, levels, **along).values.equal(known)
    assert ecc.euler_number(image) == ecc.euler_number(image.float())
    found = ecc.euler_transform(image > 3, direction[None].bfloat16(), levels.bfloat16())
    assert found.values.equal(ecc.euler_transform(image > 3, direction[None], levels).values)


def test_tensors_that_are_no_arrays_of_numbers_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match="`image` must be a dense tensor, got layout torch"):
        ecc.euler_curve(torch.ones(3, 3).to_sparse(), 5)


@pytest.mark.parametrize("dtype", ["complex64", "float8_e4m3fn"])
def test_tensors_of_other_dtypes_are_refused(dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    image = torch.zeros(2, 2).to(getattr(torch, dtype))
    with pytest.raises(TypeError, match="`image` must have a boolean, integer or real"):
        ecc.euler_curve(image, [0])


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


FLOATS = np.arange(12.0).reshape(3, 4)
NO_ARRAYS = {
    "SimpleITK.GetArrayFromImage": lambda: pytest.importorskip("SimpleITK").GetImageFromArray(
        FLOATS
    ),
    "toarray": lambda: pytest.importorskip("scipy.sparse").csr_array(FLOATS),
    "one of its variables": lambda: pytest.importorskip("xarray").Dataset(
        {"a": (("y", "x"), FLOATS)}
    ),
}
TAKING = {
    "image": lambda given: ecc.euler_curve(given, [5]),
    "labels": lambda given: ecc.region_curves(FLOATS, given, [5]),
    "mask": lambda given: ecc.euler_curve(FLOATS, [5], mask=given),
}


@pytest.mark.parametrize("words", NO_ARRAYS)
@pytest.mark.parametrize("name", TAKING)
def test_objects_that_are_no_arrays_are_refused(name, words):
    """NumPy would take an image of SimpleITK for one row of all its pixels."""
    no_array = NO_ARRAYS[words]()
    match = f"`{name}` must be an array, got an object of type .*{words}"
    with pytest.raises(TypeError, match=match):
        TAKING[name](no_array)


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
    ecc.euler_curve(image, np.array([1.0, 5.0]))  # This call may be planned and kept.
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
