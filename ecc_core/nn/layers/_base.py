"""What the layers share: parameters, which may be estimated from images, and their groups."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as torch_functional

from ecc_core._arithmetic import ceil_div
from ecc_core._arrays import given_on_host
from ecc_core._arrays.shapes import unit_vectors
from ecc_core._backends import has_kernels
from ecc_core._request.filtration import check_connectivity, check_spacing
from ecc_core._request.thresholds import as_count, parse_thresholds
from ecc_core._torch.operators import bypasses_torch, is_plain
from ecc_core.nn import _arguments, functional

Range = tuple[float, float]
Hard = Literal["forward"]
Normalize = Literal["side", "batch"]
MOST_SAMPLED = 1 << 20  # values that quantiles are estimated from


class EulerLayer(nn.Module):
    """Base of the layers: increasing levels, unit directions and a sharpness."""

    described: ClassVar[dict[str, Any]]
    """What `repr` shows besides the settings of all layers, with the values that it leaves out."""

    log_sharpness: Tensor
    free_directions: Tensor

    def __init__(
        self,
        n_spatial: int,
        connectivity: int | None,
        spacing: float | ArrayLike | None,
        hard: Hard | None,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.n_spatial = _arguments.check_n_spatial(n_spatial)
        self.connectivity = check_connectivity(connectivity, self.n_spatial)
        self.spacing: list[float] = check_spacing(spacing, self.n_spatial).tolist()
        if hard not in (None, "forward"):
            raise ValueError(f'`hard` must be None or "forward", got {hard!r}')
        self.hard = hard
        default = torch.get_default_dtype()
        self._factory: dict[str, Any] = {"device": device, "dtype": dtype or default}
        self._initial: dict[str, Tensor] = {}

    def _add_state(self, name: str, value: Any, learn: bool) -> None:
        """Register a parameter if it is learned and a buffer otherwise, so that both are saved."""
        self._initial[name] = torch.as_tensor(value, dtype=torch.float64, device="cpu")
        tensor = torch.as_tensor(self._initial[name], **self._factory).clone()
        if learn:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    def _add_levels(
        self, name: str, levels: int | ArrayLike, bounds: Range | None, learn: bool
    ) -> float | None:
        """Set up thresholds or heights. Return their mean spacing if it is positive and finite."""
        given = parse_thresholds(given_on_host(levels), bounds, name=name, no_exact="")
        if given.needs_range:
            raise ValueError(f"`range` must be given where `{name}` is an int, got None")
        values = given.over(lambda: (None, None), ()).astype(np.float64)
        low, high = given.bounds or ((values[0], values[-1]) if values.size else (0.0, 0.0))
        if learn and not (np.isfinite(values).all() and (np.diff(values) > 0).all()):
            raise ValueError(f"`{name}` must be finite and distinct to be learned, got {values}")
        mean = float(high - low) / max(values.size - 1, 1)
        gap = mean if 0 < mean < math.inf else None
        if not learn:
            self._add_state(f"fixed_{name}", values, learn)
            return gap
        step = torch.tensor(1.0 if gap is None else gap, dtype=torch.float64, device="cpu")
        free = free_increasing(torch.from_numpy(values), step)
        self._add_state(f"free_{name}", free, learn)
        self._add_state(f"{name}_step", step, learn=False)
        return gap

    def _levels(self, name: str) -> Tensor:
        fixed: Tensor | None = getattr(self, f"fixed_{name}", None)
        if fixed is not None:
            return fixed
        return increasing(getattr(self, f"free_{name}"), getattr(self, f"{name}_step"))

    def _add_sharpness(self, sharpness: float | None, gap: float | None, learn: bool) -> None:
        if sharpness is None:
            if gap is None:
                raise ValueError(
                    "`sharpness` must be given for levels without a positive finite spacing, "
                    "got None"
                )
            sharpness = _arguments.SLOPE_OF_STEP / gap
        # FSDP cannot divide a parameter without axes.
        self._add_state("log_sharpness", [_arguments.log_of(sharpness, "sharpness")], learn)

    def _add_directions(self, directions: int | ArrayLike, learn: bool) -> int:
        """Set up directions. Return how many there are."""
        unit = unit_vectors(directions, self.n_spatial)
        self._add_state("free_directions", unit, learn)
        return len(unit)

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Set parameters and buffers to their initial values, as after ``to_empty``."""
        for name, value in self._initial.items():
            tensor = getattr(self, name)
            if hasattr(tensor, "device_mesh"):  # divided between processes, as by FSDP
                from torch.distributed.tensor import distribute_tensor

                value = distribute_tensor(
                    value.to(tensor.device), tensor.device_mesh, tensor.placements
                )
            tensor.copy_(value)

    @property
    def sharpness(self) -> Tensor:
        """Sharpness of the steps, a positive scalar."""
        return self.log_sharpness.exp().reshape(())

    @property
    def directions(self) -> Tensor:
        """Unit vectors, of shape (k, n_spatial)."""
        return torch_functional.normalize(self.free_directions, dim=-1)

    def extra_repr(self) -> str:
        """Describe sizes and settings."""
        common = {"n_spatial": 0, "connectivity": 0, "spacing": [1.0] * self.n_spatial}
        parts = []
        for name, hidden in {**self.described, **common, "hard": None}.items():
            value = getattr(self, name, hidden)
            if isinstance(value, Tensor):
                value = len(value)
            if value != hidden:
                parts.append(f"{name}={value!r}")
        learned = [name.partition("_")[2] for name, _ in self.named_parameters(recurse=False)]
        return ", ".join([*parts, f"learned=[{', '.join(learned)}]"])


