"""Graphs: the container, and what can be said about one."""

from hgde.graph.features import Features, SparseFeatures
from hgde.graph.graph import Graph, GraphError
from hgde.graph.piece import PieceGraph

__all__ = ["Features", "Graph", "GraphError", "PieceGraph", "SparseFeatures"]
