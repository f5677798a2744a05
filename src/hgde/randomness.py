"""Random numbers that belong to a run: a generator passed by context, never torch's global one.

``with use(generator):`` says whose numbers are drawn in this thread. Our own layers call :func:`dropout` and
:func:`generator`. Layers of other libraries call ``torch.nn.functional.dropout`` and ``Tensor.uniform_``, which draw
from torch's global generator; inside ``with use(generator, reroute=True)`` these draw from the run's as well, at a cost
of some microseconds per torch call. Two runs in two threads therefore do not disturb each other, nor the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn import init
from torch.overrides import TorchFunctionMode

_current: ContextVar[torch.Generator | None] = ContextVar("hgde_generator", default=None)


def generator() -> torch.Generator | None:
    """The generator of the run that this thread works for; ``None``, torch's own, outside of any."""
    return _current.get()


@contextmanager
def use(source: torch.Generator, *, reroute: bool = False) -> Iterator[None]:
    """Draw from ``source`` inside; with ``reroute`` also where a library asks torch's global generator."""
    token = _current.set(source)
    try:
        with _Rerouted(source) if reroute else nullcontext():
            yield
    finally:
        _current.reset(token)


def make_generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """``torch.nn.functional.dropout`` with the run's numbers; bit for bit the same for the same state."""
    if not training or p == 0 or x.numel() == 0:
        return x
    source = generator()
    if source is None:
        return torch.nn.functional.dropout(x, p, True)
    return x * keep_mask(x, p, source)


def keep_mask(x: Tensor, p: float, source: torch.Generator | None) -> Tensor:
    """``1 / (1 - p)`` where an entry is kept, else 0; shaped like ``x``."""
    mask = torch.empty_like(x, requires_grad=False).bernoulli_(1 - p, generator=source)
    return mask if p == 1 else mask.div_(1 - p)


class _Rerouted(TorchFunctionMode):
    def __init__(self, source: torch.Generator) -> None:
        super().__init__()
        self.source = source

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            return _dropout_call(*args, **kwargs)
        if function in _DRAWS and kwargs.get("generator") is None:
            kwargs = {**kwargs, "generator": self.source}
        return function(*args, **kwargs)


def _dropout_call(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    dropped = dropout(input, p, training)
    return input.copy_(dropped) if inplace and dropped is not input else dropped


_DROPOUTS = {torch.nn.functional.dropout, torch.dropout}
_DRAWS = {
    *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.bernoulli, torch.multinomial, torch.normal),
    *(torch.Tensor.uniform_, torch.Tensor.normal_, torch.Tensor.bernoulli_, torch.Tensor.random_),
    *(torch.Tensor.exponential_, torch.Tensor.bernoulli, torch.Tensor.multinomial),
    # These hand themselves to a mode, inside of which their own draws are no longer seen.
    *(init.uniform_, init.normal_, init.trunc_normal_, init.kaiming_uniform_, init.kaiming_normal_),
    *(init.xavier_uniform_, init.xavier_normal_, init.orthogonal_),
}
