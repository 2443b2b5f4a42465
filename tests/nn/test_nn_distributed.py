"""Layers in several processes: averaged gradients, and parameters that `fully_shard` divides."""

import os
import sys
from datetime import timedelta

import torch
from nn_helpers import draw
from torch import distributed
from torch.distributed.device_mesh import init_device_mesh

from ecc_core.nn import EulerCurveLayer


def made():
    start = {"range": (0, 1), "directions": 2, "direction_scale": 0.1}
    return EulerCurveLayer(4, learn_sharpness=True, learn_direction_scale=True, **start)


def trained(model):
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        found = model(draw(4, 1, 8, 8))
        found.square().mean().backward()
        optimizer.step()


def assert_equal(divided, alone):
    for name, parameter in alone.named_parameters():
        torch.testing.assert_close(divided.get_parameter(name).full_tensor(), parameter.data)


def work(rank, store):
    # In these processes only: it loads so much that others are to do without.
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    wait = timedelta(minutes=1)
    distributed.init_process_group("gloo", f"file://{store}", wait, rank=rank, world_size=2)
    images = draw(2, 8, 8)
    alone = made()
    averaged = torch.nn.parallel.DistributedDataParallel(made())
    averaged(images[rank]).sum().backward()
    (alone(images).sum() / 2).backward()
    for own, parameter in zip(averaged.parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(own.grad, parameter.grad)
    mesh = init_device_mesh("cpu", (2,))
    divided = fully_shard(made(), mesh=mesh)
    trained(alone)
    trained(divided)
    assert alone.log_sharpness.item() != made().log_sharpness.item()
    assert_equal(divided, alone)
    with torch.device("meta"):
        later = made()
    fully_shard(later, mesh=mesh).to_empty(device="cpu")
    later.reset_parameters()
    assert_equal(later, made())
    distributed.barrier()  # gloo may abort a process whose peer has ended.
    distributed.destroy_process_group()
    # Threads of gloo may hold tensors until Python ends, and abort the process when they free them.
    os._exit(0)


def test_layers_learn_in_two_processes_as_in_one(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    torch.multiprocessing.spawn(work, (tmp_path / "store",), nprocs=2)
