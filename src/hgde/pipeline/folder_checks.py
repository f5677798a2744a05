"""What is asked of a model that comes from a file before anyone uses it: room, finite numbers, values in range.

Whoever wrote a run folder wrote every byte of it, hashes included. So nothing here asks whether a file was changed,
only whether it can be used as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hgde.geometry import Curvature
from hgde.pipeline.folder import RunError, RunFolder
from hgde.tasks import Learner
from hgde.training.checkpoint import CheckpointError

_SLACK_BYTES, _SLACK_CALLS = 64 << 20, 20_000
_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "arange", "eye", "linspace", "new_", "repeat", "randperm")


class Allowance(TorchDispatchMode):
    """Inside, tensors may be made up to some multiple of what is stored; beyond, the settings do not fit the file.

    A width of a billion in ``settings.json`` would otherwise take all memory before anyone could compare its weights
    with those that are there, and a billion layers would take all day.
    """

    def __init__(self, stored: Mapping[str, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch's
        self.bytes = _SLACK_BYTES + 8 * sum(tensor.numel() * tensor.element_size() for tensor in stored.values())
        self.calls = _SLACK_CALLS + 200 * len(stored)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in here; torch would load its compiler, seconds of work, to make sure of it."""
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = function._schema.name.removeprefix("aten::")
        if name.startswith(_FACTORIES):
            self._spend(4 * _size(args))
        result = function(*args, **(kwargs or {}))
        self.calls -= 1
        if not name.startswith(_FACTORIES) and isinstance(result, Tensor) and not any(result is arg for arg in args):
            self._spend(result.untyped_storage().nbytes() if result._base is None else 0)
        self._spend(0)
        return result

    def _spend(self, size: int) -> None:
        self.bytes -= size
        if self.bytes < 0 or self.calls < 0:
            raise CheckpointError("they ask for a model many times larger than the weights that are stored")


def _size(args: tuple[Any, ...]) -> int:
    """Entries of the tensor that a factory is about to make; an upper bound for some."""
    sizes = [math.prod(arg) for arg in args if isinstance(arg, list | tuple) and all(isinstance(n, int) for n in arg)]
    numbers = [abs(arg) for arg in args if isinstance(arg, int | float) and math.isfinite(arg)]
    own = args[0].numel() if args and isinstance(args[0], Tensor) else 1
    return int(max([*sizes, *numbers, own]))


@contextmanager
def own_files(folder: RunFolder | None) -> Iterator[None]:
    """Around the use of a run's own files: each was checked by itself, and what does not fit another shows only now."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError) as error:
        if folder is None or type(error).__module__.startswith("hgde."):
            raise
        words = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise RunError(f"the files of {folder.path} do not fit together ({type(error).__name__}: {words})") from error


def find_gap(value: Any, place: str = "") -> str | None:
    """The field of plain values that holds a number which is not finite; ``None`` if there is none."""
    return next(_gaps(value, place), None)


def _gaps(value: Any, place: str) -> Iterator[str]:
    if isinstance(value, float) and not math.isfinite(value):
        yield place
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _gaps(inner, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _gaps(inner, f"{place}[{number}]")


def model_problem(learner: Learner) -> str | None:
    """What is wrong with the weights of a model, in words: curvatures, points outside their space, temperature."""
    import geoopt

    if not float(learner.temperature) > 0:
        return f"the temperature must be positive, it is {float(learner.temperature):g}"
    for name, module in learner.named_modules():
        if isinstance(module, Curvature) and not float(module.initial) > 0:
            return f"the curvature {name!r} must be positive, it starts at {float(module.initial):g}"
    for name, curvature in learner.model.curvatures().items():
        if not math.isfinite(curvature):
            return f"the curvature of the {name} is {curvature}"
    for name, parameter in learner.named_parameters():
        if isinstance(parameter, geoopt.ManifoldParameter) and not _is_inside(parameter):
            return f"the points {name!r} do not lie in their space"
    return None


@torch.no_grad()
def _is_inside(points: Any) -> bool:
    return bool(points.manifold.check_point_on_manifold(points.detach(), atol=1e-2, rtol=1e-2))