class CalibratedLayer(EulerLayer):
    """Base of the layers of curves, whose range is that of the first batch if none is given."""

    free_thresholds: Tensor
    thresholds_step: Tensor
    log_direction_scale: Tensor
    calibrated: Tensor
    directed = False

    def _add_curves(
        self,
        thresholds: int | ArrayLike,
        bounds: Range | None,
        sharpness: float | None,
        superlevel: bool,
        normalize: Normalize | None,
        learn_thresholds: bool,
        learn_sharpness: bool,
    ) -> None:
        self.superlevel = superlevel
        if normalize not in (None, "side", "batch"):
            raise ValueError(f'`normalize` must be None, "side" or "batch", got {normalize!r}')
        self.normalize = normalize
        self._estimates_range = bounds is None and as_count(thresholds, "thresholds") is not None
        self._estimates_scale = False
        self._default_sharpness = sharpness is None
        bounds = (0.0, 1.0) if self._estimates_range else bounds
        gap = self._add_levels("thresholds", thresholds, bounds, learn_thresholds)
        self._add_sharpness(sharpness, gap, learn_sharpness)

    def _add_statistics(self, curves: int) -> None:
        """Set up what is found in images that have so many curves.

        Whether what is estimated from images has been estimated is recorded in a buffer, so that it
        goes wherever the thresholds go: into states, to the copies of an average of models, to
        other processes. It is an integer since averages do not take booleans.
        """
        known = not (self._estimates_range or self._estimates_scale)
        self.register_buffer("calibrated", torch.tensor(int(known), device=self._factory["device"]))
        self._may_need_calibration = not known  # so that calibrated layers do not read the buffer
        if self.normalize == "batch":
            size = curves * self.thresholds.numel()
            self.norm = nn.BatchNorm1d(size, affine=False, **self._factory)

    def reset_parameters(self) -> None:
        """Set parameters and buffers to their initial values, as after ``to_empty``.

        A layer that estimates its range or direction scale from images is calibrated anew.
        """
        super().reset_parameters()
        self._may_need_calibration = self._estimates_range or self._estimates_scale
        self.calibrated.fill_(int(not self._may_need_calibration))

    def _needs_calibration(self) -> bool:
        if self._may_need_calibration:
            self._may_need_calibration = not self.calibrated.item()
        return self._may_need_calibration

    @torch.no_grad()
    def calibrate(self, data: Tensor, *, quantiles: Range = (0.01, 0.99)) -> None:
        """Estimate thresholds, sharpness and direction scales from images.

        Values that were passed to the constructor are kept: `sharpness`, `direction_scale`, and
        thresholds given as an array or with a `range`. Parameters are modified in place, so this
        may be called after an optimizer has been created. A layer that needs calibration is
        calibrated with its first batch; call this method before compiling the layer or wrapping it
        in ``DistributedDataParallel``.

        Parameters
        ----------
        data : (..., spatial) tensor
            Images like those that the layer will be called with. Infinite values and NaN are
            ignored.
        quantiles : (low, high), default (0.01, 0.99)
            Quantiles of the values between which thresholds are spread. With directions the range
            is extended by half its width on each side.

        Raises
        ------
        ValueError
            If no value is finite, or `quantiles` are not increasing numbers from 0 to 1.
        """
        if not 0 <= quantiles[0] < quantiles[1] <= 1:
            raise ValueError(f"`quantiles` must be increasing numbers from 0 to 1, got {quantiles}")
        if not self._needs_calibration():
            return
        values = data.detach().flatten()
        values = values[:: ceil_div(values.numel(), MOST_SAMPLED) or 1]
        values = values[values.isfinite()].double()
        if values.numel() == 0:
            raise ValueError("`data` must have finite values, got none")
        low, high = torch.quantile(values, values.new_tensor(quantiles)).tolist()
        if not low < high:
            low = low - 0.5
            high = high + 0.5
        if not self._estimates_range:
            low = self.thresholds[0].item()
            high = self.thresholds[-1].item()
        if self._estimates_scale:
            shape = data.shape[data.dim() - self.n_spatial :]
            sides = [count * step for count, step in zip(shape, self.spacing, strict=True)]
            self.log_direction_scale.fill_(math.log((high - low or 1.0) / max(sides)))
        if self._estimates_range:
            reach = (high - low) / 2 if self.directed else 0.0
            self._spread_thresholds(low - reach, high + reach)
        self.calibrated.fill_(1)
        self._may_need_calibration = False

    def _spread_thresholds(self, low: float, high: float) -> None:
        count = self.thresholds.numel()
        values = torch.linspace(low, high, count, dtype=torch.float64)
        gap = (high - low) / max(count - 1, 1)
        fixed: Tensor | None = getattr(self, "fixed_thresholds", None)
        if fixed is not None:
            fixed.copy_(values)
        else:
            step = torch.tensor(gap, dtype=torch.float64)
            self.thresholds_step.copy_(step)
            self.free_thresholds.copy_(free_increasing(values, step))
        if self._default_sharpness:
            self.log_sharpness.fill_(math.log(_arguments.SLOPE_OF_STEP / gap))

    def _calibrate_if_needed(self, image: Tensor) -> None:
        """Calibrate the layer with its first batch."""
        if not self._may_need_calibration:
            return
        compiling = torch.compiler.is_compiling()
        if not (compiling or self._needs_calibration()):
            return
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if compiling or (distributed and torch.distributed.get_world_size() > 1):
            what = "`range` or `direction_scale`" if self._estimates_scale else "`range`"
            raise RuntimeError(
                f"a layer ({type(self).__name__}) without {what} must be calibrated with "
                "`layer.calibrate(images)` before it is compiled or distributed"
            )
        self.calibrate(_arguments.widened(_arguments.check_tensor(image, "image")))

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *arguments: Any
    ) -> None:
        key = f"{prefix}calibrated"
        if not any(f"{prefix}{kind}_thresholds" in state_dict for kind in ("free", "fixed")):
            state_dict.pop(key, None)  # says nothing of the thresholds that this layer keeps
        elif key in state_dict:
            estimates = self._estimates_range or self._estimates_scale
            self._may_need_calibration = estimates and not state_dict[key].item()
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    @property
    def thresholds(self) -> Tensor:
        """Increasing thresholds, of shape (n,)."""
        return self._levels("thresholds")

    def _soft(self, image: Tensor, mask: Tensor | None, **direction: Any) -> Tensor:
        """Soft curves (..., n) of images (..., spatial)."""
        return functional.soft_euler_curve(
            image,
            self.thresholds,
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            spacing=self.spacing,
            n_spatial=self.n_spatial,
            **direction,
        )

    def _normalized(self, curves: Tensor, points: int) -> Tensor:
        """Normalize curves (..., n) of images of so many points."""
        if self.normalize == "side":
            return curves / math.pow(max(points, 1), 1 / self.n_spatial)
        if self.normalize == "batch":
            # Curves are float32 even where the module has been converted to half precision.
            means: Any = self.norm.running_mean
            rows = curves.reshape(-1, self.norm.num_features).to(means.dtype)
            normalized: Tensor = self.norm(rows)
            return normalized.to(curves.dtype).reshape(curves.shape)
        return curves


