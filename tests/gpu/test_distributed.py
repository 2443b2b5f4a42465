"""Gradients that two devices average are those of one device for the whole batch."""

import os
import traceback
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
from torch import distributed  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from training_cases import batch, made, training_cases  # noqa: E402

from ecc_core.nn import _classes  # noqa: E402

pytestmark = pytest.mark.gpu

CASES = {case.name: case for case in training_cases()}
ON_DEVICE = "PersistenceLoss, pairs on the device"
IMAGES = 4
SIDE = 24
WAIT = timedelta(minutes=2)


def work(rank: int, folder: str, backend: str, devices: list[str]) -> None:
    """Compare the gradients of all cases in one of the processes, and write down what differs."""
    device = torch.device(devices[rank])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    store = f"file://{folder}/store"
    distributed.init_process_group(backend, store, WAIT, rank=rank, world_size=len(devices))
    for name, case in [*CASES.items(), (ON_DEVICE, CASES["PersistenceLoss"])]:
        # So few points are cheaper on the host.
        _classes.LEAST_ON_DEVICE = 0 if name == ON_DEVICE else 1 << 16
        try:
            compare(case, rank, device, len(devices))
        except Exception:
            Path(folder, f"{name}-{rank}").write_text(traceback.format_exc())
            raise
        Path(folder, f"{name}-{rank}").write_text("equal")
    distributed.barrier()
    distributed.destroy_process_group()
    if backend == "gloo":  # Its threads can abort the process when they free tensors at its end.
        os._exit(0)


def compare(case, rank, device, count):
    images, targets = (given.to(device) for given in batch(case, IMAGES, SIDE, dtype=torch.float64))
    own = slice(rank * IMAGES // count, (rank + 1) * IMAGES // count)
    alone = made(case, device, torch.float64)
    alone(images, targets).backward()
    ids = None if device.type == "cpu" else [device.index]
    averaged = DistributedDataParallel(made(case, device, torch.float64), device_ids=ids)
    averaged(images[own], targets[own]).backward()
    changed = 0
    pairs = zip(alone.named_parameters(), averaged.module.parameters(), strict=True)
    for (name, parameter), other in pairs:
        torch.testing.assert_close(other.grad, parameter.grad, msg=lambda m, name=name: name + m)
        changed += bool(parameter.grad.abs().sum() > 0)
    assert changed, "all gradients are zero"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder into which two processes wrote what they found for each case."""
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    folder = tmp_path_factory.mktemp("distributed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NCCL_NVLS_ENABLE", "0")  # It needs rights that containers lack.
        arguments = str(folder), "nccl", ["cuda:0", "cuda:1"]
        torch.multiprocessing.start_processes(work, arguments, nprocs=2, start_method="spawn")
    return folder


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("name", [*CASES, ON_DEVICE])
def test_gradients_of_two_devices_are_those_of_one(results, name, rank):
    assert (results / f"{name}-{rank}").read_text() == "equal"
