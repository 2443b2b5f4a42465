"""Layers on a CUDA device, as one function of autograd, against those of the CPU."""

from copy import deepcopy

import pytest
import torch
from layer_cases import CASES, assert_near, in_double, step
from soft_helpers import draw

from ecc_core.nn import EulerCurveLayer


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_layers_equal_those_of_the_cpu(case, recorded):
    """Kernels record nothing: operators compute gradients that are recorded."""
    shape, layer = CASES[case]
    image = draw(shape)
    known, slopes = step(in_double(layer), image.double())
    found, own = step(deepcopy(layer).cuda(), image.cuda(), create_graph=recorded)
    assert_near(found.cpu(), known, terms=0)
    of_image, *others = slopes
    assert_near(own[0].detach().cpu(), of_image, terms=0)
    for one, other in zip(own[1:], others, strict=True):
        assert_near(one.detach().cpu(), other, terms=of_image.abs().sum())


@pytest.mark.parametrize("case", CASES)
def test_steps_in_a_cuda_graph(case):
    """Nothing waits for the device, and the graph computes the same bits."""
    shape, layer = CASES[case]
    layer = deepcopy(layer).cuda()
    image = draw(shape).cuda()
    known = step(layer, image)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = step(layer, image)
    graph.replay()
    assert torch.equal(found[0], known[0])
    for one, other in zip(found[1], known[1], strict=True):
        assert torch.equal(one, other)


def test_images_that_are_not_small():
    """Which go another way than small ones, with the same results."""
    layer = EulerCurveLayer(6, range=(0, 1), learn_sharpness=True)
    image = draw((2, 300, 301))
    known, slopes = step(in_double(layer), image.double())
    found, own = step(layer.cuda(), image.cuda())
    assert_near(found.cpu(), known, terms=0)
    for one, other in zip(own, slopes, strict=True):
        assert_near(one.cpu(), other, terms=slopes[0].abs().sum())


@pytest.mark.parametrize("case", ["directions", "transform"])
def test_images_of_another_device_are_refused(case):
    shape, layer = CASES[case]
    with pytest.raises((ValueError, RuntimeError), match="device"):
        layer(draw(shape).cuda())
