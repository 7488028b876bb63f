"""The one-file container of named arrays: prelude, JSON header, raw bytes. No pickle.

Layout, all numbers little-endian:

| bytes | content |
|---|---|
| 8 | magic `89 41 42 58 0D 0A 1A 0A` (as in PNG, a transfer in text mode breaks it) |
| 4 | format version |
| 8, 8 | length of the JSON header, length of the whole file |
| 32 | SHA-256 of the JSON header |
| ... | JSON header: `arrays` (name, shape, dtype, offset, nbytes, sha256), `meta` |
| ... | the arrays, C order, each starting at a multiple of 64; gaps are zero bytes |

Every byte is covered by a check, so that a file that opens is the file that was
written.
"""

import contextlib
import hashlib
import json
import os
import struct
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._values import shown


MAGIC = b"\x89ABX\r\n\x1a\n"
FORMAT_VERSION = 2
_PRELUDE = struct.Struct("<8sIQQ32s")
_ALIGN = 64


class FileFormatError(ValueError):
    """A file that is not an arborax file, is damaged, or does not fit the model."""


def _round_up(n: int) -> int:
    return -(-n // _ALIGN) * _ALIGN


def _to_bytes(x: np.ndarray) -> bytes:
    if x.dtype.byteorder == ">":
        x = x.astype(x.dtype.newbyteorder("<"))
    return x.tobytes(order="C")


def encode(arrays: Mapping[str, Any], meta: Mapping[str, Any]) -> bytes:
    """Packs named arrays (also `bfloat16`, complex, bool, integers) and a JSON-able
    `meta` into the bytes of one file; the same input gives the same bytes."""
    entries, chunks, offset = [], [], 0
    for name, value in arrays.items():
        x = np.asarray(value)
        if x.dtype.hasobject:
            raise TypeError(f"cannot store the array {name!r} of dtype {x.dtype}")
        raw = _to_bytes(x)
        entries.append(
            {
                "name": name,
                "shape": list(x.shape),
                "dtype": x.dtype.name,
                "offset": offset,
                "nbytes": len(raw),
                "sha256": hashlib.sha256(raw).hexdigest(),
            }
        )
        padded = _round_up(len(raw))
        chunks.append(raw + b"\0" * (padded - len(raw)))
        offset += padded
    header = json.dumps({"arrays": entries, "meta": meta}, sort_keys=True).encode()
    start = _round_up(_PRELUDE.size + len(header))
    prelude = _PRELUDE.pack(
        MAGIC,
        FORMAT_VERSION,
        len(header),
        start + offset,
        hashlib.sha256(header).digest(),
    )
    gap = b"\0" * (start - _PRELUDE.size - len(header))
    return b"".join([prelude, header, gap, *chunks])


def _decode_header(raw: bytes, source: str) -> tuple[dict, int]:
    """The checked header (`arrays`, `meta`) and the place where the arrays start."""
    if len(raw) < len(MAGIC) or raw[: len(MAGIC)] != MAGIC:
        raise FileFormatError(
            f"{source} is not an arborax file: it begins with {raw[:8]!r}, expected "
            f"{MAGIC!r}. Give a file written by `abx.save`."
        )
    if len(raw) < _PRELUDE.size:
        raise FileFormatError(
            f"{source} is truncated: {len(raw)} bytes, too short for a header."
        )
    _, version, header_size, total, digest = _PRELUDE.unpack(raw[: _PRELUDE.size])
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{source} is of format {version}, written by a newer arborax; this one "
            f"reads formats up to {FORMAT_VERSION}, so install the newer one."
        )
    if version < 1:
        raise FileFormatError(f"{source} is damaged: format version {version}.")
    if len(raw) != total:
        what = "truncated" if len(raw) < total else "damaged"
        raise FileFormatError(
            f"{source} is {what}: it has {len(raw)} bytes, its header says {total}."
        )
    body = raw[_PRELUDE.size : _PRELUDE.size + header_size]
    if hashlib.sha256(body).digest() != digest:
        raise FileFormatError(f"{source} is damaged: the header fails its checksum.")
    start = _round_up(_PRELUDE.size + header_size)
    if any(raw[_PRELUDE.size + header_size : start]):
        raise FileFormatError(f"{source} is damaged: bytes after the header changed.")
    return json.loads(body), start


def decode(raw: bytes, source: str = "the file") -> tuple[dict[str, np.ndarray], Any]:
    """Unpacks and checks the bytes of `encode`: `(arrays, meta)`. Raises
    `FileFormatError` for a foreign, truncated, damaged or newer file, which `source`
    names."""
    header, start = _decode_header(raw, source)
    arrays: dict[str, np.ndarray] = {}
    for entry in header["arrays"]:
        first = start + entry["offset"]
        last = first + entry["nbytes"]
        data = raw[first:last]
        if hashlib.sha256(data).hexdigest() != entry["sha256"]:
            raise FileFormatError(
                f"{source} is damaged: the array {entry['name']!r} fails its checksum."
            )
        if any(raw[last : start + _round_up(entry["offset"] + entry["nbytes"])]):
            raise FileFormatError(
                f"{source} is damaged: bytes after the array {entry['name']!r} changed."
            )
        dtype = jnp.dtype(entry["dtype"])
        if dtype.byteorder == "=" and not np.little_endian:
            dtype = dtype.newbyteorder("<")
        arrays[entry["name"]] = np.frombuffer(data, dtype).reshape(entry["shape"])
    return arrays, header["meta"]


def write_atomically(path: str | os.PathLike, raw: bytes) -> None:
    """Writes a file so that at any moment `path` is the old or the new file, whole.

    Writes a hidden temporary file beside it, flushes it to disk, renames it over `path`
    and flushes the folder. An `OSError` (a full disk, a folder that must not be written
    to) names `path` and leaves the old file.
    """
    path = Path(path)
    writer = f"{os.getpid()}-{threading.get_ident()}"
    temporary = path.with_name(f".{path.name}.{writer}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flushes a folder's entries to disk, where the system has such a call."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def named_leaves(tree: Any) -> dict[str, Any]:
    """Names the leaves of a pytree by their paths, for example `.layers[0].weight`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}


def check_names(expected: Iterable[str], got: Iterable[str], source: str) -> None:
    """Raises `FileFormatError` unless both sets of names are equal."""
    expected, got = set(expected), set(got)
    if expected != got:
        missing, extra = sorted(expected - got), sorted(got - expected)
        raise FileFormatError(
            f"{source} does not fit: it lacks the leaves {shown(missing)} and has "
            f"{shown(extra)} that are not expected. Build the same model (same "
            "hyperparameters) as the one that was saved."
        )