def parameter_groups(module: nn.Module, **options: Any) -> list[dict[str, Any]]:
    """Group parameters for an optimizer so that the Euler layers have no weight decay.

    Parameters
    ----------
    module : torch.nn.Module
        A network, with any layers.
    **options
        Options of both groups, such as ``lr`` and ``weight_decay``.

    Returns
    -------
    list of dict
        Two parameter groups with these options: the parameters of all other layers, and those of
        the layers of curves and transforms with a weight decay of 0.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerCurveLayer, parameter_groups
    >>> model = torch.nn.Sequential(EulerCurveLayer(8, range=(0, 1)), torch.nn.Linear(8, 2))
    >>> groups = parameter_groups(model, weight_decay=0.1)
    >>> [(len(group["params"]), group["weight_decay"]) for group in groups]
    [(2, 0.1), (1, 0.0)]
    >>> optimizer = torch.optim.AdamW(groups, lr=0.01)
    """
    layers = [layer for layer in module.modules() if isinstance(layer, EulerLayer)]
    own = [parameter for layer in layers for parameter in layer.parameters()]
    known = {id(parameter) for parameter in own}
    others = [parameter for parameter in module.parameters() if id(parameter) not in known]
    return [{"params": others, **options}, {"params": own, **options, "weight_decay": 0.0}]


