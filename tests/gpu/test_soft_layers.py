"""Layers on a CUDA device, as one function of autograd, against those of the CPU."""

from copy import deepcopy

import pytest
import torch
from layer_cases import CASES, assert_all_near, assert_near, in_double, step
from soft_helpers import draw

from ecc_core.nn import EulerCurveLayer, SimplicialTransformLayer
from ecc_core.nn.functional import soft_simplicial_transform

LONG_CYCLES = 200_000_000
"""About a tenth of a second."""


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
    on_host = [one.detach().cpu() for one in own[1:]]
    assert_all_near(on_host, others, terms=of_image.abs().sum())


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
    torch.testing.assert_close(list(found[1]), list(known[1]), rtol=0, atol=0)


def test_images_that_are_not_small():
    """Larger images take other kernels than small ones, with the same results."""
    layer = EulerCurveLayer(6, range=(0, 1), learn_sharpness=True)
    image = draw((2, 300, 301))
    known, slopes = step(in_double(layer), image.double())
    found, own = step(layer.cuda(), image.cuda())
    assert_near(found.cpu(), known, terms=0)
    assert_all_near([one.cpu() for one in own], slopes, terms=slopes[0].abs().sum())


@pytest.mark.parametrize("case", ["directions", "transform"])
def test_images_of_another_device_are_refused(case):
    shape, layer = CASES[case]
    with pytest.raises((ValueError, RuntimeError), match="device"):
        layer(draw(shape).cuda())


def shapes_of(sizes):
    """Points of shapes of these sizes, the edges and triangles between some, and the shapes."""
    drawn = torch.Generator().manual_seed(sum(sizes))
    points = torch.randn(sum(sizes), 3, generator=drawn)
    triangles = []
    first = 0
    for size in sizes:
        own = [torch.randperm(size, generator=drawn)[:3] for _ in range(size if size > 2 else 0)]
        triangles += [first + corners.sort().values for corners in own]
        first += size
    triangles = torch.stack(triangles).unique(dim=0)
    edges = torch.cat([triangles[:, [0, 1]], triangles[:, [0, 2]], triangles[:, [1, 2]]])
    batch = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return points, [edges.unique(dim=0), triangles], batch


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("sizes", [[5, 40, 0, 1, 12], [3000]])
def test_layers_of_shapes_equal_those_of_the_cpu(sizes, is_sorted):
    """Points that are not in the order of their shapes are left to operators, as is a capture."""
    points, simplices, batch = shapes_of(sizes)
    if not is_sorted:
        order = torch.randperm(len(points), generator=torch.Generator().manual_seed(1))
        points, batch = points[order], batch[order]
        simplices = [order.argsort()[rows] for rows in simplices]
    learned = {"learn_sharpness": True, "learn_scale": True}
    layer = SimplicialTransformLayer(35, 40, range=(-2, 2), sharpness=3.0, scale=0.7, **learned)

    def run(layer, points):
        place = points.device
        points = points.clone().requires_grad_()
        given = [rows.to(place) for rows in simplices]
        found = layer(points, given, batch=batch.to(place), shapes=len(sizes))
        upstream = torch.linspace(-1, 2, found.numel(), dtype=found.dtype, device=place)
        wanted = [points, *layer.parameters()]
        return found.detach(), torch.autograd.grad(found, wanted, upstream.reshape(found.shape))

    known, slopes = run(in_double(layer), points.double())
    layer = layer.cuda()
    found, own = run(layer, points.cuda())
    assert_near(found.cpu(), known, terms=0)
    for one, other in zip(own, slopes, strict=True):
        assert_near(one.cpu(), other, terms=slopes[0].abs().sum() / 100)
    with pytest.raises(ValueError, match="finite"):
        run(layer, points.cuda() / 0)
    again, _ = run(layer, points.cuda())
    assert torch.equal(again, found) or not is_sorted


def test_shapes_on_the_stream_of_torch():
    """The check of arguments waits for kernels on it, however long they take."""
    points, simplices, batch = shapes_of([5, 40, 0, 1, 12])
    points = points.cuda().requires_grad_()
    simplices = [rows.cuda() for rows in simplices]
    batch = batch.cuda()
    layer = SimplicialTransformLayer(35, 40, range=(-2, 2), device="cuda")

    def run():
        found = layer(points, simplices, batch=batch, shapes=5)
        return found.detach(), *torch.autograd.grad(found.square().sum(), points)

    known = run()
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(LONG_CYCLES)
        found = run()
    stream.synchronize()
    torch.testing.assert_close(found, known, rtol=0, atol=0)


def test_more_directions_than_the_last_launch_has_threads():
    """Points on a line leave room for so many directions; the shape has three points."""
    points = torch.tensor([[0.1], [0.7], [-0.4]], dtype=torch.float64)
    edges = torch.tensor([[0, 1], [0, 2]])
    directions = torch.linspace(0.1, 2, 1500, dtype=torch.float64)[:, None]
    levels = torch.linspace(-1, 1, 5, dtype=torch.float64)

    def run(place):
        own = points.to(place).requires_grad_()
        found = soft_simplicial_transform(
            own, [edges.to(place)], directions.to(place), levels.to(place), sharpness=3.0
        )
        return found.detach(), *torch.autograd.grad(found.square().sum(), own)

    for own, known in zip(run("cuda"), run("cpu"), strict=True):
        torch.testing.assert_close(own.cpu(), known)
