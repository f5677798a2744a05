"""Docstrings as the site shows them: examples as code, roles such as ``:func:`` as the name they lead to."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension

ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):`~?\.?([^`]+)`")
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)
"""From a prompt to the next empty line."""


def readable(text: str) -> str:
    """A docstring in the site's Markdown.

    >>> readable("See :func:`odeint`.\\n\\n>>> 1 + 1\\n2")
    'See `odeint`.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    return EXAMPLE.sub(lambda block: f"```pycon\n{block[0]}\n```", ROLE.sub(r"`\1`", text))


class Readable(Extension):
    """Applies it to everything that is read."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = readable(obj.docstring.value)
