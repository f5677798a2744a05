"""# Solvers alone: flow matching on the ball

`odeint` needs no graph. Here a small network learns a velocity field that carries noise to a distribution on the
Poincaré ball (Riemannian flow matching: for a pair of points the target velocity is that of the geodesic between them),
and a solver draws samples by following it.
"""

# %%
import torch
from torch import nn

from hgde import PoincareBall, odeint

torch.manual_seed(0)
ball = PoincareBall(c=1.0)


def noise(count):
    return ball.expmap0(0.3 * torch.randn(count, 2))


def data(count):
    """Three clusters far out, where hyperbolic space has room."""
    angle = 2 * torch.pi * torch.randint(3, (count,)) / 3
    way = torch.stack([angle.cos(), angle.sin()], -1)
    return ball.expmap0(1.0 * way + 0.12 * torch.randn(count, 2))


class Velocity(nn.Module):
    """A tangent vector at ``x``, made in coordinates at the origin and carried to ``x``."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 2))

    def forward(self, t, x):
        time = torch.as_tensor(t, dtype=x.dtype).expand(*x.shape[:-1], 1)
        return ball.transport0(x, self.net(torch.cat([ball.logmap0(x), time], -1)))


# %% [markdown]
# ## Train
#
# At time `t` of the geodesic from `x0` to `x1` the velocity is `log_x(x1) / (1 - t)`. The loss is measured in the
# metric of the ball at `x`.

# %%
velocity = Velocity()
optimiser = torch.optim.Adam(velocity.parameters(), lr=3e-3)
losses = []
for _ in range(300):
    x0, x1 = noise(256), data(256)
    t = 0.98 * torch.rand(256, 1)
    x = ball.expmap(x0, t * ball.logmap(x0, x1)).detach()
    target = ball.logmap(x, x1).detach() / (1 - t)
    wrong = velocity(t, x) - target
    loss = ball.inner(x, wrong, wrong).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
print(f"loss: {sum(losses[:20]) / 20:.2f} at first, {sum(losses[-20:]) / 20:.2f} at last")

# %% [markdown]
# ## Sample
#
# The field is integrated on the manifold; every point along the way lies in the ball. For gradients,
# `gradient="recompute"` stores only one state per step.

# %%
with torch.no_grad():
    solution = odeint(velocity, noise(500), [0.0, 1.0], manifold=ball, method="dopri5", rtol=1e-4, atol=1e-5)
samples, wanted = solution.final, data(500)
away = ball.dist(samples[:, None], wanted[None]).min(1).values
start = ball.dist(noise(500)[:, None], wanted[None]).min(1).values
print(f"median distance to the nearest true point: {start.median():.2f} before, {away.median():.2f} after")
print(solution.statistics)
assert away.median() < 0.6 * start.median()
