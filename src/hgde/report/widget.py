"""The disk explorer in a notebook (``pip install "hgde[notebook]"``), its selection readable from Python.

::

    explorer = DiskExplorer(view)
    explorer                    # shows it
    explorer.selected_ids       # after a region was drawn around nodes
    explorer.selection = [3, 4] # selects from Python
"""

from __future__ import annotations

from typing import Any

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError('the notebook widget needs anywidget; try pip install "hgde[notebook]"') from error

from hgde.report.contents import DiskView, EnergyCurve
from hgde.report.explorer import explorer_payload, explorer_script, explorer_style


class DiskExplorer(anywidget.AnyWidget):
    """A :class:`~hgde.report.contents.DiskView` to move about in.

    ``selection`` holds the numbers of the selected nodes and can be set; ``time`` sets the diffusion time shown.

    >>> import numpy as np
    >>> from hgde.report.contents import DiskView
    >>> explorer = DiskExplorer(DiskView(np.array([[[0.1, 0.2], [-0.5, 0.3]]])), "two nodes")
    >>> explorer.selection = [1]
    >>> explorer.selected_ids
    ['1']
    """

    _esm = explorer_script()
    _css = explorer_style()
    payload = traitlets.Dict().tag(sync=True)
    selection = traitlets.List(traitlets.Int()).tag(sync=True)
    time = traitlets.Float().tag(sync=True)

    def __init__(
        self, view: DiskView, title: str = "Embedding", energy: EnergyCurve | None = None, **more: Any
    ) -> None:
        payload = explorer_payload(view, title, energy)
        super().__init__(payload=payload, time=float(view.times[-1]), **more)
        self._ids = view.ids
        self._count = len(view.positions[0])

    @property
    def selected_ids(self) -> list[str]:
        """The ids of the selected nodes."""
        return [str(i) if self._ids is None else str(self._ids[i]) for i in self.selection]

    @traitlets.validate("selection")
    def _in_range(self, proposal: Any) -> list[int]:
        wrong = [i for i in proposal["value"] if hasattr(self, "_count") and not 0 <= i < self._count]
        if wrong:
            raise traitlets.TraitError(f"expected numbers of nodes below {self._count}, got {wrong[:5]}")
        return list(proposal["value"])