def increasing(free: Tensor, step: Tensor) -> Tensor:
    """Add up a first number and the softplus of all others, in units of `step`."""
    by_kernels = (
        free.is_cuda
        and free.dtype in (torch.float32, torch.float64)
        and free.is_contiguous()
        and bypasses_torch((free, step))
    )
    if by_kernels and has_kernels("cuda"):  # torch.compile cannot trace `has_kernels`
        found: Tensor = _Increasing.apply(free, step)  # type: ignore[no-untyped-call]
        return found
    return _increasing_in_torch(free, step)


def _increasing_in_torch(free: Tensor, step: Tensor) -> Tensor:
    return step * torch.cat([free[:1], torch_functional.softplus(free[1:])]).cumsum(0)


class _Increasing(torch.autograd.Function):
    """The same by one kernel each way, in place of thirteen."""

    @staticmethod
    def forward(ctx: Any, free: Tensor, step: Tensor) -> Tensor:
        from ecc_core._backends.cuda import soft

        ctx.save_for_backward(free, step)
        return soft.increasing(free, step)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        free, step = ctx.saved_tensors
        if is_plain(gradient):
            from ecc_core._backends.cuda import soft

            return soft.increasing_gradients(free, step, gradient.contiguous()), None
        with torch.enable_grad():
            levels = _increasing_in_torch(free, step)
        return *torch.autograd.grad(levels, free, gradient, create_graph=True), None


def free_increasing(values: Tensor, step: Tensor) -> Tensor:
    """Inverse of :func:`increasing`."""
    scaled = values / step
    gaps = scaled.diff()
    return torch.cat([scaled[:1], gaps + torch.log(-torch.expm1(-gaps))])
