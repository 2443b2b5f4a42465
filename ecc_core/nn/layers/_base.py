"""What all layers share: levels, directions and a sharpness, and their groups for an optimizer.

The arguments of layers come in groups, and always in this order: levels (`thresholds` or `heights`,
`range`, `sharpness`), what is computed at them (`directions` and their scale, `min_persistence`,
`extension`, windows), the sets (`superlevel`, `connectivity`), the grid (`spacing`, `n_spatial`),
the results (`normalize`, `hard`), what is learned (`learn_...`, in the order of levels, sharpness,
directions and scales), and the place of parameters (`device`, `dtype`).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as torch_functional

from ecc_core._arrays import given_on_host
from ecc_core._arrays.shapes import unit_vectors
from ecc_core._request.filtration import check_connectivity, check_spacing
from ecc_core._request.thresholds import parse_thresholds
from ecc_core._torch.increasing import free_increasing, increasing
from ecc_core.nn import _arguments

Range = tuple[float, float]
Hard = Literal["forward"]


class EulerLayer(nn.Module):
    """Base of the layers: increasing levels, unit directions and a sharpness."""

    described: ClassVar[dict[str, Any]]
    """What `repr` shows besides the settings of all layers, with the values that it leaves out."""

    log_sharpness: Tensor
    free_directions: Tensor

    def __init__(
        self,
        *,
        connectivity: int | None = None,
        spacing: float | ArrayLike | None = None,
        n_spatial: int,
        hard: Hard | None = None,
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
        parameters = _arguments.check_dtype(dtype)
        self._factory: dict[str, Any] = {"device": device, "dtype": parameters}
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
        self._learns_levels = learn
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

    def _state(self, name: str) -> Tensor:
        """Return a parameter or buffer, which takes longer as an attribute of a module."""
        found: Tensor | None = self._parameters.get(name)
        if found is None:
            found = self._buffers.get(name)
        if found is None:  # FSDP and parametrizations compute attributes.
            found = getattr(self, name)
        return found

    def _given_levels(self, name: str) -> tuple[Tensor, Tensor | None]:
        """Return levels, or the free numbers and the step that increasing ones follow from."""
        if self._learns_levels:
            return self._state(f"free_{name}"), self._state(f"{name}_step")
        return self._state(f"fixed_{name}"), None

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
            if hasattr(tensor, "device_mesh"):  # FSDP divides it between processes.
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

    Raises
    ------
    TypeError
        If `module` is not a module of torch, or the parameters are among the options.

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
    if not isinstance(module, nn.Module):
        raise TypeError(f"`module` must be a torch.nn.Module, got {type(module).__name__}")
    if "params" in options:
        raise TypeError("`params` must be left out, they are those of the module")
    layers = [layer for layer in module.modules() if isinstance(layer, EulerLayer)]
    own = [parameter for layer in layers for parameter in layer.parameters()]
    known = {id(parameter) for parameter in own}
    others = [parameter for parameter in module.parameters() if id(parameter) not in known]
    return [{"params": others, **options}, {"params": own, **options, "weight_decay": 0.0}]
