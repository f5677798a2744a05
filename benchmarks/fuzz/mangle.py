"""Ways to spoil a file. All draw from the ``random.Random`` they are given, so a case is known by its number."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

CANARY = "hgde_canary"
"""A module that leaves a mark when it is imported; nothing a file says may import it."""

TOKENS = (
    b"nan", b"NaN", b"inf", b"-inf", b"1e400", b"-1", b"0", b"-0", b"1e308", b"2147483648", b"9223372036854775808",
    b"1000000000000000000", b"\x00", b"\xff\xfe", b"\r", b"\r\n", b"\n\n", b'"', b"'", b",", b";", b"\t", b"--5", b"{",
    b"}", b"[[[[[[", b"]", b"<", b"&lol;", b"%s", b"../../etc/passwd", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"null",
    b"true", f"{CANARY}:Thing".encode(), b"A" * 5000, b"__import__('os')", b"\xe2\x80\xae",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**18, 10**400, -(2**63), 0.0, -0.0, 0.5, -1.5, 1e308, 1e-308,
    float("nan"), float("inf"), float("-inf"), "", "nan", "inf", " ", "x" * 10_000, "\x00", "é", "../..", "/dev/zero",
    f"{CANARY}:Thing", "os:system", "builtins:eval", [], [[]], {}, {"name": f"{CANARY}:Thing"}, [1, 2, 3], ["a"] * 50,
    {"a": {"b": {"c": {}}}}, "--5", "cuda:99", 1_000_000_000, "1" * 5000,
)  # fmt: skip


class Bomb:
    """Pickled, it touches the canary when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def mangle_bytes(content: bytes, random: Random) -> bytes:
    """Flip, cut, repeat, insert or exchange some bytes, one to four times."""
    spoilt = bytearray(content)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(spoilt) + 1)
        length = random.choice((1, 2, 8, 64, 512))
        kind = random.randrange(7)
        if kind == 0 and place < len(spoilt):
            spoilt[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            del spoilt[place : place + length]
        elif kind == 2:
            spoilt[place:place] = spoilt[place : place + length]
        elif kind == 3:
            spoilt[place:place] = random.choice(TOKENS)
        elif kind == 4:
            token = random.choice(TOKENS)
            spoilt[place : place + len(token)] = token
        elif kind == 5:
            spoilt[place : place + length] = bytes(random.randrange(256) for _ in range(length))
        else:
            del spoilt[place:]
    return bytes(spoilt)


def mangle_text(content: bytes, random: Random) -> bytes:
    """Spoil one cell of a table, or a line, or the bytes."""
    kind = random.randrange(6)
    if kind == 0:
        return mangle_bytes(content, random)
    lines = content.split(b"\n")
    line = random.randrange(len(lines))
    cells = lines[line].split(b",")
    if kind == 1:
        lines.insert(line, lines[random.randrange(len(lines))])
    elif kind == 2:
        del cells[random.randrange(len(cells))]
    elif kind == 3:
        cells.insert(random.randrange(len(cells) + 1), random.choice(TOKENS))
    else:
        cells[random.randrange(len(cells))] = random.choice(TOKENS)
    if kind != 1:
        lines[line] = b",".join(cells)
    return b"\n".join(lines)


def mangle_plain(value: Any, random: Random) -> Any:
    """Spoil plain values (JSON): one place, at any depth, becomes something else, goes, or is doubled."""
    places = list(_places(value))
    path = random.choice(places)
    if not path:
        return random.choice(VALUES)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    kind = random.randrange(10)
    if kind == 0 and isinstance(inner, dict):
        del inner[path[-1]]
    elif kind == 1 and isinstance(inner, dict):
        inner[random.choice(("name", "extra", "format", "__class__", "widht", ""))] = random.choice(VALUES)
    elif kind == 2 and isinstance(inner, list):
        inner *= random.choice((0, 2, 1000))
    else:
        inner[path[-1]] = random.choice(VALUES)
    return value


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _places(inner, (*path, key))


def mangle_json(content: bytes, random: Random) -> bytes:
    if random.random() < 0.2:
        return mangle_bytes(content, random)
    if random.random() < 0.03:
        return b"[" * 100_000
    return json.dumps(mangle_plain(json.loads(content), random)).encode()


def mangle_array(array: Any, random: Random) -> Any:
    """Spoil an array: values, shape or type."""
    kind = random.randrange(9)
    flat = array.reshape(-1).copy()
    if kind <= 3 and flat.size:
        number = random.choice((np.nan, np.inf, -np.inf, -1, 0, 2**31, 10**18, 1e308, -5))
        with np.errstate(all="ignore"):
            if flat.dtype.kind in "iu" and not np.isfinite(number):
                flat = flat.astype(np.float64)
            if flat.dtype.kind in "iufb":
                many = random.random() < 0.3
                value = np.asarray(number).astype(flat.dtype)
                flat[slice(None) if many else random.randrange(flat.size)] = value
        return flat.reshape(array.shape)
    if kind == 4:
        return flat[: random.randrange(flat.size + 1)]
    if kind == 5:
        return np.concatenate([array, array]) if array.ndim else flat
    if kind == 6:
        return (
            flat.astype(random.choice(("float32", "int8", "complex64", "bool"))) if flat.dtype.kind in "iufb" else flat
        )
    if kind == 7:
        return flat.reshape(1, -1, 1)
    return np.zeros((0, 3))


def mangle_npz(path: Path, mark: Path, random: Random) -> None:
    if random.random() < 0.4:
        path.write_bytes(mangle_bytes(path.read_bytes(), random))
        return
    with np.load(path) as stored:
        arrays = dict(stored)
    name = random.choice(sorted(arrays))
    kind = random.randrange(5)
    if kind == 0:
        arrays[name] = np.array([Bomb(mark)], dtype=object)
    elif kind == 1:
        del arrays[name]
    else:
        arrays[name] = mangle_array(arrays[name], random)
    with path.open("wb") as file:
        np.savez(file, **arrays)
    if kind == 2:
        path.write_bytes(path.read_bytes().replace(b"'shape': (24", b"'shape': (99", 1))


def mangle_tensors(path: Path, mark: Path, random: Random) -> None:
    """Spoil a safetensors file: its bytes, one of its tensors, or its description."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    kind = random.randrange(10)
    if kind == 0:
        path.write_bytes(mangle_bytes(path.read_bytes(), random))
        return
    with safe_open(path, framework="pt") as file:
        meta = dict(file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
    name = random.choice(sorted(tensors))
    if kind <= 5:
        array = np.ascontiguousarray(mangle_array(tensors[name].numpy(), random))
        tensors[name] = torch.from_numpy(array)
    elif kind == 6:
        del tensors[name]
    elif kind == 7:
        tensors[random.choice((name + "x", "generator", "learner/extra"))] = tensors.pop(name)
    else:
        key = random.choice(sorted(meta))
        described = json.loads(meta[key])
        meta[key] = json.dumps(mangle_plain(described, random))
    save_file({key: value.contiguous().clone() for key, value in tensors.items()}, path, meta)


def mangle_file(path: Path, mark: Path, random: Random) -> None:
    """Spoil a file in the way that suits it; now and then it becomes a pickle that would touch the canary."""
    if random.random() < 0.03:
        path.write_bytes(pickle.dumps(Bomb(mark)))
        return
    suffix = path.suffix
    if suffix == ".npz":
        mangle_npz(path, mark, random)
    elif suffix == ".safetensors":
        mangle_tensors(path, mark, random)
    else:
        ways: dict[str, Callable[[bytes, Random], bytes]] = {".json": mangle_json, ".csv": mangle_text}
        path.write_bytes(ways.get(suffix, mangle_bytes)(path.read_bytes(), random))
