"""Compiled loops of what is measured of graphs, in the language of :mod:`hgde.compiler.dialect`."""
