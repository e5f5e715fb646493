"""Adam on a flat vector is torch's, bit for bit."""

import torch

from ordisco.nets.adam import Adam


def test_the_steps_of_torchs_own():
    draw = torch.Generator().manual_seed(0)
    mine, its = (torch.nn.Parameter(torch.linspace(-1, 1, 37)) for _ in range(2))
    own, reference = Adam(mine, 0.01, (0.5, 0.9)), torch.optim.Adam([its], lr=0.01, betas=(0.5, 0.9), fused=True)
    for _ in range(4):
        gradient = torch.randn(37, generator=draw)
        mine.grad, its.grad = gradient.clone(), gradient.clone()
        own.step()
        reference.step()
    assert torch.equal(mine, its)
    assert own.moments.keys() == reference.state[its].keys()
    assert all(torch.equal(own.moments[key], value) for key, value in reference.state[its].items())
