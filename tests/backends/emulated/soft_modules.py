"""The modules of soft curves on the CPU, and images for them."""

import importlib
import sys
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from fake_cupy import fake_cupy

import ecc_core._torch.curve  # noqa: F401, registers the operators once


@pytest.fixture
def soft(emulator):
    """The modules of soft curves, for tensors of the CPU."""
    parts = "soft_plans", "soft", "soft_parameters", "soft_heights"
    parts = *parts, "soft_transforms", "soft_simplices", "soft_windows"
    parts = *parts, "transform_steps", "curve_steps", "layer_steps"
    packages = (
        *(f"_backends.cuda.{part}" for part in parts),
        *("_torch.cuda_small_curves", "_torch.cuda_transforms", "_torch.cuda_layers"),
        "_torch.cuda",
    )
    backend = {f"ecc_core._backends.cuda.{name}": m for name, m in vars(emulator.backend).items()}
    with mock.patch.dict(sys.modules, {"cupy": fake_cupy(), **backend}):
        names = [package.split(".")[-1] for package in packages]
        found = [importlib.import_module(f"ecc_core.{package}") for package in packages]
    modules = SimpleNamespace(**dict(zip(names, found, strict=True)))
    modules.soft_plans.function = emulator._function
    modules.soft_plans.processors = lambda _: 1
    modules.soft.launching = lambda _: nullcontext((0, 0))
    modules.soft_simplices.is_current_stream_capturing = lambda: False
    modules.launched = emulator.launched
    return modules


def drawn(shape, dtype=torch.float32):
    """Distinct values between 0 and 1."""
    count = torch.Size(shape).numel()
    order = torch.randperm(count, generator=torch.Generator().manual_seed(0))
    return (order / count).reshape(shape).to(dtype)
