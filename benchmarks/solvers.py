"""Cost of a fixed step against torchdiffeq in flat space, and error against field evaluations on the ball.

``python benchmarks/solvers.py`` prints both; ``--write`` puts the tables into docs/solvers.md between their markers.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torchdiffeq

from hgde.geometry import Euclidean, PoincareBall
from hgde.solvers import odeint
from hgde.solvers.orders import Spiral

PAGE = Path(__file__).resolve().parents[1] / "docs" / "solvers.md"
THEIRS = {
    "euler": "euler",
    "midpoint": "midpoint",
    "heun": "heun2",
    "rk4": "rk4",
    "explicit_adams": "explicit_adams",
    "implicit_adams": "implicit_adams",
}
BAR = 1.3


def interleaved(ours: Callable[[], object], theirs: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of both, run in turns so that a busy machine slows them alike."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for run, record in zip((ours, theirs), times, strict=True):
            begin = time.perf_counter()
            run()
            record.append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


def cost_table(repeats: int = 15) -> tuple[list[str], float]:
    """Seconds for 50 steps, forward and backward, beside torchdiffeq's."""
    torch.manual_seed(0)
    matrix = torch.randn(16, 16, requires_grad=True)
    x0 = torch.randn(256, 16)
    t = torch.linspace(0.0, 1.0, 51)
    space = Euclidean()

    def field(t: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ matrix) - x

    rows = ["| method | ours, ms | torchdiffeq, ms | ratio |", "| --- | ---: | ---: | ---: |"]
    worst = 0.0
    for name, other in THEIRS.items():
        adams = {"max_order": 5} if "adams" in name else {}
        tolerances = {"rtol": 1e-5, "atol": 1e-7} if name == "implicit_adams" else {}

        def ours(name: str = name, adams: dict[str, int] = adams, tolerances: dict[str, float] = tolerances) -> None:
            odeint(field, x0, t, manifold=space, method=name, **adams, **tolerances).final.sum().backward()

        def theirs(other: str = other, adams: dict[str, int] = adams) -> None:
            torchdiffeq.odeint(field, x0, t, method=other, rtol=1e-5, atol=1e-7, options=adams)[-1].sum().backward()

        ours(), theirs()
        a, b = interleaved(ours, theirs, repeats)
        worst = max(worst, a / b)
        rows.append(f"| {name} | {1e3 * a:.1f} | {1e3 * b:.1f} | {a / b:.2f} |")
    return rows, worst


def coordinate_rk4(problem: Spiral, steps: int) -> tuple[torch.Tensor, int]:
    """Ordinary RK4 in ball coordinates, projected after every step."""
    x, h = problem.start, 1.0 / steps
    for i in range(steps):
        t = torch.tensor(i * h, dtype=x.dtype)
        k1 = problem.field(t, x)
        k2 = problem.field(t + h / 3, problem.manifold.project(x + h * k1 / 3))
        k3 = problem.field(t + 2 * h / 3, problem.manifold.project(x + h * (k2 - k1 / 3)))
        k4 = problem.field(t + h, problem.manifold.project(x + h * (k1 - k2 + k3)))
        x = problem.manifold.project(x + h * (k1 + 3 * k2 + 3 * k3 + k4) / 8)
    return x, 4 * steps


def error_table() -> list[str]:
    """Largest distance to the exact answer at t = 1 for equal numbers of field evaluations."""
    outward = Spiral(PoincareBall(1.0), 2, size=6.0, away=4.0, rate=4.0, spin=2e-3, shear=0.0, points=16)
    outward.w0 = 0.3 * outward.w0
    cases = {
        "turning, 1 from the origin": Spiral(PoincareBall(1.0), 2, away=1.0, points=16),
        "turning near the boundary, 10 from the origin": Spiral(PoincareBall(1.0), 2, away=10.0, points=16),
        "running outwards, from 5.6 to 10 from the origin": outward,
    }
    budgets = (24, 48, 96, 192, 384)
    rows = [
        "| start | method | " + " | ".join(f"{n} evaluations" for n in budgets) + " |",
        "| --- | --- |" + " ---: |" * len(budgets),
    ]
    for case, problem in cases.items():
        exact = problem.exact(1.0)

        def error(x: torch.Tensor, exact: torch.Tensor = exact, problem: Spiral = problem) -> str:
            value = float(problem.manifold.dist(x, exact).max())
            return f"{value:.1e}" if math.isfinite(value) else "not finite"

        lines: dict[str, list[str]] = {name: [] for name in ("hrk4 (paper)", "rk4", "dopri5", "RK4 in coordinates")}
        with torch.no_grad():
            for budget in budgets:
                options = {"manifold": problem.manifold}
                for label, name in (("hrk4 (paper)", "hrk4"), ("rk4", "rk4")):
                    solved = odeint(problem.field, problem.start, (0.0, 1.0), method=name, step=4 / budget, **options)
                    lines[label].append(error(solved.final))
                lines["dopri5"].append(adaptive_error(problem, budget, error))
                lines["RK4 in coordinates"].append(error(coordinate_rk4(problem, budget // 4)[0]))
        rows += [f"| {case} | {label} | " + " | ".join(values) + " |" for label, values in lines.items()]
    return rows


def adaptive_error(problem: Spiral, budget: int, error: Callable[[torch.Tensor], str]) -> str:
    """dopri5 with the tightest tolerance whose solve stays within the budget."""
    best = "-"
    for exponent in range(2, 23):
        solved = odeint(
            problem.field, problem.start, (0.0, 1.0), manifold=problem.manifold, method="dopri5",
            rtol=10.0 ** (-exponent / 2), max_steps=4000,
        )  # fmt: skip
        if solved.statistics.evaluations > budget:
            break
        best = error(solved.final)
    return best


def write(marker: str, rows: list[str]) -> None:
    begin, end = f"<!-- {marker} -->", f"<!-- end of {marker} -->"
    text = PAGE.read_text(encoding="utf-8")
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    PAGE.write_text(head + begin + "\n" + "\n".join(rows) + "\n" + end + tail, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="update docs/solvers.md")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    costs, worst = cost_table()
    errors = error_table()
    print("\n".join(costs), "\n")
    print("\n".join(errors))
    if arguments.write:
        write("cost table", costs)
        write("error table", errors)
    print(f"\nworst ratio to torchdiffeq {worst:.2f}, bar {BAR}: {'met' if worst <= BAR else 'missed'}")
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
