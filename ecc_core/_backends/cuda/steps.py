"""What layers launch in both passes of a training step, for tensors of one shape."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ecc_core._backends.cuda.passes import Pass


class Steps(ABC):
    """The launches of a forward pass, and of a backward pass for each choice of gradients.

    Floats are float32 and contiguous. Memory is allocated by torch.

    Attributes
    ----------
    kept : int
        Floats that the forward pass keeps for the backward pass.
    scratch : int
        Floats that the forward pass needs besides.
    work : int
        Floats that the backward pass needs besides.
    """

    kept: int
    scratch = 0
    work: int

    _forward: Pass
    """It takes the addresses of tensors, of all parts of `kept` and of scratch, and of curves."""
    _kept_offsets: Sequence[int]
    """The bytes before each part of `kept`."""
    _scratch_offsets: Sequence[int] = ()
    """The bytes before each part of scratch."""
    _work_offsets: Sequence[int]
    """The bytes before each part of `work`."""

    def __init__(self) -> None:
        self._backward: dict[tuple[bool, ...], Pass] = {}

    @abstractmethod
    def _plan_backward(self, wanted: tuple[bool, ...]) -> Pass:
        """Return the launches that write the gradients of the tensors of which they are wanted.

        They take the addresses of tensors, of all parts of `kept` and of `work`, of gradients, and
        that of the gradient of the curves.
        """

    def forward(
        self, stream: int, given: Sequence[int], curves: int, kept: int, scratch: int
    ) -> None:
        """Write curves and what is kept, by the addresses of tensors, or 0."""
        own = [kept + offset for offset in self._kept_offsets]
        room = [scratch + offset for offset in self._scratch_offsets]
        self._forward.launch((*given, *own, *room, curves), stream)

    def backward(
        self,
        stream: int,
        given: Sequence[int],
        kept: int,
        upstream: int,
        wanted: tuple[bool, ...],
        found: Sequence[int],
        work: int,
    ) -> None:
        """Write the gradients that are wanted, by those of contiguous curves.

        `found` are the addresses of the gradients of all tensors, or 0.
        """
        launches = self._backward.get(wanted)
        if launches is None:
            launches = self._backward[wanted] = self._plan_backward(wanted)
        own = [kept + offset for offset in self._kept_offsets]
        room = [work + offset for offset in self._work_offsets]
        launches.launch((*given, *own, *room, *found, upstream), stream)
