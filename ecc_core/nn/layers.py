"""Layers: images to soft Euler characteristic curves and transforms."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn.functional import normalize

from ecc_core._request.filtration import check_connectivity, check_spacing
from ecc_core._request.thresholds import as_count
from ecc_core.nn import _arguments, _exact, _parameters, functional

__all__ = ["EulerCurveLayer", "EulerTransformLayer", "parameter_groups"]

FEW_POINTS = 1 << 20  # in all directions, for which one call is worth its memory

Range = tuple[float, float]
Hard = Literal["forward"]


class _Layer(nn.Module):
    """What both layers have: increasing levels, unit directions, and a sharpness."""

    log_sharpness: Tensor
    free_directions: Tensor

    def __init__(
        self,
        n_spatial: int,
        connectivity: int | None,
        spacing: float | ArrayLike | None,
        hard: Hard | None,
        factory: dict[str, Any],
    ) -> None:
        super().__init__()
        self.n_spatial = _parameters.check_n_spatial(n_spatial)
        check_connectivity(connectivity, self.n_spatial)
        self.connectivity = self.n_spatial if connectivity is None else connectivity
        steps = check_spacing(spacing, self.n_spatial)
        self.spacing: list[float] = steps.tolist()
        if hard not in (None, "forward"):
            raise ValueError(f'`hard` must be None or "forward", got {hard!r}')
        self.hard = hard
        self._factory = factory

    def _keep(self, name: str, value: Any, learn: bool) -> None:
        """A parameter where it is learned, otherwise a buffer: the state holds both."""
        tensor = torch.as_tensor(value, **self._factory)
        if learn:
            self.register_parameter(name, nn.Parameter(tensor))
        else:
            self.register_buffer(name, tensor)

    def _keep_levels(
        self, name: str, levels: int | ArrayLike, bounds: Range | None, learn: bool
    ) -> float | None:
        """Set up thresholds or heights; return their mean spacing, if they have one."""
        values, gap = _parameters.as_levels(levels, bounds, name, learn)
        if not learn:
            self._keep(f"fixed_{name}", values, learn)
            return gap
        step = torch.tensor(1.0 if gap is None else gap, dtype=torch.float64)
        free = _parameters.free_increasing(torch.as_tensor(values), step)
        self._keep(f"free_{name}", free, learn)
        self._keep(f"{name}_step", step, learn=False)
        return gap

    def _levels(self, name: str) -> Tensor:
        fixed: Tensor | None = getattr(self, f"fixed_{name}", None)
        if fixed is not None:
            return fixed
        return _parameters.increasing(getattr(self, f"free_{name}"), getattr(self, f"{name}_step"))

    def _keep_sharpness(self, sharpness: float | None, gap: float | None, learn: bool) -> None:
        if sharpness is None:
            if gap is None:
                raise ValueError("`sharpness` must be given for levels without spacing, got None")
            sharpness = _parameters.SLOPE_OF_STEP / gap
        self._keep("log_sharpness", _parameters.log_of(sharpness, "sharpness"), learn)

    def _keep_directions(self, directions: int | ArrayLike, learn: bool) -> int:
        unit = _parameters.as_directions(directions, self.n_spatial)
        self._keep("free_directions", unit, learn)
        return len(unit)

    @property
    def sharpness(self) -> Tensor:
        """Sharpness of the steps, a positive scalar."""
        return self.log_sharpness.exp()

    @property
    def directions(self) -> Tensor:
        """Unit vectors, (k, n_spatial)."""
        return normalize(self.free_directions, dim=-1)

    def _describe(self, *sizes: str) -> str:
        parts = [*sizes, f"n_spatial={self.n_spatial}", f"connectivity={self.connectivity}"]
        if set(self.spacing) != {1.0}:
            parts.append(f"spacing={self.spacing}")
        if self.hard is not None:
            parts.append(f"hard={self.hard!r}")
        learned = [name.partition("_")[2] for name, _ in self.named_parameters(recurse=False)]
        return ", ".join([*parts, f"learned=[{', '.join(learned)}]"])


class EulerCurveLayer(_Layer):
    """Soft Euler characteristic curves of images or feature maps, with parameters that learn.

    Every image of a batch, and every channel, becomes the Euler characteristics of its sets
    ``image <= t`` for thresholds t that are learned with the rest of a network.

    Parameters
    ----------
    thresholds : int or (n,) array, default 32
        An int: that many at the start, evenly spaced over `range`, both ends included. Or an
        increasing array.
    range : (low, high), optional
        Only with an int: between which values the images vary. Default: :meth:`calibrate` takes it
        from the first batch.
    sharpness : float, optional
        Sharpness l of the steps ``sigmoid(l * (t - x))``. Default 4 / (mean spacing of the
        thresholds): a step is as wide as their spacing.
    directions : int or (k, n_spatial) array, optional
        Take k curves, each of ``image + scale * <u, x>`` for a unit vector u, where x are the
        coordinates of the points from the centre of the image. An int: that many, evenly spread.
        Default none.
    direction_scale : float, optional
        The scale of every direction at the start, positive. Only with `directions`. Default: what
        is added varies over the image as much as the image does; set by the first batch.
    superlevel : bool, default False
        Use the sets ``image >= t`` instead.
    connectivity : {None, 1, n_spatial}
        As for :func:`ecc_core.euler_curve`.
    spacing : float or (n_spatial,) array, optional
        Distance of neighbouring points along each axis, default 1. It matters with `directions`.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    normalize : {None, "points", "batch"}
        "points": divide curves by the number of points of an image. "batch": bring each threshold,
        of each direction, to mean 0 and variance 1 over the images and channels of a batch, with
        running averages in evaluation as ``BatchNorm1d``.
    hard : {None, "forward"}
        "forward": give the exact curve, and the gradient of the soft one (straight-through).
    learn_thresholds, learn_directions : bool, default True
        Whether they are parameters. Thresholds stay increasing and directions unit vectors.
    learn_sharpness, learn_direction_scale : bool, default False
        Whether they are parameters. Both stay positive; each direction has a scale of its own.
    device, dtype
        Of the parameters, as for the layers of torch.

    Attributes
    ----------
    thresholds : (n,) tensor
    sharpness : scalar tensor
    directions : (k, n_spatial) tensor or None
    direction_scale : (k,) tensor or None

    Raises
    ------
    TypeError
        For thresholds, directions or a sharpness that are not real numbers.
    ValueError
        For thresholds that are not increasing, learned ones that are not finite, a sharpness or
        scale that is not positive, a sharpness that is not given and has no spacing to follow,
        another `normalize`, and directions, `connectivity`, `n_spatial` or `spacing` that do not
        fit.
    RuntimeError
        In a call that is compiled or distributed, if the layer still waits for data.

    See Also
    --------
    ecc_core.nn.functional.soft_euler_curve : The formula, and the errors of a call.

    Notes
    -----
    A call takes ``image`` (..., spatial) and optionally ``mask``, boolean, of the same shape or of
    the spatial one, and returns (..., n), or (..., k, n) with directions: for the usual (batch,
    channel, row, column) a curve for each channel.

    What the optimizer sees has no constraints: the first threshold and, through a softplus, the
    gaps, in units of the first spacing; vectors that are normalised; logarithms of the sharpness
    and the scale. So a learning rate means the same for images of any range. Weight decay would
    move them without a reason: see :func:`ecc_core.nn.parameter_groups`. Euler characteristics grow
    with the size of an image: networks learn more easily with `normalize`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerCurveLayer
    >>> layer = EulerCurveLayer(5, range=(0, 1))
    >>> layer
    EulerCurveLayer(thresholds=5, n_spatial=2, connectivity=2, learned=[thresholds])
    >>> layer(torch.rand(8, 3, 32, 32)).shape
    torch.Size([8, 3, 5])
    >>> layer.thresholds.tolist(), layer.sharpness.item()
    ([0.0, 0.25, 0.5, 0.75, 1.0], 16.0)

    Without a range the first batch, or :meth:`calibrate`, sets it:

    >>> layer = EulerCurveLayer(5, normalize="batch")
    >>> layer.calibrate(torch.linspace(-3, 3, 10_000).reshape(100, 100), quantiles=(0, 1))
    >>> layer.thresholds.tolist()
    [-3.0, -1.5, 0.0, 1.5, 3.0]
    """

    log_direction_scale: Tensor
    free_thresholds: Tensor
    thresholds_step: Tensor

    def __init__(
        self,
        thresholds: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        directions: int | ArrayLike | None = None,
        direction_scale: float | None = None,
        superlevel: bool = False,
        connectivity: int | None = None,
        spacing: float | ArrayLike | None = None,
        n_spatial: int = 2,
        normalize: Literal["points", "batch"] | None = None,
        hard: Hard | None = None,
        learn_thresholds: bool = True,
        learn_sharpness: bool = False,
        learn_directions: bool = True,
        learn_direction_scale: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        super().__init__(n_spatial, connectivity, spacing, hard, factory)
        self.superlevel = superlevel
        if normalize not in (None, "points", "batch"):
            raise ValueError(f'`normalize` must be None, "points" or "batch", got {normalize!r}')
        self.normalize = normalize
        self._waits_for_range = range is None and as_count(thresholds, "thresholds") is not None
        self._follows = sharpness is None
        bounds = (0.0, 1.0) if self._waits_for_range else range
        gap = self._keep_levels("thresholds", thresholds, bounds, learn_thresholds)
        self._keep_sharpness(sharpness, gap, learn_sharpness)
        self.directed = directions is not None
        self._waits_for_scale = self.directed and direction_scale is None
        count = 1
        if directions is not None:
            count = self._keep_directions(directions, learn_directions)
            if count == 0:
                raise ValueError("`directions` must be None or at least one, got 0")
            start = 1.0 if direction_scale is None else direction_scale
            scale = _parameters.log_of(start, "direction_scale")
            self._keep("log_direction_scale", [scale] * count, learn_direction_scale)
        if normalize == "batch":
            size = count * self.thresholds.numel()
            self.norm = nn.BatchNorm1d(size, affine=False, device=device, dtype=dtype)

    @torch.no_grad()
    def calibrate(self, data: Tensor, *, quantiles: Range = (0.01, 0.99)) -> None:
        """Set thresholds, sharpness and the scale of directions by images.

        What the constructor was given stays: a `sharpness`, a `direction_scale`, and thresholds
        that are not an int, or have a `range`. Parameters are changed in place, so optimizers may
        exist already. A layer that waits for data is calibrated by its first batch; call this
        before compiling it, and before ``DistributedDataParallel``.

        Parameters
        ----------
        data : (..., spatial) tensor
            Images as the layer will see them; infinite values and NaN are left out.
        quantiles : (low, high), default (0.01, 0.99)
            Thresholds are spread between these quantiles of the values, and as much further as
            directions add.

        Raises
        ------
        ValueError
            If no value is finite.
        """
        low, high = _parameters.bounds_of(data, quantiles)
        if not self._waits_for_range:
            low, high = self.thresholds[0].item(), self.thresholds[-1].item()
        if self._waits_for_scale:
            shape = data.shape[data.dim() - self.n_spatial :]
            sides = [count * step for count, step in zip(shape, self.spacing, strict=True)]
            self.log_direction_scale.fill_(math.log((high - low or 1.0) / max(sides)))
        if self._waits_for_range:
            reach = (high - low) / 2 if self.directed else 0.0
            self._spread_thresholds(low - reach, high + reach)
        self._waits_for_range = self._waits_for_scale = False

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
            self.free_thresholds.copy_(_parameters.free_increasing(values, step))
        if self._follows:
            self.log_sharpness.fill_(math.log(_parameters.SLOPE_OF_STEP / gap))

    def _await_data(self, image: Tensor) -> None:
        """Calibrate the layer by its first batch."""
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if torch.compiler.is_compiling() or (
            distributed and torch.distributed.get_world_size() > 1
        ):
            raise RuntimeError(
                "an EulerCurveLayer without `range` or `direction_scale` must be calibrated "
                "(`layer.calibrate(images)`) before it is compiled or distributed"
            )
        self.calibrate(_arguments.widened(_arguments.check_tensor(image, "image")))

    def _load_from_state_dict(self, *arguments: Any, **options: Any) -> None:
        super()._load_from_state_dict(*arguments, **options)
        self._waits_for_range = self._waits_for_scale = False  # the state has them

    @property
    def thresholds(self) -> Tensor:
        """Thresholds, (n,), increasing."""
        return self._levels("thresholds")

    @property
    def direction_scale(self) -> Tensor:
        """Scales of the directions, (k,), positive."""
        return self.log_direction_scale.exp()

    def forward(self, image: Tensor, mask: Tensor | None = None) -> Tensor:
        """Curves (..., n), or (..., k, n), of images (..., spatial)."""
        if self._waits_for_range or self._waits_for_scale:
            self._await_data(image)
        curves = self._curves(image, mask)
        if self.normalize == "points":
            return curves / max(image.shape[image.dim() - self.n_spatial :].numel(), 1)
        if self.normalize == "batch":
            rows: Tensor = self.norm(curves.reshape(-1, self.norm.num_features))
            return rows.reshape(curves.shape)
        return curves

    def _curves(self, image: Tensor, mask: Tensor | None) -> Tensor:
        if not self.directed:
            return self._curve(image, mask)
        if self._adds_directions(image):
            return self._curve(*self._directed(image, mask))
        pairs = zip(self.directions, self.direction_scale, strict=True)
        return torch.stack([self._curve(image, mask, *pair) for pair in pairs], dim=-2)

    def _adds_directions(self, image: Any) -> bool:
        """Whether one call takes the images with each direction added."""
        return (
            self.hard is None
            and isinstance(image, Tensor)
            and image.is_floating_point()
            and image.dim() >= self.n_spatial
            and not torch.compiler.is_compiling()  # which shall not depend on the size
            and image.numel() * len(self.free_directions) <= FEW_POINTS
        )

    def _directed(self, image: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Images (..., k, spatial) that differ by their direction, and masks for them."""
        shape = image.shape[image.dim() - self.n_spatial :]
        dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
        vectors = self.directions.to(dtype) * self.direction_scale.to(dtype)[:, None]
        total = vectors.new_zeros(())
        for axis, (count, step) in enumerate(zip(shape, self.spacing, strict=True)):
            terms = vectors[:, axis, None] * _arguments.coordinates(count, step, vectors)
            later = (1,) * (self.n_spatial - axis - 1)
            total = total + terms.view(-1, *(1,) * axis, count, *later)
        axis = image.dim() - self.n_spatial
        image = image.to(dtype).unsqueeze(axis) + total
        if isinstance(mask, Tensor) and mask.dim() > self.n_spatial:
            mask = mask.unsqueeze(axis).expand(image.shape)
        return image, mask

    def _curve(
        self,
        image: Tensor,
        mask: Tensor | None,
        direction: Tensor | None = None,
        scale: Tensor | None = None,
    ) -> Tensor:
        thresholds = self.thresholds
        soft = functional.soft_euler_curve(
            image,
            thresholds,
            sharpness=self.sharpness,
            direction=direction,
            direction_scale=scale,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            mask=mask,
            spacing=self.spacing,
            n_spatial=self.n_spatial,
        )
        if self.hard is None:
            return soft
        return _exact.straight_through(
            _exact.exact_curve,
            soft,
            _exact.flatten(image, self.n_spatial),
            thresholds,
            None if mask is None else _exact.flatten(mask, self.n_spatial),
            direction,
            scale,
            self.spacing,
            self.connectivity,
            self.superlevel,
        )

    def extra_repr(self) -> str:
        """Sizes and settings."""
        sizes = [f"thresholds={self.thresholds.numel()}"]
        if self.directed:
            sizes.append(f"directions={len(self.directions)}")
        if self.superlevel:
            sizes.append("superlevel=True")
        if self.normalize is not None:
            sizes.append(f"normalize={self.normalize!r}")
        return self._describe(*sizes)


