"""Losses of curves on a CUDA device, as one function of autograd, against those of the CPU."""

from copy import deepcopy

import pytest
import torch
from loss_cases import CASES, errors

from ecc_core.nn import EulerCurveLoss


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_losses_equal_those_of_the_cpu(case, masked, recorded):
    """Kernels record nothing: operators compute gradients that are recorded."""
    shape, loss = CASES[case]
    known = errors(deepcopy(loss).double(), shape, masked, dtype=torch.float64)
    found = errors(deepcopy(loss).cuda(), shape, masked, "cuda", create_graph=recorded)
    on_host = [one.detach().double().cpu() for one in found]
    torch.testing.assert_close(on_host, list(known), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_losses_in_a_cuda_graph(case):
    """Nothing waits for the device, and the graph computes the same bits."""
    shape, loss = CASES[case]
    loss = deepcopy(loss).cuda()
    image = torch.rand(shape, device="cuda").requires_grad_()
    target = torch.rand(shape, device="cuda")

    def step():
        found = loss(image, target)
        (slopes,) = torch.autograd.grad(found.sum(), image)
        return found.detach(), slopes

    known = step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step()
    graph.replay()
    torch.testing.assert_close(found, known, rtol=0, atol=0)


def test_losses_without_gradients():
    loss = EulerCurveLoss(window=8).cuda()
    image = torch.rand(2, 1, 20, 24, device="cuda")
    target = torch.rand(2, 1, 20, 24, device="cuda") < 0.5
    known = loss(image.clone().requires_grad_(), target)
    with torch.no_grad():
        assert torch.equal(loss(image, target), known.detach())
