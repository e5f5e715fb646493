"""Images of which every process of a data-parallel run holds a share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ordisco.machine.group import Group


@dataclass(frozen=True)
class Held:
    """So many uint8 images: number i is with process i mod size, at place i // size. Read like a tensor, together."""

    own: Tensor
    count: int
    group: Group

    def __len__(self) -> int:
        return self.count

    @property
    def device(self) -> torch.device:
        """Where the images are."""
        return self.own.device

    def __getitem__(self, index: Tensor) -> Tensor:
        """These images, in every process: each gives its own, the sum has all."""
        found = self.own.new_zeros(len(index), *self.own.shape[1:])
        (mine,) = torch.where(index % self.group.size == self.group.rank)
        found[mine] = self.own[index[mine] // self.group.size]
        return self.group.sum_(found)