class EulerTransformLayer(_Layer):
    """Soft Euler characteristic transforms of masks or weights, with parameters that learn.

    An image becomes, for each direction u, the Euler characteristics of the parts of its object
    that lie below the heights t: ``<u, x> <= t``. The object is where the image is not zero, and
    its values weigh the cells.

    Parameters
    ----------
    directions : int or (k, n_spatial) array, default 16
        An int: that many, evenly spread at the start.
    heights : int or (n,) array, default 32
        An int: that many at the start, evenly spaced over `range`, both ends included. Or an
        increasing array. In units of `spacing`, from the centre of the image.
    range : (low, high), optional
        Only, and always, with an int. Half the diagonal of the image to either side sees all.
    sharpness : float, optional
        Sharpness l of the steps ``sigmoid(l * (t - height))``. Default 4 / (mean spacing of the
        heights): a step is as wide as their spacing.
    extension : {"max", "min"}
        How cells get their weights, see :func:`ecc_core.nn.functional.soft_euler_transform`:
        "min" is the choice for probabilities, and equal to "max" for masks.
    connectivity : {None, 1, n_spatial}
        As for :func:`ecc_core.euler_transform`.
    spacing : float or (n_spatial,) array, optional
        Distance of neighbouring points along each axis, default 1.
    n_spatial : {2, 1, 3}
        Number of spatial axes.
    hard : {None, "forward"}
        "forward": give the exact transform, and the gradient of the soft one (straight-through).
        Only with `extension` "max".
    learn_directions, learn_heights : bool, default True
        Whether they are parameters. Directions stay unit vectors and heights increasing.
    learn_sharpness : bool, default False
        Whether it is a parameter. It stays positive.
    device, dtype
        Of the parameters, as for the layers of torch.

    Attributes
    ----------
    directions : (k, n_spatial) tensor
    heights : (n,) tensor
    sharpness : scalar tensor

    Raises
    ------
    TypeError, ValueError
        As :class:`EulerCurveLayer`; ValueError for another `extension`.

    See Also
    --------
    ecc_core.nn.functional.soft_euler_transform : The formula, and the errors of a call.

    Notes
    -----
    A call takes weights (..., spatial) and returns (..., k, n). Parameters are free of constraints
    as in :class:`EulerCurveLayer`.

    Examples
    --------
    >>> import torch
    >>> from ecc_core.nn import EulerTransformLayer
    >>> layer = EulerTransformLayer(directions=8, heights=24, range=(-23, 23))
    >>> layer
    EulerTransformLayer(directions=8, heights=24, n_spatial=2, connectivity=2,
                        learned=[heights, directions])
    >>> layer((torch.rand(4, 1, 32, 32) > 0.5).float()).shape
    torch.Size([4, 1, 8, 24])
    """

    def __init__(
        self,
        directions: int | ArrayLike = 16,
        heights: int | ArrayLike = 32,
        *,
        range: Range | None = None,
        sharpness: float | None = None,
        extension: Literal["max", "min"] = "max",
        connectivity: int | None = None,
        spacing: float | ArrayLike | None = None,
        n_spatial: int = 2,
        hard: Hard | None = None,
        learn_directions: bool = True,
        learn_heights: bool = True,
        learn_sharpness: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        factory = {"device": device, "dtype": dtype or torch.get_default_dtype()}
        super().__init__(n_spatial, connectivity, spacing, hard, factory)
        if extension not in ("max", "min"):
            raise ValueError(f'`extension` must be "max" or "min", got {extension!r}')
        if hard is not None and extension != "max":
            raise ValueError(f'`extension` must be "max" for hard={hard!r}, got {extension!r}')
        self.extension: Literal["max", "min"] = extension
        gap = self._keep_levels("heights", heights, range, learn_heights)
        self._keep_sharpness(sharpness, gap, learn_sharpness)
        self._keep_directions(directions, learn_directions)

    @property
    def heights(self) -> Tensor:
        """Heights, (n,), increasing."""
        return self._levels("heights")

    def forward(self, weights: Tensor) -> Tensor:
        """Transforms (..., k, n) of weights (..., spatial)."""
        directions, heights = self.directions, self.heights
        soft = functional.soft_euler_transform(
            weights,
            directions,
            heights,
            sharpness=self.sharpness,
            connectivity=self.connectivity,
            spacing=self.spacing,
            n_spatial=self.n_spatial,
            extension=self.extension,
        )
        if self.hard is None:
            return soft
        return _exact.straight_through(
            _exact.exact_transform,
            soft,
            _exact.flatten(weights, self.n_spatial),
            directions,
            heights,
            self.spacing,
            self.connectivity,
        )

    def extra_repr(self) -> str:
        """Sizes and settings."""
        sizes = [f"directions={len(self.directions)}", f"heights={self.heights.numel()}"]
        if self.extension != "max":
            sizes.append(f"extension={self.extension!r}")
        return self._describe(*sizes)


def parameter_groups(module: nn.Module, **options: Any) -> list[dict[str, Any]]:
    """Parameters for an optimizer, without weight decay for those of curve and transform layers.

    Parameters
    ----------
    module : torch.nn.Module
        A network with any layers.
    **options
        Of all groups, such as ``lr`` and ``weight_decay``.

    Returns
    -------
    list of dict
        The parameters of other layers, with these options, and those of the layers of this
        package, with a weight decay of 0.

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
    layers = [layer for layer in module.modules() if isinstance(layer, _Layer)]
    own = [parameter for layer in layers for parameter in layer.parameters()]
    known = {id(parameter) for parameter in own}
    others = [parameter for parameter in module.parameters() if id(parameter) not in known]
    return [{"params": others, **options}, {"params": own, **options, "weight_decay": 0.0}]
