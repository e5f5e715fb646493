"""Per-image gradients against one backward pass an image."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from ordisco.errors import OrdiscoError
from ordisco.maths.per_image import mean_per_image_gradient


class Pairs(nn.Module):
    """A small D(x, y) with spectral norm."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            spectral_norm(nn.Conv2d(1, 4, 3, padding=1)), nn.LeakyReLU(0.1, inplace=True), nn.Flatten()
        )
        self.head = spectral_norm(nn.Linear(4 * 16, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.head(self.body(x)).gather(1, y[:, None]).squeeze(1)


def classifier() -> nn.Sequential:
    net = nn.Sequential(
        nn.Conv2d(1, 5, 3, padding=1, bias=False),
        nn.BatchNorm2d(5),
        nn.LeakyReLU(0.1, inplace=True),
        nn.MaxPool2d(2),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(20, 3),
    )
    net(torch.randn(32, 1, 4, 4) * 2 + 1)  # batch norm learns some statistics
    return net


def naive(module: nn.Module, loss_fn, tensors: tuple[Tensor, ...], power: int) -> Tensor:
    """One backward pass an image."""
    module.eval()
    total = torch.zeros(sum(p.numel() for p in module.parameters()))
    for i in range(len(tensors[0])):
        gradients = torch.autograd.grad(loss_fn(module, *(t[i : i + 1] for t in tensors)), list(module.parameters()))
        total += torch.cat([g.flatten() for g in gradients]).abs() ** power
    return total / len(tensors[0])


def squared_pair(D: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return D(x, y).square().sum()


def squared_norm(C: nn.Module, x: Tensor) -> Tensor:
    return C(x).square().sum()


def negative_log_likelihood(C: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(C(x), y)


@pytest.mark.parametrize("chunk", [1, 4, 100])
@pytest.mark.parametrize(
    ("make", "loss_fn", "labels", "power"),
    [
        (Pairs, squared_pair, True, 1),
        (classifier, squared_norm, False, 1),
        (classifier, negative_log_likelihood, True, 2),
    ],
    ids=["Eq. 10", "MAS", "EWC"],
)
def test_equals_a_backward_pass_an_image(make, loss_fn, labels: bool, power: int, chunk: int):
    torch.manual_seed(0)
    module = make()
    x, y = torch.randn(11, 1, 4, 4), torch.randint(0, 3, (11,))
    tensors = (x, y) if labels else (x,)
    expected = naive(module, loss_fn, tensors, power)
    module.train()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    batches = zip(*(t.split(6) for t in tensors), strict=True)
    found = mean_per_image_gradient(module, loss_fn, batches, power=power, chunk=chunk)
    torch.testing.assert_close(found, expected)
    assert all(torch.equal(before[name], tensor) for name, tensor in module.state_dict().items())
    assert all(part.training for part in module.modules())
    assert all(p.grad is None for p in module.parameters())


def test_is_not_the_gradient_of_the_mean():
    module = nn.Linear(1, 1, bias=False)
    x = torch.tensor([[1.0], [-1.0], [3.0], [-3.0]])

    def output(module: nn.Module, x: Tensor) -> Tensor:
        return module(x).sum()

    (of_the_mean,) = torch.autograd.grad(module(x).mean(), module.weight)
    assert of_the_mean.item() == 0
    assert mean_per_image_gradient(module, output, [(x,)], power=1).tolist() == [2.0]
    assert mean_per_image_gradient(module, output, [(x,)], power=2).tolist() == [5.0]


def test_batches_of_unequal_size_weigh_by_image():
    module, x = nn.Linear(1, 1), torch.tensor([[1.0], [2.0], [6.0]])

    def output(module: nn.Module, x: Tensor) -> Tensor:
        return module(x).sum()

    found = mean_per_image_gradient(module, output, [(x[:1],), (x[1:],)], power=1, chunk=2)
    assert found.tolist() == [3.0, 1.0]  # weight, then bias


def test_modes_come_back_after_an_error():
    module = classifier().train()
    module[4].eval()
    with pytest.raises(RuntimeError):
        mean_per_image_gradient(module, squared_norm, [(torch.zeros(2, 7, 4, 4),)], power=1)
    assert [part.training for part in module] == [True, True, True, True, False, True, True]


def test_needs_an_image():
    with pytest.raises(OrdiscoError, match="no images"):
        mean_per_image_gradient(classifier(), squared_norm, [], power=1)
