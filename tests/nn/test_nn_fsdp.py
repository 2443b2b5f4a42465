"""Layers whose parameters are divided between processes by `fully_shard`."""

import os
import sys
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("torch.distributed")

from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402

from ecc_core.nn import EulerCurveLayer  # noqa: E402


def trained(model):
    images = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    for _ in range(2):
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()


def made():
    return EulerCurveLayer(4, range=(0, 1), learn_sharpness=True)


def work(rank, store):
    torch.set_num_threads(1)
    wait = timedelta(minutes=1)
    distributed.init_process_group("gloo", f"file://{store}", wait, rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    alone, divided = made(), fully_shard(made(), mesh=mesh)
    trained(alone)
    trained(divided)
    assert alone.log_sharpness.item() != made().log_sharpness.item()
    assert_equal(divided, alone)
    with torch.device("meta"):
        later = made()
    fully_shard(later, mesh=mesh).to_empty(device="cpu")
    later.reset_parameters()
    assert_equal(later, made())
    distributed.destroy_process_group()
    # Threads of gloo may hold tensors until Python ends, and abort the process when they free them.
    os._exit(0)


def assert_equal(divided, alone):
    for name, parameter in alone.named_parameters():
        torch.testing.assert_close(divided.get_parameter(name).full_tensor(), parameter.data)


def test_divided_layers_learn_and_are_reset_as_others(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    torch.multiprocessing.spawn(work, (tmp_path / "store",), nprocs=2)
