"""The compiled kernels. Read :mod:`~hgde.kernels.cpu.lanes` first: it explains the dialect they are written in.

``compile`` makes an object of a kernel, ``load`` finds or orders it, ``threads`` runs it, ``layout`` prepares graphs.
Kernels: ``edges`` and ``gradients`` (steps along edges and their gradient), ``rows`` (with ``exponential`` and
``residual``), ``attention``, ``maps``, ``origin``, ``pairs``, ``sparse``. Nothing here but ``layout``, ``load`` and
``threads`` is imported by a process that finds its kernels stored.
"""
