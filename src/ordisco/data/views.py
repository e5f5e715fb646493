"""Parts of many images without a copy, where that is possible: what is mapped from a file stays in the file."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def rows(tensor: Tensor, mask: Tensor) -> Tensor:
    """The rows that a mask selects; where they lie side by side, a view of them.

    >>> x = torch.arange(5)
    >>> part = rows(x, torch.tensor([False, True, True, False, False]))
    >>> part.tolist(), part.data_ptr() == x[1:].data_ptr()
    ([1, 2], True)
    """
    count = int(mask.sum())
    if count == 0:
        return tensor[:0]
    first = int(mask.to(torch.uint8).argmax())
    return tensor[first : first + count] if bool(mask[first : first + count].all()) else tensor[mask]


def joined(parts: Sequence[Tensor]) -> Tensor:
    """The parts one after the other; where only one has rows, itself.

    >>> x = torch.arange(3)
    >>> joined([x[:0], x]).data_ptr() == x.data_ptr()
    True
    """
    there = [part for part in parts if len(part)]
    return torch.cat(there) if len(there) > 1 else (there or list(parts))[0]
