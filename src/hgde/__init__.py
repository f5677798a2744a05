"""Graph diffusion in hyperbolic space: manifold solvers, fused diffusion, and the HGDE model.

Names are imported when first used, so ``import hgde`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hgde.lazy import on_first_use

__version__ = "0.2.0"

_HOMES = {
    "hgde.geometry": (
        "SPACES",
        "Curvature",
        "Euclidean",
        "GeooptManifold",
        "Lorentz",
        "Manifold",
        "PoincareBall",
        "Product",
    ),
    "hgde.solvers": ("SOLVERS", "Flow", "Solution", "odeint"),
    "hgde.graph": ("Graph", "SparseFeatures"),
    "hgde.graph.measures.ricci": ("ollivier_ricci",),
    "hgde.diffusion": ("DIFFUSIVITIES", "Diffusivity", "GraphFlow", "dirichlet_energy", "edge_energy"),
    "hgde.models": ("HGDE", "MODELS", "HGDEConv", "HPDEBlock", "Model"),
    "hgde.data": ("DATASETS", "Dataset", "load", "read_graph"),
    "hgde.tasks": ("METRICS", "TASKS", "Task", "metric"),
    "hgde.pipeline": ("Settings", "fit", "make_settings"),
    "hgde.estimators": (
        "HGDEClassifier",
        "HGDEClassifierCV",
        "HGDEEmbedder",
        "HGDELinkPredictor",
        "HGDEMultiLabelClassifier",
        "HGDERegressor",
        "Nodes",
    ),
}
__getattr__, __dir__, __all__ = on_first_use(__name__, _HOMES)

if TYPE_CHECKING:
    from hgde.data import DATASETS as DATASETS
    from hgde.data import Dataset as Dataset
    from hgde.data import load as load
    from hgde.data import read_graph as read_graph
    from hgde.diffusion import DIFFUSIVITIES as DIFFUSIVITIES
    from hgde.diffusion import Diffusivity as Diffusivity
    from hgde.diffusion import GraphFlow as GraphFlow
    from hgde.diffusion import dirichlet_energy as dirichlet_energy
    from hgde.diffusion import edge_energy as edge_energy
    from hgde.estimators import HGDEClassifier as HGDEClassifier
    from hgde.estimators import HGDEClassifierCV as HGDEClassifierCV
    from hgde.estimators import HGDEEmbedder as HGDEEmbedder
    from hgde.estimators import HGDELinkPredictor as HGDELinkPredictor
    from hgde.estimators import HGDEMultiLabelClassifier as HGDEMultiLabelClassifier
    from hgde.estimators import HGDERegressor as HGDERegressor
    from hgde.estimators import Nodes as Nodes
    from hgde.geometry import SPACES as SPACES
    from hgde.geometry import Curvature as Curvature
    from hgde.geometry import Euclidean as Euclidean
    from hgde.geometry import GeooptManifold as GeooptManifold
    from hgde.geometry import Lorentz as Lorentz
    from hgde.geometry import Manifold as Manifold
    from hgde.geometry import PoincareBall as PoincareBall
    from hgde.geometry import Product as Product
    from hgde.graph import Graph as Graph
    from hgde.graph import SparseFeatures as SparseFeatures
    from hgde.graph.measures.ricci import ollivier_ricci as ollivier_ricci
    from hgde.models import HGDE as HGDE
    from hgde.models import MODELS as MODELS
    from hgde.models import HGDEConv as HGDEConv
    from hgde.models import HPDEBlock as HPDEBlock
    from hgde.models import Model as Model
    from hgde.pipeline import Settings as Settings
    from hgde.pipeline import make_settings as make_settings
    from hgde.pipeline.fit import fit as fit
    from hgde.solvers import SOLVERS as SOLVERS
    from hgde.solvers import Flow as Flow
    from hgde.solvers import Solution as Solution
    from hgde.solvers import odeint as odeint
    from hgde.tasks import METRICS as METRICS
    from hgde.tasks import TASKS as TASKS
    from hgde.tasks import Task as Task
    from hgde.tasks import metric as metric
