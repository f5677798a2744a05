"""From a Python function to machine code, in seconds. Nothing here knows of graphs or of geometry.

``dialect`` is the language of kernels, ``values`` its types and arithmetic, ``scopes`` what its names mean,
``translate`` makes LLVM's program of a syntax tree, ``build`` an object of the program, ``load`` finds an object or has
it made by a worker process, ``haste`` says whether half the time must do. A process that finds its kernels stored
imports ``load``, ``build`` and ``haste`` only, and compiles nothing.
"""
