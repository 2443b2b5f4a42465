"""Layers of curves, whose thresholds may be estimated from the first images."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ecc_core._arithmetic import ceil_div
from ecc_core._backends import soft_curves
from ecc_core._backends.image_cuts import Cut
from ecc_core._backends.soft import LayerOptions, LayerParameters
from ecc_core._request.thresholds import as_count
from ecc_core._torch.increasing import free_increasing
from ecc_core._torch.routes import bypasses_torch
from ecc_core.nn import _arguments, functional
from ecc_core.nn.layers._base import EulerLayer, Range

Normalize = Literal["side", "batch"]
MOST_SAMPLED = 1 << 20
"""Values that quantiles are estimated from."""
QUANTILES = (0.01, 0.99)
"""Quantiles of the values of images between which thresholds are spread."""


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
        *,
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
        self._may_need_calibration = not known  # Calibrated layers then do not read the buffer.
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
    def calibrate(self, data: Tensor, *, quantiles: Range = QUANTILES) -> None:
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
            If no value is finite and thresholds are to be estimated, if an axis has no points and
            direction scales are, or if `quantiles` are not increasing numbers from 0 to 1.
        """
        if not 0 <= quantiles[0] < quantiles[1] <= 1:
            raise ValueError(f"`quantiles` must be increasing numbers from 0 to 1, got {quantiles}")
        self._calibrate(_arguments.check_tensor(data, "data"), quantiles, "data")

    def _calibrate(self, data: Tensor, quantiles: Range, name: str) -> None:
        """Calibrate the layer, unless it is, with images that are the argument of this name."""
        if not self._needs_calibration():
            return
        if self._estimates_range:
            low, high = _range_of(data, quantiles, name)
        else:
            low = self.thresholds[0].item()
            high = self.thresholds[-1].item()
        if self._estimates_scale:
            image, _ = _arguments.images(data, self.n_spatial, name)
            shape = image.shape[image.dim() - self.n_spatial :]
            if 0 in shape:
                raise ValueError(
                    f"`{name}` must have points along each spatial axis, got {tuple(shape)}"
                )
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
        image = _arguments.widened(_arguments.check_tensor(image, "image"))
        with torch.no_grad():
            self._calibrate(image, QUANTILES, "image")

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *arguments: Any
    ) -> None:
        key = f"{prefix}calibrated"
        if not any(f"{prefix}{kind}_thresholds" in state_dict for kind in ("free", "fixed")):
            # The flag says nothing about the thresholds of this layer, which are not loaded.
            state_dict.pop(key, None)
        elif key in state_dict:
            estimates = self._estimates_range or self._estimates_scale
            self._may_need_calibration = estimates and not state_dict[key].item()
        super()._load_from_state_dict(state_dict, prefix, *arguments)

    @property
    def thresholds(self) -> Tensor:
        """Increasing thresholds, of shape (n,)."""
        return self._levels("thresholds")

    def _fused(self, image: Any, mask: Tensor | None, cut: Cut | None = None) -> Tensor | None:
        """Curves in one function of autograd, of windows if a cut is given, else None."""
        if mask is not None or self.hard is not None or not isinstance(image, Tensor):
            return None
        if image.dim() < self.n_spatial or image.device.type not in ("cpu", "cuda"):
            return None
        directions = log_scales = None
        if self.directed:
            directions = self._state("free_directions")
            log_scales = self._state("log_direction_scale")
        levels, step = self._given_levels("thresholds")
        sharpness = self._state("log_sharpness")
        parameters = LayerParameters(levels, step, sharpness, directions, log_scales)
        # torch.compile can trace nothing of what follows.
        if not bypasses_torch((image, *parameters)):
            return None
        options = LayerOptions(
            self.n_spatial, self.connectivity, self.superlevel, tuple(self.spacing), cut
        )
        return soft_curves(image.device.type).layer_curves(image, parameters, options)

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


def _range_of(data: Tensor, quantiles: Range, name: str) -> Range:
    """Return quantiles of finite values, or what is half a unit to each side if they are equal."""
    values = data.detach().flatten()
    values = values[:: ceil_div(values.numel(), MOST_SAMPLED) or 1]
    values = values[values.isfinite()].double()
    if values.numel() == 0:
        raise ValueError(f"`{name}` must have finite values, got none")
    low, high = torch.quantile(values, values.new_tensor(quantiles)).tolist()
    if low < high:
        return low, high
    return low - 0.5, high + 0.5
