"""# Your own diffusivity

How strongly should a neighbour pull? A diffusivity is one class; registered, it has a name everywhere: on the command
line, in settings, in estimators, in searches.
"""

# %% [markdown]
# ## The weight
#
# Here nearer neighbours pull more: `a_ij` is proportional to `exp(-d(z_i, z_j) / reach)`, each row summing to less
# than one, so that a step does not overshoot. Its one setting is declared in the class.

# %%
from dataclasses import dataclass

import torch

from hgde import DIFFUSIVITIES, Diffusivity
from hgde.diffusion import Operator
from hgde.kernels import EdgeWeights
from hgde.sections import Section, setting


@DIFFUSIVITIES.register("by-distance")
class ByDistance(Diffusivity):
    """Near neighbours pull more: a softmax of minus the distance."""

    @dataclass(frozen=True)
    class Settings(Section):
        reach: float = setting(1.0, "Distance at which the pull falls to a third.", above=0)

    def __init__(self, options=None, width=0):
        super().__init__()
        self.reach = (options or self.Settings()).reach

    def forward(self, z, graph, manifold):
        away = manifold.dist(z[graph.rows], z[graph.indices]).reshape(-1)
        pull = torch.exp(-away / self.reach)
        total = torch.ones_like(z[:, 0]).index_add(0, graph.rows, pull)  # the one is a loop's
        return Operator(local=EdgeWeights(pull / total[graph.rows]))


# %% [markdown]
# ## Use it
#
# By name, with its setting, compared with the built-in one.

# %%
from hgde import fit, make_settings

for name in ({"name": "isotropic"}, {"name": "by-distance", "reach": 2.0}):
    settings = make_settings(
        {
            "preset": "none",
            "data": {"name": "disease-sim", "options": ["num_nodes=300"]},
            "model": {"width": 4, "time": 4.0, "diffusivity": name},
            "training": {"epochs": 50},
            "run": {"threads": 1},
        }
    )
    summary = fit(settings).summary
    print(f"{name['name']:12s} test accuracy {100 * summary.mean():.1f} %")

# %% [markdown]
# To ship it, put the class into a package with an entry point `hgde.diffusivities`; see
# [Extending](../extending.md).
