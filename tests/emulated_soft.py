"""The CUDA modules of soft curves on the CPU, and images, for tests/backends/emulated."""

import importlib
import sys
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from unittest import mock

import torch
from fake_cupy import fake_cupy

import ecc_core._torch
import ecc_core._torch.cpu
import ecc_core._torch.curve  # This registers the operators.
from ecc_core.nn import loss


def soft_modules(emulator):
    """Return the modules of soft curves, for tensors of the CPU."""
    parts = "soft_plans", "soft", "soft_parameters", "soft_heights"
    parts = *parts, "soft_transforms", "soft_simplices", "soft_windows"
    parts = *parts, "passes", "steps", "transform_steps", "curve_steps", "layer_steps", "loss_steps"
    parts = *parts, "shape_steps"
    packages = (
        *(f"_backends.cuda.{part}" for part in parts),
        *(
            "_torch.cuda_steps",
            "_torch.cuda_small_curves",
            "_torch.cuda_transforms",
            "_torch.cuda_layers",
        ),
        *("_torch.cuda_losses", "_torch.cuda", "_torch.cuda_simplicial"),
    )
    backend = {f"ecc_core._backends.cuda.{name}": m for name, m in vars(emulator.backend).items()}
    with mock.patch.dict(sys.modules, {"cupy": fake_cupy(), **backend}):
        names = [package.split(".")[-1] for package in packages]
        found = [importlib.import_module(f"ecc_core.{package}") for package in packages]
    modules = SimpleNamespace(**dict(zip(names, found, strict=True)))
    for module in (modules.soft_plans, modules.shape_steps):
        module.function = emulator._function
        module.processors = lambda _: 1
    modules.soft_transforms.processors = lambda _: emulator.processors
    modules.shape_steps.shared_limit = emulator.backend.kernels.shared_limit
    modules.soft.launching = lambda _: nullcontext((0, 0))
    modules.soft.planning = lambda _: nullcontext()
    for module in (modules.soft_simplices, modules.cuda_simplicial):
        module.is_current_stream_capturing = lambda: False
    modules.launched = emulator.launched
    return modules


def sender(soft, monkeypatch):
    """Return a context in which layers and losses on the CPU use the modules for CUDA devices."""
    monkeypatch.setattr(ecc_core._torch, "cuda_losses", soft.cuda_losses, raising=False)
    fused = {
        "fused_transform": soft.cuda_transforms.fused_transform,
        "layer_curves": soft.cuda_layers.layer_curves,
    }

    @contextmanager
    def send():
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "is_cuda", True, raising=False)
            patch.setattr(loss, "has_kernels", lambda _: True)
            for name, function in fused.items():
                patch.setattr(ecc_core._torch.cpu, name, function)
            yield
            assert soft.launched
        soft.launched.clear()

    return send


def drawn(shape, dtype=torch.float32):
    """Return distinct values between 0 and 1."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return (order / count).reshape(shape).to(dtype)
