"""What the compiler made of the kernels."""

import itertools

import pytest

from ecc_core._request.filtration import Filtration

cupy = pytest.importorskip("cupy")
compile_ = pytest.importorskip("ecc_core._backends.cuda.compile")
variants = pytest.importorskip("ecc_core._backends.cuda.variants")


def variant_of(cubes, superlevel, nan, element):
    filtration = Filtration(3, 3 if cubes else 1, superlevel, nan)
    return variants.variant_of(filtration, element, masked=False)


@pytest.mark.parametrize("element", ["uint8", "uint16", "float16", "float32"])
def test_volume_kernels_with_asynchronous_copies_keep_all_in_registers(element):
    for cubes, nan, rule in itertools.product((False, True), ("raise", "omit"), (0, 1)):
        variant = variant_of(cubes, False, nan, element)
        options = {**variant.options(None), "BINS": rule, "VECTOR": 1, "STORE": variants.SHARED}
        kernel = compile_.kernel("curve3d", 0, tuple({**options, "SHARED_TABLE": 1}.items()))
        assert kernel.local_size_bytes == 0


@pytest.mark.parametrize("source", ["pairs2d", "pairs3d"])
@pytest.mark.parametrize(
    ("element", "rule"), [("uint8", 3), ("int8", 3), ("uint16", 4), ("float32", 4)]
)
def test_kernels_of_pairs_keep_all_in_registers(source, element, rule):
    """Else they are compiled once more, without asynchronous copies."""
    for cubes, superlevel in itertools.product((False, True), (False, True)):
        variant = variant_of(cubes, superlevel, "omit", element)
        options = {**variant.options(None), "BINS": rule, "VECTOR": 1, "STORE": variants.SHARED}
        kernel = compile_.kernel(source, 0, tuple(options.items()))
        assert kernel.local_size_bytes == 0


@pytest.mark.parametrize("source", ["bytes2d", "bytes3d"])
@pytest.mark.parametrize("element", ["uint8", "int8"])
def test_kernels_of_bytes_keep_all_in_registers(source, element):
    for cubes, superlevel in itertools.product((False, True), (False, True)):
        variant = variant_of(cubes, superlevel, "raise", element)
        options = {**variant.options(None), "BINS": 3, "VECTOR": 2, "STORE": variants.SHARED}
        kernel = compile_.kernel(source, 0, tuple(options.items()))
        assert kernel.local_size_bytes == 0


@pytest.mark.parametrize("element", ["uint16", "int16"])
def test_kernels_of_shorts_keep_nearly_all_in_registers(element):
    """Else they are compiled once more, without asynchronous copies."""
    for cubes, superlevel in itertools.product((False, True), (False, True)):
        variant = variant_of(cubes, superlevel, "raise", element)
        options = {**variant.options(None), "BINS": 2, "VECTOR": 1, "STORE": variants.GLOBAL}
        kernel = compile_.kernel("shorts3d", 0, tuple(options.items()))
        assert kernel.local_size_bytes <= compile_.SPILL


def test_volumes_of_floats_that_report_nan_keep_all_in_registers():
    for cubes, superlevel in itertools.product((False, True), (False, True)):
        variant = variant_of(cubes, superlevel, "raise", "float32")
        options = {**variant.options(None), "BINS": 4, "VECTOR": 2, "STORE": variants.SHARED}
        kernel = compile_.kernel("pairs3d", 0, tuple(options.items()))
        assert kernel.local_size_bytes == 0
