"""The compiled passes. Read :mod:`~hgde.kernels.cpu.lanes` first: it explains how vectors are written.

``threads`` runs kernels, ``layout`` prepares graphs for them, :mod:`hgde.compiler` compiles them. Kernels:
``trajectories`` and ``programs`` (whole ways of solvers, with ``edges`` and ``gradients`` of a step along edges,
``exponential``, ``residual`` and ``rows``), ``attention`` and ``attentive``, ``encoder``, ``links``, ``maps``,
``origin``, ``pairs``, ``sparse``.
"""
