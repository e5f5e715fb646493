"""A safetensors file, looked at before it is read: names, shapes and types stand in its header."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ordisco import files

MOST_HEADER = 10_000_000  # bytes; about a hundred a tensor are usual
DTYPES = {
    "BOOL": torch.bool,
    "U8": torch.uint8,
    "I8": torch.int8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
}


class Form(NamedTuple):
    """What a tensor is, apart from its values."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{str(self.dtype).removeprefix('torch.')} {'×'.join(map(str, self.shape)) or 'number'}"


def forms_of(tensors: Mapping[str, Tensor]) -> dict[str, Form]:
    """The forms of tensors in memory."""
    return {name: Form(tuple(tensor.shape), tensor.dtype) for name, tensor in tensors.items()}


class TensorFile:
    """An open safetensors file, its header read: its length is what the header says, or it is a `ValueError`."""

    def __init__(self, path: Path) -> None:
        self._descriptor = files.open_plain(path)
        try:
            self._size = os.fstat(self._descriptor).st_size
            self._start = files.read_exactly(self._descriptor, 8)
            length = int.from_bytes(self._start, "little")
            if len(self._start) < 8 or length > min(MOST_HEADER, self._size - 8):
                raise ValueError("its header is not whole")
            header = files.read_exactly(self._descriptor, length)
            self._start += header
            self.forms = _forms_in(header, self._size - 8 - length)
        except BaseException:
            self.close()
            raise

    def read(self) -> bytes:
        """The whole file, header included."""
        return self._start + files.read_exactly(self._descriptor, self._size - len(self._start))

    def close(self) -> None:
        """Close it."""
        os.close(self._descriptor)

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _forms_in(header: bytes, body: int) -> dict[str, Form]:
    forms, total = {}, 0
    try:
        entries = json.loads(header)
        for name, entry in entries.items():
            if name == "__metadata__":
                continue
            shape = tuple(entry["shape"])
            if not all(type(size) is int and 0 <= size < 2**48 for size in shape):
                raise ValueError(f"the shape of {name}")
            forms[name] = form = Form(shape, DTYPES[entry["dtype"]])
            total += math.prod(shape) * form.dtype.itemsize
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its header is damaged ({error})") from error
    if total != body:
        raise ValueError(f"its tensors take {total:,} bytes, it has {body:,}")
    return forms
