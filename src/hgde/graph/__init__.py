"""Graphs: the container, and what can be said about one."""

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError

__all__ = ["Features", "Graph", "GraphError", "SparseFeatures"]
