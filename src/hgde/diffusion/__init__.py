"""Where geometry, graphs and kernels meet: diffusivities, the flow they drive, its energies and its stability."""

from hgde.diffusion.diffusivities.isotropic import Isotropic
from hgde.diffusion.diffusivity import DIFFUSIVITIES, LOCAL, Diffusivity, make_diffusivity, register_local
from hgde.diffusion.energy import dirichlet_energy, edge_energy
from hgde.diffusion.flow import BoundFlow, GraphFlow
from hgde.diffusion.operator import GlobalWeights, Operator

__all__ = [
    "DIFFUSIVITIES",
    "LOCAL",
    "BoundFlow",
    "Diffusivity",
    "GlobalWeights",
    "GraphFlow",
    "Isotropic",
    "Operator",
    "dirichlet_energy",
    "edge_energy",
    "make_diffusivity",
    "register_local",
]
