"""A convolution joined with the change of size before or after it is the two of them, and so are its gradients."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ordisco.nets.layout import channels_last
from ordisco.nets.resample import conv_then_halve, double_then_conv

Joined = Callable[[Tensor, Tensor, Tensor], Tensor]


def halved_after(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.avg_pool2d(F.conv2d(x, weight, bias, padding=1), 2)


def doubled_before(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.conv2d(F.interpolate(x, scale_factor=2.0), weight, bias, padding=1)


@pytest.mark.parametrize(("joined", "apart"), [(conv_then_halve, halved_after), (double_then_conv, doubled_before)])
def test_one_convolution_equals_the_two_operations_in_value_and_gradients(joined: Joined, apart: Joined):
    torch.manual_seed(0)
    inputs = [
        channels_last(torch.randn(2, 3, 6, 4, dtype=torch.float64)).requires_grad_(),
        torch.randn(5, 3, 3, 3, dtype=torch.float64, requires_grad=True),
        torch.randn(5, dtype=torch.float64, requires_grad=True),
    ]
    one, two = joined(*inputs), apart(*inputs)
    torch.testing.assert_close(one, two)
    weights = torch.randn_like(two)
    for mine, theirs in zip(
        torch.autograd.grad((one * weights).sum(), inputs),
        torch.autograd.grad((two * weights).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)
