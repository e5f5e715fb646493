"""What lies between two increments, without what follows from the rest.

θ* of D is D itself; G is its moving average, where it begins the next increment as that; a D that begins anew is not
kept. With `kept_precision` 16 the weights of G and D are rounded to float16 once an increment is learned, with 8 to
whole numbers and their scales, and kept so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from ordisco.maths.rounding import bytes_of, from_eight, in_eight, in_half, rounded
from ordisco.nets.networks import Gan, Networks

ANCHOR, MEASURED = "memories.penalty_on_D.anchor", "memories.penalty_on_D.count"
OF_THE_GAN = ("G", "G_mean", "D")


def bits(gan: Gan) -> int:
    """In how many bits the weights of G and D are kept."""
    return int(gan.settings.kept_precision)


@torch.no_grad()
def round_weights(gan: Gan) -> None:
    """The weights of G and D as they are kept."""
    for network in (gan.G, gan.G_mean, gan.D):
        if network is not None:
            network.flat.theta.copy_(rounded(network.flat.theta, bits(gan)))


def shortened(name: str, theta: Tensor, kept: int) -> Iterator[tuple[str, Tensor]]:
    """A network's weights in so many bits: the tensors that are kept of them, by name."""
    if kept == 8:
        codes, scales = in_eight(theta)
        yield f"{name}.theta", codes
        yield f"{name}.scales", scales
    else:
        yield f"{name}.theta", theta if kept == 32 else in_half(theta)


def whole(tensors: Mapping[str, Tensor], name: str) -> Tensor:
    """The weights again, in 32 bits."""
    theta, scales = tensors[f"{name}.theta"], tensors.get(f"{name}.scales")
    return theta.float() if scales is None else from_eight(theta, scales)


def packed(tensors: Mapping[str, Tensor], gan: Gan | None) -> dict[str, Tensor]:
    """A learner's tensors between two increments as they are kept."""
    if gan is None:
        return dict(tensors)
    follow = {ANCHOR, *(("G.theta", "G.buffers") if gan.restarts else ())}
    if gan.forgets_D:
        follow |= {name for name in tensors if name.startswith("D.")}
    kept = {name: tensor for name, tensor in tensors.items() if name not in follow}
    for name in OF_THE_GAN:
        if (theta := kept.get(f"{name}.theta")) is not None:
            kept |= shortened(name, theta, bits(gan))
    return kept


def unpacked(tensors: Mapping[str, Tensor], gan: Gan | None, increments: int) -> dict[str, Tensor]:
    """The same, of so many increments, with what follows from them; nothing is added that is there."""
    found = dict(tensors)
    if gan is None:
        return found
    for name in OF_THE_GAN:
        if f"{name}.theta" in found:
            found[f"{name}.theta"] = whole(found, name)
    if "G.theta" not in found:
        found |= {f"G.{part}": found[f"G_mean.{part}"] for part in ("theta", "buffers")}
    if increments and MEASURED in found and ANCHOR not in found:
        found[ANCHOR] = found["D.theta"]
    return found


def network_bytes(nets: Networks) -> dict[str, int]:
    """Storage of each network from one increment to the next."""
    gan, found = nets.gan, {}
    for name, network in nets.named():
        if gan is not None and ((name == "G" and gan.restarts) or (name == "D" and gan.forgets_D)):
            continue
        kept = bits(gan) if gan is not None and name in OF_THE_GAN else 32
        found[name] = bytes_of(len(network.flat.theta), kept) + network.flat.buffers.nbytes
    return found
