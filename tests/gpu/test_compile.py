"""What the compiler made of the kernels."""

import itertools

import pytest

cupy = pytest.importorskip("cupy")
compile_ = pytest.importorskip("ecc_core._cuda.compile")
recipe = pytest.importorskip("ecc_core._cuda.recipe")


@pytest.mark.parametrize("element", ["uint8", "uint16", "float16", "float32"])
def test_volume_kernels_with_asynchronous_copies_keep_all_in_registers(element):
    for construction, nan, rule in itertools.product("VT", ("raise", "omit"), (0, 1)):
        kind = recipe.filtration(construction, False, nan, element, False)
        options = {**kind.options(None), "BINS": rule, "VECTOR": 1, "STORE": recipe.SHARED}
        kernel = compile_.kernel("curve3d", 0, tuple({**options, "SHARED_TABLE": 1}.items()))
        assert kernel.local_size_bytes == 0
