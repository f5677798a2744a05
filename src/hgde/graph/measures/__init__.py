"""What can be measured of a graph: curvature of its edges, hyperbolicity, counts."""
