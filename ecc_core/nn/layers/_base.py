"""What the layers share: their parameters, and how an optimizer should treat these."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.functional import normalize

from ecc_core._request.filtration import check_connectivity, check_spacing
from ecc_core.nn import _arguments, _parameters
from ecc_core.transforms import unit_vectors

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
        """Set up thresholds or heights. Return their mean spacing, None if it is not defined."""
        values, gap = _parameters.as_levels(levels, bounds, name, learn)
        if not learn:
            self._add_state(f"fixed_{name}", values, learn)
            return gap
        step = torch.tensor(1.0 if gap is None else gap, dtype=torch.float64, device="cpu")
        free = _parameters.free_increasing(torch.from_numpy(values), step)
        self._add_state(f"free_{name}", free, learn)
        self._add_state(f"{name}_step", step, learn=False)
        return gap

    def _levels(self, name: str) -> Tensor:
        fixed: Tensor | None = getattr(self, f"fixed_{name}", None)
        if fixed is not None:
            return fixed
        return _parameters.increasing(getattr(self, f"free_{name}"), getattr(self, f"{name}_step"))

    def _add_sharpness(self, sharpness: float | None, gap: float | None, learn: bool) -> None:
        if sharpness is None:
            if gap is None:
                raise ValueError(
                    "`sharpness` must be given for levels without a positive finite spacing, "
                    "got None"
                )
            sharpness = _parameters.SLOPE_OF_STEP / gap
        # FSDP cannot divide a parameter without axes.
        self._add_state("log_sharpness", [_parameters.log_of(sharpness, "sharpness")], learn)

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
        return normalize(self.free_directions, dim=-1)

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
        :class:`EulerCurveLayer` and :class:`EulerTransformLayer` with a weight decay of 0.

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
