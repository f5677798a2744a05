"""What the compiled loops and their callers agree on."""

from __future__ import annotations

STOP, NO_MEMORY = range(2)
"""Places of a kernel's ``state``: whether to end before the work is done, and whether that was for want of memory."""
