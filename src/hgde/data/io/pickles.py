"""Old pickles without the danger: an unpickler that can build arrays and plain containers and call nothing else.

The Planetoid and Airport files are pickles written by Python 2 or early Python 3. Loading a pickle normally runs
whatever it names. Here every name is looked up in a short table whose entries are this module's own inert stand-ins,
so a file can at most make dictionaries, lists, numbers and numpy arrays of numbers.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hgde.data.errors import DataError


class Record:
    """An object of a class that is not loaded: it only keeps the state the pickle gives it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments
        self.state: dict[str, Any] = {}

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, tuple) and len(state) == 2:
            state = {**(state[0] or {}), **(state[1] or {})}
        self.state = state if isinstance(state, dict) else {"state": state}


class _Array:
    """What ``numpy.ndarray`` means inside a pickle: shape, number type and bytes; of objects, the plain list."""

    def __init__(self, *_: Any) -> None:
        self.value: Any = np.zeros(0)

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran, raw = state
        if dtype.value.hasobject:
            self.value = list(raw)
            return
        data = raw.encode("latin1") if isinstance(raw, str) else raw
        flat = np.frombuffer(data, dtype=dtype.value)
        self.value = flat.reshape(shape[::-1]).T if is_fortran else flat.reshape(shape)


class _Dtype:
    """A numpy type by its letter code; records and dates are refused."""

    def __init__(self, code: Any, *_: Any) -> None:
        text = code.decode("latin1") if isinstance(code, bytes) else str(code)
        self.value = np.dtype(text)
        if self.value.kind not in "biufSUO":
            raise pickle.UnpicklingError(f"an array of type {text!r}")

    def __setstate__(self, state: Any) -> None:
        order = state[1].decode("latin1") if isinstance(state[1], bytes) else state[1]
        if order == ">":
            self.value = self.value.newbyteorder(">")


class _Maker:
    """A function a pickle may call and not change: the format can also assign to whatever it has named."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("it tries to change what it was given")


@_Maker
def _array(*_: Any) -> _Array:
    return _Array()


@_Maker
def _scalar(dtype: _Dtype, raw: Any) -> Any:
    data = raw.encode("latin1") if isinstance(raw, str) else raw
    return np.frombuffer(data, dtype=dtype.value)[0]


@_Maker
def _object(kind: Any = None, *_: Any) -> Any:
    return {} if kind is _dictionary else Record()


@_Maker
def _dictionary(*_: Any) -> dict[Any, Any]:
    return {}


@_Maker
def _bytes(text: Any = "", *_: Any) -> bytes:
    return text.encode("latin1") if isinstance(text, str) else b""


_NUMPY: dict[str, Callable[..., Any]] = {"_reconstruct": _array, "scalar": _scalar, "ndarray": _array, "dtype": _Dtype}
_SAFE: dict[tuple[str, str], Callable[..., Any]] = {
    **{
        (f"numpy{core}", name): made
        for core in ("", ".core.multiarray", "._core.multiarray")
        for name, made in _NUMPY.items()
    },
    **{(module, "_reconstructor"): _object for module in ("copy_reg", "copyreg")},
    **{(module, "__newobj__"): _object for module in ("copy_reg", "copyreg")},
    **{
        (module, name): _object for module in ("__builtin__", "builtins") for name in ("object", "list", "set", "tuple")
    },
    **{(module, "dict"): _dictionary for module in ("__builtin__", "builtins")},
    ("collections", "defaultdict"): _dictionary,
    ("collections", "OrderedDict"): _dictionary,
    ("_codecs", "encode"): _bytes,
}
_INERT_PACKAGES = ("scipy.sparse.", "networkx.classes.")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _SAFE:
            return _SAFE[module, name]
        if module.startswith(_INERT_PACKAGES) and "." not in name:
            return Record
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def load_pickle(source: Path | bytes, path: Path | None = None) -> Any:
    """The plain content of a pickle. Sparse matrices and graphs come back as :class:`Record`.

    Raises:
        DataError: if the file is damaged, or asks for anything outside the table above; nothing has been run then.
    """
    where = path or (source if isinstance(source, Path) else Path("pickle"))
    try:
        content = source.read_bytes() if isinstance(source, Path) else source
        return _plain(_Unpickler(io.BytesIO(content), encoding="latin1").load(), set())
    except Exception as error:  # damaged bytes raise nearly anything: IndexError, ValueError, KeyError, MemoryError
        reason = str(error) or type(error).__name__
        raise DataError.at(where, f"refused: not a pickle of plain arrays and containers ({reason})") from None


def csr_from(record: Any, path: Path) -> Any:
    """The scipy CSR matrix of a record that was one."""
    from scipy.sparse import csr_matrix

    state = record.state if isinstance(record, Record) else {}
    shape = state.get("_shape", state.get("shape"))
    if shape is None or not {"data", "indices", "indptr"} <= state.keys():
        raise DataError.at(path, "expected a pickled sparse matrix in CSR form")
    return csr_matrix((state["data"], state["indices"], state["indptr"]), shape=shape)


def _plain(value: Any, seen: set[int]) -> Any:
    """Replace array stand-ins by arrays, all the way down."""
    if isinstance(value, _Array):
        return _plain(value.value, seen)
    if not isinstance(value, Record | dict | list | tuple) or id(value) in seen:
        return value
    if isinstance(value, tuple):
        return tuple(_plain(item, seen) for item in value)
    seen.add(id(value))
    if isinstance(value, Record):
        value.state = _plain(value.state, seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            value[key] = _plain(item, seen)
    else:
        value[:] = [_plain(item, seen) for item in value]
    return value
