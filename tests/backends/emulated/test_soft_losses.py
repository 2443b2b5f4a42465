"""Losses of curves by the CUDA kernels, as one function of autograd, against those of the CPU."""

from copy import deepcopy

import pytest
import torch
from loss_cases import CASES, errors

OTHERS = "volume", "sum", "images", "each by windows"  # share code with the rest
SOME = [pytest.param(case, marks=pytest.mark.slow) if case in OTHERS else case for case in CASES]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", SOME)
def test_losses_equal_those_of_the_cpu(on_device, case, masked):
    shape, loss = CASES[case]
    known = errors(deepcopy(loss).double(), shape, masked, dtype=torch.float64)
    with on_device():
        found = errors(loss, shape, masked)
    for one, other in zip(found, known, strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-6)
