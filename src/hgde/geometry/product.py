"""Products of spaces: a point is a point of each, side by side on the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from hgde.geometry import numerics
from hgde.geometry.contract import Manifold, Points, Weights
from hgde.geometry.spaces import SPACES
from hgde.registry import RegistryError
from hgde.sections import Section, SettingsError, build, setting, settings_of


def _without_curvature(settings: Product.Settings) -> str | None:
    curved = any("curvature" in settings_of(SPACES.get(name)).__dataclass_fields__ for name, _ in settings.parsed)
    return None if curved else "no factor has a curvature"


@SPACES.register("product")
class Product(Manifold):
    """The product of ``parts``, the ``i``-th of dimension ``widths[i]``; every part has its own curvature.

    Geodesics, transport and midpoints are those of the parts; squared lengths and distances add up.

    >>> import torch
    >>> from hgde import Euclidean, PoincareBall
    >>> both = Product([PoincareBall(), Euclidean()], [2, 3])
    >>> both.expmap0(torch.zeros(5)).shape
    torch.Size([5])
    """

    @dataclass(frozen=True)
    class Settings(Section):
        factors: tuple[str, ...] = setting(
            ("ball", "euclidean"), "The factors by name, each as name or name:width; widths left out share the rest."
        )
        curvature: float = setting(
            1.0,
            "Initial magnitude c of every curved factor's curvature -c.",
            above=0.0,
            inert=_without_curvature,
        )
        learn_curvature: bool = setting(True, "Train the curvatures.", inert=_without_curvature)

        def check(self) -> None:
            parse_factors(self.factors)

        @property
        def parsed(self) -> list[tuple[str, int | None]]:
            """Names and widths of the factors, ``None`` where no width is given."""
            return parse_factors(self.factors)

    def __init__(self, parts: Sequence[Manifold], widths: Sequence[int]) -> None:
        super().__init__()
        if not parts or len(parts) != len(widths):
            raise ValueError(f"expected one width per part, got {len(parts)} parts and {len(widths)} widths")
        if any(width < 1 for width in widths):
            raise ValueError(f"expected positive widths, got {tuple(widths)}")
        self.parts = nn.ModuleList(parts)
        self.widths = tuple(widths)
        self.coordinates = tuple(part.ambient(width) for part, width in zip(parts, widths, strict=True))
        self.is_flat = all(part.is_flat for part in parts)
        self.has_dexp = all(part.has_dexp for part in parts)
        self.max_order = min((part.max_order for part in parts if part.max_order is not None), default=None)

    @classmethod
    def build(cls, options: Settings, width: int) -> Product:
        """The product that settings describe, of total dimension ``width``."""
        factors = options.parsed
        given = sum(size or 0 for _, size in factors)
        open_ended = sum(size is None for _, size in factors)
        if (open_ended and width - given < open_ended) or (not open_ended and given != width):
            raise SettingsError(
                f"factors {', '.join(options.factors)} do not add up to a width of {width}; give name:width with "
                "widths that do, or leave some out"
            )
        share, extra = divmod(width - given, open_ended) if open_ended else (0, 0)
        parts, widths = [], []
        for name, size in factors:
            if size is None:
                size = share + (extra > 0)
                extra -= 1
            kind = SPACES.get(name)
            known = {"curvature": options.curvature, "learn_curvature": options.learn_curvature}
            fields = settings_of(kind).__dataclass_fields__
            section = build(settings_of(kind), {key: value for key, value in known.items() if key in fields})
            parts.append(kind.build(section, size))  # type: ignore[attr-defined]  # every entry has one
            widths.append(size)
        return cls(parts, widths)

    @property
    def factors(self) -> list[Manifold]:
        """The parts, typed."""
        return [part for part in self.parts if isinstance(part, Manifold)]

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """The points of the parts. ``[..., sum of coordinates]`` to one tensor per part."""
        if x.shape[-1] != sum(self.coordinates):
            raise ValueError(
                f"expected {' + '.join(map(str, self.coordinates))} = {sum(self.coordinates)} coordinates, "
                f"got {x.shape[-1]}"
            )
        return x.split(self.coordinates, dim=-1)

    def _split0(self, v: Tensor) -> tuple[Tensor, ...]:
        if v.shape[-1] != sum(self.widths):
            raise ValueError(
                f"expected vectors at the origin of width {' + '.join(map(str, self.widths))} = {sum(self.widths)}, "
                f"got {v.shape[-1]}"
            )
        return v.split(self.widths, dim=-1)

    def _each(self, name: str, *tensors: Tensor) -> list[Tensor]:
        pieces = zip(*(self.split(t) for t in tensors), strict=True)
        return [getattr(part, name)(*own) for part, own in zip(self.parts, pieces, strict=True)]

    def _join(self, name: str, *tensors: Tensor) -> Tensor:
        return torch.cat(self._each(name, *tensors), dim=-1)

    def expmap(self, x: Tensor, v: Tensor) -> Tensor:
        return self._join("expmap", x, v)

    def logmap(self, x: Tensor, y: Tensor) -> Tensor:
        return self._join("logmap", x, y)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return self._join("transport", x, y, v)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return torch.stack(torch.broadcast_tensors(*self._each("inner", x, u, v))).sum(dim=0)

    def norm(self, x: Tensor, v: Tensor) -> Tensor:
        return _hypotenuse(self._each("norm", x, v))

    def dist(self, x: Tensor, y: Tensor) -> Tensor:
        return _hypotenuse(self._each("dist", x, y))

    def dist0(self, x: Tensor) -> Tensor:
        return _hypotenuse(self._each("dist0", x))

    def project(self, x: Tensor) -> Tensor:
        return self._join("project", x)

    def tangent(self, x: Tensor, u: Tensor) -> Tensor:
        return self._join("tangent", x, u)

    def egrad2rgrad(self, x: Tensor, g: Tensor) -> Tensor:
        return self._join("egrad2rgrad", x, g)

    def dexp(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return self._join("dexp", x, v, w, self.expmap(x, v) if y is None else y)

    def dexp_inv(self, x: Tensor, v: Tensor, w: Tensor, y: Tensor | None = None) -> Tensor:
        return self._join("dexp_inv", x, v, w, self.expmap(x, v) if y is None else y)

    def ambient(self, width: int) -> int:
        if width != sum(self.widths):
            raise ValueError(f"this product has dimension {sum(self.widths)}, not {width}")
        return sum(self.coordinates)

    def dimension(self, coordinates: int) -> int:
        if coordinates != sum(self.coordinates):
            raise ValueError(f"this product has {sum(self.coordinates)} coordinates, not {coordinates}")
        return sum(self.widths)

    def frame0(self, coordinates: int, *, dtype: torch.dtype, device: torch.device) -> Tensor:
        self.dimension(coordinates)
        own = zip(self.factors, self.coordinates, strict=True)
        return torch.block_diag(*(part.frame0(count, dtype=dtype, device=device) for part, count in own))

    def expmap0(self, v: Tensor) -> Tensor:
        pieces = [part.expmap0(own) for part, own in zip(self.factors, self._split0(v), strict=True)]
        return torch.cat(pieces, dim=-1)

    def logmap0(self, x: Tensor) -> Tensor:
        return self._join("logmap0", x)

    def transport0(self, x: Tensor, v: Tensor) -> Tensor:
        own = zip(self.factors, self.split(x), self._split0(v), strict=True)
        return torch.cat([part.transport0(point, vector) for part, point, vector in own], dim=-1)

    def midpoint(self, points: Points, weights: Weights) -> Tensor:
        stacked = [self.split(point) for point in points]
        pieces = zip(self.factors, zip(*stacked, strict=True), strict=True)
        return torch.cat([part.midpoint(own, weights) for part, own in pieces], dim=-1)

    def origin(self, *size: int, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Tensor:
        self.dimension(size[-1])
        pieces = [
            part.origin(*size[:-1], coordinates, dtype=dtype, device=device)
            for part, coordinates in zip(self.factors, self.coordinates, strict=True)
        ]
        return torch.cat(pieces, dim=-1)

    def problems(self, x: Tensor) -> list[str]:
        problems = super().problems(x)
        if problems:
            return problems
        if x.shape[-1] != sum(self.coordinates):
            return [f"expected {sum(self.coordinates)} coordinates, {self._extents()}, got {x.shape[-1]}"]
        return [
            f"part {i} ({type(part).__name__}): {problem}"
            for i, (part, own) in enumerate(zip(self.factors, self.split(x), strict=True))
            for problem in part.problems(own)
        ]

    def _extents(self) -> str:
        ends = list(accumulate(self.coordinates))
        pairs = zip(self.factors, self.coordinates, ends, strict=True)
        return ", ".join(f"{type(part).__name__} [{end - n}:{end}]" for part, n, end in pairs)

    def extra_repr(self) -> str:
        return f"widths={self.widths}"


def parse_factors(factors: Sequence[str]) -> list[tuple[str, int | None]]:
    """``("ball:8", "euclidean")`` as names with widths, ``None`` where no width is given."""
    if not factors:
        raise SettingsError("factors must name at least one space")
    parsed: list[tuple[str, int | None]] = []
    for factor in factors:
        name, mark, size = factor.partition(":")
        if mark and not (size.isdigit() and int(size) > 0):
            raise SettingsError(f"factors are written name or name:width, got {factor!r}")
        try:
            SPACES.get(name)
        except RegistryError as error:
            raise SettingsError(f"factors: {error}") from None
        if name == "product":
            raise SettingsError("factors: a product of products is written as one product of all their factors")
        parsed.append((name, int(size) if mark else None))
    return parsed


def _hypotenuse(lengths: list[Tensor]) -> Tensor:
    return numerics.safe_sqrt(torch.stack(torch.broadcast_tensors(*lengths)).square().sum(dim=0))
