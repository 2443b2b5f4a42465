"""Training steps in CUDA graphs equal those that Python launches."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from training_cases import batch, made, training_cases  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    # While torch compiles and captures, it warns of its own graphs and of what is deprecated.
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

STEPS = pytest.mark.parametrize(
    "case", [case for case in training_cases() if not case.waits], ids=lambda case: case.name
)
BATCHES = 3


def batches(case):
    """Different batches on the device."""
    images, targets = (given.cuda() for given in batch(case, 4 * BATCHES, 24, dtype=torch.float64))
    return list(zip(images.chunk(BATCHES), targets.chunk(BATCHES), strict=True))


def trained(model, call, given):
    """The losses of steps of an optimizer, and the parameters afterwards."""
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    losses = []
    for images, targets in given:
        optimizer.zero_grad()
        loss = call(images, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().clone())
    return losses, [parameter.detach().clone() for parameter in model.parameters()]


@STEPS
def test_make_graphed_callables(case):
    given = batches(case)
    plain = made(case, "cuda", torch.float64)
    known = trained(plain, plain, given)
    model = made(case, "cuda", torch.float64)
    graphed = torch.cuda.make_graphed_callables(model, given[0])
    found = trained(model, graphed, given)
    torch.testing.assert_close(found, known)


@STEPS
def test_compile_reduce_overhead(case):
    """The first steps warm up and record the graphs that the later ones replay."""
    given = batches(case) * 2
    plain = made(case, "cuda", torch.float64)
    known = trained(plain, plain, given)
    model = made(case, "cuda", torch.float64)
    compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    found = trained(model, compiled, given)
    torch.testing.assert_close(found, known)
    torch.compiler.reset()
