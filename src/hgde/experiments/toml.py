"""Settings as TOML: the standard library reads it, but does not write it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def to_toml(values: Mapping[str, Any], comment: str = "") -> str:
    """Nested plain values as TOML, sections after values; ``None`` is left out, since TOML has no word for it."""
    lines = [f"# {line}" for line in comment.splitlines()]
    return "\n".join([*lines, *_section(values, "")]).strip() + "\n"


def _section(values: Mapping[str, Any], path: str) -> list[str]:
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping) and value is not None}
    lines = ["", f"[{path}]"] if path and plain else []
    lines += [f"{_key(key)} = {_value(value)}" for key, value in plain.items()]
    for key, value in values.items():
        if isinstance(value, Mapping):
            lines += _section(value, f"{path}.{_key(key)}" if path else _key(key))
    return lines


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "-_") for c in key) else json.dumps(key)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise TypeError(f"cannot write {type(value).__name__} as TOML")
