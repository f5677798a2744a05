"""# Choose a solver

Error against cost, measured on the Poincaré disk. In short: `rk4` for a fixed number of steps, `dopri5` for an
accuracy, `heuler` for the paper's model, where a step is a layer rather than an approximation.
"""

# %%
import torch

from hgde import PoincareBall, odeint
from hgde.solvers.registry import resolve

ball = PoincareBall(c=1.0).double()
x0 = torch.tensor([[0.3, 0.1], [-0.2, 0.5], [0.0, -0.6]], dtype=torch.float64)


def field(t, x):
    """Turn around the origin, and be drawn to it, at a changing pace."""
    turned = torch.stack([-x[..., 1], x[..., 0]], -1)
    return (1 + 0.5 * torch.sin(3 * t)) * turned - 0.3 * x


exact = odeint(field, x0, [0.0, 2.0], manifold=ball, method="dopri5", rtol=1e-11, atol=1e-12).final

# %% [markdown]
# ## Fixed steps
#
# Halving the step shows the order: the error of a method of order `p` falls by a factor of `2^p`.

# %%
print(f"{'method':16s} {'declared':>8s} {'measured':>8s} {'error, 32 steps':>16s} {'evaluations':>12s}")
for name in ("heuler", "hrk4", "euler", "midpoint", "heun", "rk4", "explicit_adams"):
    errors = []
    for steps in (16, 32):
        solution = odeint(field, x0, [0.0, 2.0], manifold=ball, method=name, step=2.0 / steps)
        errors.append(float(ball.dist(solution.final, exact).max()))
    order = torch.log2(torch.tensor(errors[0] / errors[1])).item()
    declared = resolve(name).order
    print(f"{name:16s} {declared:8d} {order:8.1f} {errors[1]:16.1e} {solution.statistics.evaluations:12d}")

# %% [markdown]
# `hrk4` has four stages and order one: its slopes are `log_h F(stage)`, which include the displacement to the stage.
# It is kept because the paper uses it. [How it works](../how-it-works.md) explains its order.
#
# ## Tolerances
#
# Adaptive methods take steps as long as the tolerance allows, and report their statistics.

# %%
for rtol in (1e-3, 1e-6, 1e-9):
    solution = odeint(field, x0, [0.0, 2.0], manifold=ball, method="dopri5", rtol=rtol, atol=rtol / 10)
    error = float(ball.dist(solution.final, exact).max())
    print(f"rtol {rtol:.0e}: error {error:.1e}, {solution.statistics}")
