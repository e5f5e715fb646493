"""Networks in other modes for a while: what changes inside, and that all is put back."""

import pytest
import torch
from torch import Tensor, nn

from ordisco.nets.generator import Generator
from ordisco.nets.modes import gathering, running


def noisy_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(64, 3)
    )


def mixed_net() -> nn.Sequential:
    """In training mode but for batch norm and one other module."""
    net = noisy_net().train()
    net[1].eval()
    net[2].eval()
    return net


def modes(net: nn.Module) -> list[tuple[bool, bool | None]]:
    return [(module.training, getattr(module, "track_running_stats", None)) for module in net.modules()]


def statistics(net: nn.Module) -> dict[str, Tensor]:
    return {name: buffer.clone() for name, buffer in net.named_buffers()}


def by_hand(net: nn.Sequential, x: Tensor) -> Tensor:
    """The net by the statistics of the mini-batch and without dropout."""
    maps = net[0](x)
    mean, variance = maps.mean((0, 2, 3), keepdim=True), maps.var((0, 2, 3), keepdim=True, unbiased=False)
    return net[5](((maps - mean) / (variance + 1e-5).sqrt()).relu().flatten(1))


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_by_the_mini_batch_without_dropout(training: bool):
    net, x = noisy_net().train(training), torch.randn(6, 1, 4, 4)
    with running(net, norms=True, others=False):
        torch.testing.assert_close(net(x), by_hand(net, x))


def test_a_mode_that_is_not_named_stays():
    net, x = noisy_net().train(), torch.randn(6, 1, 4, 4)
    with running(net, others=False):  # batch norm is in training mode already
        torch.testing.assert_close(net(x), by_hand(net, x))
    with running(net, norms=False):
        assert [module.training for module in net] == [True, False, True, True, True, True]
        torch.testing.assert_close(net[:3](x), net[0](x).relu(), rtol=1e-4, atol=1e-5)  # statistics (0, 1) as yet
        assert not torch.equal(net(x), net(x))  # dropout
    net.eval()
    with running(net, norms=True):
        assert [module.training for module in net] == [False, True, False, False, False, False]
        torch.testing.assert_close(net(x), by_hand(net, x))


@pytest.mark.parametrize("norms", [None, True, False])
@pytest.mark.parametrize("others", [None, True, False])
def test_modes_come_back_and_statistics_stay(norms: bool | None, others: bool | None):
    for net in (noisy_net().train(), noisy_net().eval(), mixed_net()):
        before, kept = modes(net), statistics(net)
        with running(net, norms=norms, others=others):
            net(torch.randn(6, 1, 4, 4))
        assert modes(net) == before
        assert all(torch.equal(kept[name], buffer) for name, buffer in net.named_buffers())


@pytest.mark.parametrize("norms", [None, True, False])
@pytest.mark.parametrize("others", [None, True, False])
def test_modes_come_back_also_after_an_error(norms: bool | None, others: bool | None):
    net = mixed_net()
    net[5].register_forward_pre_hook(lambda module, args: 1 / 0)  # the last module, after batch norm and dropout
    before, kept = modes(net), statistics(net)
    with pytest.raises(ZeroDivisionError), running(net, norms=norms, others=others):
        net(torch.randn(6, 1, 4, 4))
    assert modes(net) == before
    assert all(torch.equal(kept[name], buffer) for name, buffer in net.named_buffers())


def test_a_network_still_learns_its_statistics_afterwards():
    net, x = noisy_net().train(), torch.randn(6, 1, 4, 4)
    with running(net, norms=True):
        net(x)
    assert net[1].num_batches_tracked == 0
    net(x)
    assert net[1].num_batches_tracked == 1
    assert net[1].running_mean.any()


def test_a_norm_that_tracks_nothing_goes_on_tracking_nothing():
    net = nn.Sequential(nn.BatchNorm2d(1, track_running_stats=False))
    with running(net, norms=True):
        net(torch.randn(6, 1, 4, 4))
    assert not net[0].track_running_stats


def test_a_generator_runs_by_the_mini_batch_without_a_trace():
    torch.manual_seed(0)
    G = Generator((1, 8, 8), 3, 4, 4).eval()
    kept, z, y = statistics(G), torch.randn(8, 4), torch.arange(8) % 3
    alone = G(z, y)
    with running(G, norms=True):
        together = G(z, y)
    assert not torch.allclose(together, alone)
    assert all(torch.equal(kept[name], buffer) for name, buffer in G.named_buffers())
    assert torch.equal(G(z, y), alone)


def test_statistics_are_gathered_as_the_mean_over_mini_batches():
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm2d(2), nn.Dropout(0.5)).eval()
    batches = [torch.randn(5, 2, 3, 3) + shift for shift in (0.0, 1.0, 5.0)]
    net[0].running_mean.fill_(77.0)  # of before: forgotten
    with torch.no_grad(), gathering(net):
        outputs = [net(x) for x in batches]
    torch.testing.assert_close(net[0].running_mean, torch.stack([x.mean((0, 2, 3)) for x in batches]).mean(0))
    torch.testing.assert_close(net[0].running_var, torch.stack([x.var((0, 2, 3)) for x in batches]).mean(0))
    assert net[0].momentum == 0.1
    assert not any(module.training for module in net.modules())
    assert all(bool((x != 0).all()) for x in outputs)  # no dropout
