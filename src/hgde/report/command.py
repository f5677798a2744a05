"""The command line that says what settings say."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from hgde.pipeline.settings import Settings, default_flat_settings
from hgde.report.callbacks import flat


def command_of(name: str, settings: Settings, more: Mapping[str, Any] | None = None) -> str:
    """``hgde NAME`` with an option for everything that was given; what has no flag of its own is set by its path.

    ``more`` are options of the command itself; those that are ``None`` are left out.

    >>> from hgde.pipeline import make_settings
    >>> command_of("train", make_settings({"data": {"edges": "my edges.csv"}, "model": {"width": 8}}))
    "hgde train --edges 'my edges.csv' --width 8"
    """
    flags = {leaf.path: flag for flag, leaf in default_flat_settings().items()}
    words = ["hgde", name]
    for path, value in flat(settings.given).items():
        if value is None:
            continue
        flag = flags.get(path) or flags.get(f"{path}.name")
        if flag is None:
            words += ["--set", f"{path}={json.dumps(value) if not isinstance(value, str) else value}"]
            continue
        option = f"--{flag.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{option[2:]}")
        else:
            words += [option, ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)]
    for option, value in (more or {}).items():
        words += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    return shlex.join(words)
