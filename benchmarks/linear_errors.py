"""How far the linear-cost sum over all pairs is from the exact one, and what it says of that itself.

    python benchmarks/linear_errors.py      # the table of docs/performance.md

Points lie in random directions, evenly spread up to a distance from the origin, or all at that distance; scores have
unit size. In percent of the exact sum's length, both measured in the tangent spaces' own norm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from hgde.kernels import tangent_sum_global, tangent_sum_global_linear, watch_linear_errors

NODES, WIDTHS, REACHES, LANDMARKS = 3000, (8, 64), (1.0, 3.0, 6.0), (128, 512, 1024)


def problem(width: int, reach: float, spread: bool) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    direction = torch.nn.functional.normalize(torch.randn(NODES, width, generator=generator), dim=1)
    far = reach * (torch.rand(NODES, 1, generator=generator) if spread else torch.ones(NODES, 1))
    q, k = (width**-0.25 * torch.randn(NODES, 1, width, generator=generator) for _ in range(2))
    return torch.tanh(far / 2) * direction, q, k


def main() -> None:
    print("| width | distance |" + "".join(f" {count} landmarks |" for count in LANDMARKS))
    print("| --- | --- |" + " --- |" * len(LANDMARKS))
    for width in WIDTHS:
        for reach in REACHES:
            for spread in (True, False):
                z, q, k = problem(width, reach, spread)
                right, size = tangent_sum_global(z, q, k, 1.0), 2 / (1 - z.square().sum(1, keepdim=True))
                cells = ""
                for count in LANDMARKS:
                    with watch_linear_errors() as errors:
                        found = tangent_sum_global_linear(z, q, k, 1.0, count)
                    distance = float((size * (found - right)).norm() / (size * right).norm())
                    cells += f" {100 * distance:.1f} % (estimated {100 * errors[0]:.1f} %) |"
                print(f"| {width} | {'up to' if spread else 'all at'} {reach:g} |{cells}", flush=True)


if __name__ == "__main__":
    main()
