"""The interactive disk: hand-written JavaScript, packaged as it is, and the data it reads.

>>> from hgde.report.explorer import explorer_script
>>> "class Explorer" in explorer_script()
True
"""

from hgde.report.explorer.assets import explorer_script, explorer_style
from hgde.report.explorer.payload import explorer_payload

__all__ = ["explorer_payload", "explorer_script", "explorer_style"]
