"""What lies between two increments, without what follows from the rest.

θ* of D is D itself; G is its moving average, where it begins the next increment as that; a D that begins anew is not
kept. With `kept_precision` 16 the
weights of G and D are rounded to float16 once an increment is learned, and kept so.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ordisco.maths.stabilize import in_half
from ordisco.nets.networks import Gan, Networks

ANCHOR, MEASURED = "memories.penalty_on_D.anchor", "memories.penalty_on_D.count"
OF_THE_GAN = ("G", "G_mean", "D")


def halved(gan: Gan) -> bool:
    """Are weights of G and D kept in 16 bits?"""
    return gan.settings.kept_precision == "16"


@torch.no_grad()
def round_weights(gan: Gan) -> None:
    """The weights of G and D as they are kept."""
    if halved(gan):
        for network in (gan.G, gan.G_mean, gan.D):
            if network is not None:
                network.flat.theta.copy_(in_half(network.flat.theta))


def packed(tensors: Mapping[str, Tensor], gan: Gan | None) -> dict[str, Tensor]:
    """A learner's tensors between two increments as they are kept."""
    if gan is None:
        return dict(tensors)
    thetas = {f"{name}.theta" for name in OF_THE_GAN} if halved(gan) else set()
    follow = {ANCHOR, *(("G.theta", "G.buffers") if gan.restarts else ())}
    if gan.forgets_D:
        follow |= {name for name in tensors if name.startswith("D.")}
    return {
        name: in_half(tensor) if name in thetas else tensor for name, tensor in tensors.items() if name not in follow
    }


def unpacked(tensors: Mapping[str, Tensor], gan: Gan | None, increments: int) -> dict[str, Tensor]:
    """The same, of so many increments, with what follows from them; nothing is added that is there."""
    whole = dict(tensors)
    if gan is None:
        return whole
    for name in OF_THE_GAN:
        if (theta := whole.get(f"{name}.theta")) is not None:
            whole[f"{name}.theta"] = theta.float()
    if "G.theta" not in whole:
        whole |= {f"G.{part}": whole[f"G_mean.{part}"] for part in ("theta", "buffers")}
    if increments and MEASURED in whole and ANCHOR not in whole:
        whole[ANCHOR] = whole["D.theta"]
    return whole


def network_bytes(nets: Networks) -> dict[str, int]:
    """Storage of each network from one increment to the next."""
    gan, found = nets.gan, {}
    for name, network in nets.named():
        if gan is not None and ((name == "G" and gan.restarts) or (name == "D" and gan.forgets_D)):
            continue
        half = gan is not None and name in OF_THE_GAN and halved(gan)
        found[name] = network.flat.theta.nbytes // (2 if half else 1) + network.flat.buffers.nbytes
    return found
