"""Networks: shapes, sizes against arithmetic, growth, spectral norm, flat vectors."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ordisco.nets.classifier import NineConv, WideResNet, make_classifier
from ordisco.nets.count import Size, measure
from ordisco.nets.dcgan import PlainDiscriminator, PlainGenerator
from ordisco.nets.discriminator import Discriminator
from ordisco.nets.flat import Flat
from ordisco.nets.generator import ConditionalBatchNorm, Generator
from ordisco.nets.network import Layout, Network
from ordisco.nets.networks import Networks
from ordisco.nets.spectral import Spectral, SpectralConv2d, SpectralLinear
from ordisco.runs.presets import PRESETS
from ordisco.settings.learner import LearnerSettings
from ordisco.settings.methods import METHODS

CPU = torch.device("cpu")


def networks(settings: LearnerSettings, shape: tuple[int, int, int] = (1, 8, 8), classes: int = 3) -> Networks:
    return Networks(settings, shape, classes, "linear", METHODS["ordisco"].gan, CPU)


@pytest.fixture
def small() -> LearnerSettings:
    return LearnerSettings().replace(c_width=3, g_width=3, d_width=3, z_dim=2, d_tail=1)


# ---------------------------------------------------------------------- shapes


@pytest.mark.parametrize("side", [8, 16, 32, 64])
@pytest.mark.parametrize(("channels", "classes"), [(1, 1), (3, 20)])
def test_shapes(side: int, channels: int, classes: int):
    shape = (channels, side, side)
    x, y = torch.randn(2, *shape), torch.randint(classes, (2,))
    for net, width in (("nine-conv", 2), ("wrn-28", 2)):
        for head in ("linear", "cosine"):
            assert make_classifier(net, shape, classes, width, 0.5, head)(x).shape == (2, classes)
    images = Generator(shape, classes, 2, 5)(torch.randn(2, 5), y)
    assert images.shape == x.shape
    assert images.abs().max() <= 1
    for head in ("pool", "flat"):
        assert Discriminator(shape, classes, 2, 1, head)(x).shape == (2, classes)
    images = PlainGenerator(shape, classes, 2, 5)(torch.randn(2, 5), y)
    assert images.shape == x.shape
    assert images.abs().max() <= 1
    assert PlainDiscriminator(shape, classes, 2)(x).shape == (2, classes)


# ---------------------------------------------------------------------- sizes by arithmetic


def c_by_hand(w: int, c: int, s: int, k: int) -> Size:
    """C: nine convolutions without bias, each with a batch norm, and a linear head.

    At side s: c→w, w→w, w→w. At s/2: w→2w, 2w→2w, 2w→2w. At s/4: 2w→4w, then 1×1 4w→2w and 2w→w.
    """
    full, half, quarter = 9 * c * w + 18 * w**2, (18 + 36 + 36) * w**2, (72 + 8 + 2) * w**2
    norms = 2 * (3 * w + 3 * 2 * w + 4 * w + 2 * w + w)
    parameters = full + half + quarter + norms + w * k + k
    return Size(parameters, s**2 * full + (s // 2) ** 2 * half + (s // 4) ** 2 * quarter + w * k)


def g_by_hand(w: int, z: int, c: int, s: int, k: int) -> Size:
    """G: a linear layer z → 4×4×w, blocks that double the side, a batch norm and a 3×3 convolution w→c.

    A block: two norms with a scale and a shift a class, a 3×3 convolution that doubles (4 products for a pixel of the
    new side), one at the new side, a 1×1 at the old one.
    """
    parameters, multiply_adds, side = z * 16 * w + 16 * w, z * 16 * w, 4
    while side < s:
        parameters += 4 * k * w + 2 * (9 * w**2 + w) + (w**2 + w)
        multiply_adds += (2 * side) ** 2 * (4 + 9) * w**2 + side**2 * w**2
        side *= 2
    return Size(parameters + 2 * w + 9 * w * c + c, multiply_adds + s**2 * 9 * w * c)


def d_by_hand(w: int, tail: int, flat: bool, c: int, s: int, k: int) -> Size:
    """D: blocks that halve the side (8 → 4, 16 → 4, 32 → 8, 64 → 8), `tail` blocks that do not, two linear heads.

    A halving block from c or w channels has a 3×3 convolution at the old side, one that halves (16 products for a pixel
    of the new side) and a 1×1 at the new one.
    """
    last = {8: 4, 16: 4, 32: 8, 64: 8}[s]
    parameters, multiply_adds, side, channels = 0, 0, s, c
    while side > last:
        parameters += (9 * channels * w + w) + (9 * w**2 + w) + (channels * w + w)
        multiply_adds += side**2 * 9 * channels * w + (side // 2) ** 2 * (16 * w**2 + channels * w)
        side, channels = side // 2, w
    parameters += tail * 2 * (9 * w**2 + w)
    multiply_adds += tail * last**2 * 18 * w**2
    f = w * last**2 if flat else w
    return Size(parameters + (f + 1) + f * k, multiply_adds + f * k)  # the heads are added to one


def plain_g_by_hand(w: int, z: int, c: int, s: int, k: int) -> Size:
    """Plain G: a linear layer and a row a class to 4×4, then a conv after each doubling, w channels at side s."""
    side, channels = 4, w * s // 4
    parameters = (z + 1) * 16 * channels + k * 16 * channels + 2 * k * channels
    multiply_adds = z * 16 * channels
    while side < s:
        side, channels = 2 * side, channels // 2
        parameters += 9 * 2 * channels * channels + channels + 2 * k * channels
        multiply_adds += side**2 * 4 * 2 * channels * channels  # 4 products for a pixel of the doubled side
    return Size(parameters + 9 * w * c + c, multiply_adds + s**2 * 9 * w * c)


def plain_d_by_hand(w: int, c: int, s: int, k: int) -> Size:
    """Plain D: 3×3 at side s, then 4×4 with stride 2 down to 4×4, then a score and one for each class."""
    parameters, multiply_adds = 9 * c * w + w, s**2 * 9 * c * w
    side, channels = s, w
    while side > 4:
        side, channels = side // 2, 2 * channels
        parameters += 16 * channels * channels // 2 + channels
        multiply_adds += side**2 * 16 * channels * channels // 2
    f = 16 * channels
    return Size(parameters + (f + 1) + f * k, multiply_adds + f * k)


def measured(settings: LearnerSettings, shape: tuple[int, int, int], classes: int) -> tuple[Size, Size, Size]:
    nets, z = networks(settings, shape, classes), settings.gan.z_dim
    assert nets.gan is not None
    image = torch.zeros(1, *shape)
    return (
        measure(nets.C.module, image),
        measure(nets.gan.G.module, torch.zeros(1, z), torch.zeros(1, dtype=torch.int64)),
        measure(nets.gan.D.module, image),
    )


@pytest.mark.parametrize(
    ("name", "channels", "side", "classes"),
    [("demo", 1, 8, 10), ("small", 3, 16, 10), ("paper", 3, 32, 10), ("demo", 3, 64, 4)],
)
def test_sizes_of_the_presets_by_hand(name: str, channels: int, side: int, classes: int):
    c, g = PRESETS[name].classifier, PRESETS[name].gan
    if g.gan_net == "dcgan":
        assert measured(PRESETS[name], (channels, side, side), classes)[1:] == (
            plain_g_by_hand(g.g_width, g.z_dim, channels, side, classes),
            plain_d_by_hand(g.d_width, channels, side, classes),
        )
        return
    assert measured(PRESETS[name], (channels, side, side), classes) == (
        c_by_hand(c.width, channels, side, classes),
        g_by_hand(g.g_width, g.z_dim, channels, side, classes),
        d_by_hand(g.d_width, g.d_tail, g.d_head == "flat", channels, side, classes),
    )


def test_sizes_at_the_papers_width_in_numbers():
    # C: 27·128 + 190·128² + 32·128 + 1,290;  1,024·(27·128 + 18·128²) + 256·90·128² + 64·82·128² + 1,280
    assert c_by_hand(128, 3, 32, 10) == Size(3_121_802, 769_000_704)
    # G: 257·4,096 + 3·(19·256² + 43·256) + 512 + 6,915;  256·4,096 + 1,344·13·256² + 336·256² + 1,024·27·256
    assert g_by_hand(256, 256, 3, 32, 10) == Size(4_828_675, 1_175_191_552)
    # D: (27 + 3 + 3)·256 + 9·256² + (19·256² + 3·256) + 2·(18·256² + 2·256) + 2,817
    #    1,024·27·256 + 256·(16·256² + 3·256) + 256·9·256² + 64·(16 + 1)·256² + 2·64·18·256² + 2,560
    assert d_by_hand(256, 2, False, 3, 32, 10) == Size(4_207_361, 649_005_568)


def test_wrn_28_2_has_the_published_number_of_parameters():
    def group(channels: int, out: int) -> int:
        first = 2 * channels + 9 * channels * out + 2 * out + 9 * out**2 + channels * out  # with its 1×1 shortcut
        return first + 3 * (2 * 2 * out + 2 * 9 * out**2)

    by_hand = 27 * 16 + group(16, 32) + group(32, 64) + group(64, 128) + 2 * 128 + (128 * 10 + 10)
    assert by_hand == 1_467_610  # "1.5M": Oliver et al. 2018, Sohn et al. 2020
    assert measure(WideResNet((3, 32, 32), 10), torch.zeros(1, 3, 32, 32)).parameters == by_hand


def test_measuring_leaves_the_mode_and_the_statistics():
    C = NineConv((1, 8, 8), 3, 2).train()
    before = {name: value.clone() for name, value in C.state_dict().items()}
    measure(C, torch.randn(1, 1, 8, 8))
    assert C.training
    assert all(torch.equal(value, before[name]) for name, value in C.state_dict().items())


# ---------------------------------------------------------------------- classes that come later


@pytest.mark.parametrize("head", ["linear", "cosine"])
@pytest.mark.parametrize("net", ["nine-conv", "wrn-28"])
def test_c_grows_and_old_logits_stay(net: str, head: str):
    C = make_classifier(net, (1, 8, 8), 3, 4, 0.5, head).eval()
    x = torch.randn(5, 1, 8, 8)
    before, rows = C(x), C.head.weight.detach().clone()
    C.grow(6)
    assert torch.equal(C.head.weight[:3], rows)
    torch.testing.assert_close(C(x)[:, :3], before)
    assert C(x).shape == (5, 6)
    assert C.head.weight[3:].abs().min() > 0


@pytest.mark.parametrize("kind", [Generator, PlainGenerator])
def test_g_grows_and_images_of_old_classes_stay(kind: type[Generator | PlainGenerator]):
    G = kind((3, 16, 16), 2, 3, 4)
    G(torch.randn(9, 4), torch.randint(2, (9,)))  # batch norm learns some statistics
    nn.init.normal_(next(m.scale for m in G.modules() if isinstance(m, ConditionalBatchNorm)))
    z, y = torch.randn(6, 4), torch.tensor([0, 1, 1, 0, 0, 1])
    before = G.eval()(z, y)
    G.grow(5)
    assert torch.equal(G(z, y), before)
    new = G(z, torch.full_like(y, 4))
    assert new.shape == before.shape
    assert (new - before).abs().max() > 1e-3


@pytest.mark.parametrize("head", ["pool", "flat", "dcgan"])
def test_d_grows_and_old_scores_change_by_the_spectral_norm_alone(head: str, monkeypatch: pytest.MonkeyPatch):
    torch.manual_seed(0)
    D = PlainDiscriminator((1, 8, 8), 3, 4) if head == "dcgan" else Discriminator((1, 8, 8), 3, 4, 1, head)
    x, rows = torch.randn(5, 1, 8, 8), D.classes.weight.detach().clone()
    phi: list[Tensor] = []
    monkeypatch.setattr(D, "judged", lambda features: phi.append(features) or type(D).judged(D, features))
    before = D(x)
    assert D.grow(7) is None
    after = D(x)
    assert after.shape == (5, 7)
    assert torch.equal(D.classes.weight[:3], rows)
    torch.testing.assert_close(phi[0], phi[1])
    realness = D.realness(phi[0])

    def sigma() -> Tensor:
        return torch.dot(D.classes.u, D.classes.weight.flatten(1) @ D.classes.v)

    # ⟨e_y, φ⟩ without its division by σ is what it was
    torch.testing.assert_close((after - realness)[:, :3] * sigma(), phi[0] @ rows.t())
    assert not torch.allclose(before, after[:, :3])  # σ of a larger matrix is larger
    assert sigma() > torch.linalg.matrix_norm(rows, 2)


def test_networks_grow_together_and_new_classes_begin_alike_in_teacher_and_student(small: LearnerSettings):
    nets = networks(small, classes=2)
    nets.teacher.flat.theta.mul_(0.5)  # a teacher that differs from its student
    before = {name: network.flat.theta.clone() for name, network in nets.named()}
    layouts = nets.grow(4)
    assert nets.capacity == 4
    for name, network in nets.named():
        torch.testing.assert_close(
            network.flat.theta * (layouts[name].relay(before[name]) != 0), layouts[name].relay(before[name])
        )
    C, teacher = nets.C.module.head, nets.teacher.module.head
    assert torch.equal(C.weight[2:], teacher.weight[2:])
    assert torch.equal(C.bias[2:], teacher.bias[2:])
    assert not torch.equal(C.weight[:2], teacher.weight[:2])
    assert not any(p.requires_grad for p in nets.teacher.module.parameters())
    assert all(p.requires_grad for p in nets.C.module.parameters())


@pytest.mark.parametrize("gan_net", ["residual", "dcgan"])
def test_new_classes_begin_alike_in_g_and_its_moving_average(small: LearnerSettings, gan_net: str):
    nets = networks(small.replace(g_ema=0.9, gan_net=gan_net, g_width=4), classes=2)
    nets.gan.G_mean.flat.theta.mul_(0.5)
    before = {name: network.flat.theta.clone() for name, network in nets.named()}
    layouts = nets.grow(4)  # as many as channels: no row of a convolution may be taken for one of a class
    new = layouts["G"].relay(torch.ones_like(before["G"])) == 0
    G, average = nets.gan.G.flat.theta, nets.gan.G_mean.flat.theta
    assert torch.equal(G[new], average[new])
    assert torch.equal(average[~new], before["G_mean"])
    assert not any(p.requires_grad for p in nets.gan.G_mean.module.parameters())


def test_relay_of_a_flat_vector_by_hand():
    layout = Layout(
        [torch.Size([2, 2]), torch.Size([1]), torch.Size([2])], [torch.Size([3, 2]), torch.Size([1]), torch.Size([3])]
    )
    assert layout.relay(torch.arange(1.0, 8.0)).tolist() == [1, 2, 3, 4, 0, 0, 5, 6, 7, 0]
    for wrong in (torch.zeros(6), torch.zeros(10)):  # of another network, or grown already
        with pytest.raises(RuntimeError):
            layout.relay(wrong)


# ---------------------------------------------------------------------- spectral norm


@pytest.mark.parametrize("layer", [SpectralConv2d(3, 5, 3), SpectralLinear(7, 4)])
def test_spectral_norm_is_one_after_many_iterations(layer: Spectral):
    nn.init.normal_(layer.weight, std=3.0)
    for _ in range(500):
        layer.power_iteration()
    sigma = torch.linalg.matrix_norm(layer.weight.flatten(1), 2)
    assert sigma > 3
    torch.testing.assert_close(layer.normalized(), layer.weight / sigma)
    torch.testing.assert_close(torch.linalg.matrix_norm(layer.normalized().flatten(1), 2), torch.tensor(1.0))


def test_the_gradient_of_the_normalised_weight_goes_through_sigma():
    layer = SpectralLinear(3, 4).double()
    for _ in range(500):
        layer.power_iteration()
    direction = torch.randn(4, 3, dtype=torch.float64)
    (found,) = torch.autograd.grad((layer.normalized() * direction).sum(), layer.weight)
    exact = layer.weight / torch.linalg.matrix_norm(layer.weight, 2)
    (expected,) = torch.autograd.grad((exact * direction).sum(), layer.weight)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("head", ["pool", "flat"])
def test_every_layer_of_d_has_spectral_norm(head: str):
    D = Discriminator((3, 32, 32), 4, 3, 2, head)
    spectral = [module for module in D.modules() if isinstance(module, Spectral)]
    assert len(spectral) == 3 + 3 + 2 + 2 + 2  # two blocks with a shortcut, two without, the two heads
    assert {id(p) for p in D.parameters() if p.ndim > 1} == {id(module.weight) for module in spectral}
    for _ in range(150):
        D.power_iteration()
    for module in spectral:
        assert torch.linalg.matrix_norm(module.normalized().flatten(1), 2).item() == pytest.approx(1, abs=1e-3)


def test_every_layer_of_the_plain_d_has_spectral_norm():
    D = PlainDiscriminator((1, 16, 16), 4, 3)
    spectral = [module for module in D.modules() if isinstance(module, Spectral)]
    assert len(spectral) == 3 + 2
    assert {id(p) for p in D.parameters() if p.ndim > 1} == {id(module.weight) for module in spectral}
    before = D.classes.u.clone()
    D.classes.weight.data.copy_(torch.randn_like(D.classes.weight))
    D.power_iteration()
    assert not torch.equal(D.classes.u, before)


def test_the_class_reaches_the_plain_g_before_its_first_norm():
    G = PlainGenerator((1, 8, 8), 2, 2, 3).eval()
    z = torch.randn(1, 3)
    one, other = (G(z, torch.tensor([y])) for y in (0, 1))
    assert not torch.allclose(one, other)  # scales and shifts are still those of a plain batch norm
    G.classes.data[1] = G.classes.data[0]
    assert torch.equal(G(z, torch.tensor([1])), G(z, torch.tensor([0])))


def test_a_call_of_d_has_no_side_effect():
    D = Discriminator((1, 8, 8), 3, 4, 1).train()
    before = {name: value.clone() for name, value in D.state_dict().items()}
    D(torch.randn(4, 1, 8, 8)).sum().backward()
    assert all(torch.equal(value, before[name]) for name, value in D.state_dict().items())
    D.power_iteration()
    assert not torch.equal(D.blocks[0].conv1.u, before["blocks.0.conv1.u"])


def test_d_scores_each_pair_by_projection():
    D = Discriminator((1, 8, 8), 3, 4, 0)
    x = torch.randn(2, 1, 8, 8)
    h = F.relu(D.blocks(x)).sum(dim=(2, 3))
    one = F.linear(h, D.realness.normalized(), D.realness.bias)
    for y in range(3):
        torch.testing.assert_close(D(x)[:, y], one[:, 0] + h @ D.classes.normalized()[y])


# ---------------------------------------------------------------------- flat vectors


def norm_net() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(2 * 4, 3))


def test_flat_views_share_the_memory_of_parameters_and_buffers():
    module = norm_net()
    before = torch.cat([p.detach().flatten() for p in module.parameters()])
    flat = Flat(module)
    assert torch.equal(flat.theta, before)
    flat.theta.copy_(torch.arange(len(before)))
    assert module[0].weight.flatten().tolist() == list(range(18))
    with torch.no_grad():
        module[3].bias.fill_(-1)
    assert flat.theta[-3:].tolist() == [-1, -1, -1]
    assert flat.buffers.tolist() == [0, 0, 1, 1]  # running mean and variance; the count is an integer
    module.train()(torch.randn(4, 1, 4, 4) + 1)
    assert torch.equal(flat.buffers, torch.cat([module[1].running_mean, module[1].running_var]))
    assert flat.buffers[0] != 0
    assert module[1].num_batches_tracked == 1


def test_gradients_land_in_the_flat_vector_and_add_up():
    module = norm_net()
    flat, x = Flat(module), torch.randn(4, 1, 4, 4)
    expected = torch.autograd.grad(module(x).square().sum(), list(module.parameters()))
    for times in (1, 2):
        module(x).square().sum().backward()
        torch.testing.assert_close(flat.grad, times * torch.cat([g.flatten() for g in expected]))
    assert all(
        p.grad is not None and p.grad.untyped_storage().data_ptr() == flat.grad.untyped_storage().data_ptr()
        for p in module.parameters()
    )
    flat.grad.zero_()
    assert all(not p.grad.any() for p in module.parameters())


def test_the_moving_average_takes_parameters_and_leaves_batch_norm_statistics():
    teacher, student = Flat(norm_net()), Flat(norm_net())
    teacher.theta.fill_(1.0)
    student.theta.fill_(3.0)
    teacher.buffers.copy_(torch.tensor([0.0, 1.0, 2.0, 4.0]))
    student.buffers.copy_(torch.tensor([10.0, 1.0, 4.0, 0.0]))
    teacher.average(student, 0.75)
    assert teacher.theta.unique().tolist() == [1.5]  # 0.75·1 + 0.25·3
    assert teacher.buffers.tolist() == [0.0, 1.0, 2.0, 4.0]  # those of the student belong to other weights
    assert student.theta.unique().tolist() == [3.0]
    teacher.average(student, 0.0)
    assert torch.equal(teacher.theta, student.theta)


def test_flat_state_comes_back():
    first, second = Flat(norm_net()), Flat(norm_net())
    first.buffers.add_(7)
    second.load("C", {name: tensor.clone() for name, tensor in first.state("C").items()})
    assert torch.equal(second.theta, first.theta)
    assert second.module[1].running_mean.tolist() == [7, 7]


def test_adam_on_the_flat_vector_is_adam_on_the_parameters():
    torch.manual_seed(0)
    plain, network = nn.Linear(3, 2), Network(nn.Linear(3, 2), CPU)
    network.module.load_state_dict(plain.state_dict())
    network.start_optimizer(0.1, (0.5, 0.9))
    adam, x = torch.optim.Adam(plain.parameters(), 0.1, (0.5, 0.9)), torch.randn(5, 3)
    for _ in range(3):
        adam.zero_grad()
        for module in (plain, network.module):
            module(x).square().sum().backward()
        adam.step()
        network.step()
        assert not network.flat.grad.any()
    torch.testing.assert_close(network.flat.theta, torch.cat([p.detach().flatten() for p in plain.parameters()]))


def test_a_loaded_network_goes_on_as_the_saved_one_and_shares_nothing_with_it():
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    first, second = Network(nn.Linear(3, 2), CPU), Network(nn.Linear(3, 2), CPU)
    first.start_optimizer(0.1, (0.5, 0.9))
    second.start_optimizer(0.1, (0.5, 0.9))

    def step(network: Network) -> Tensor:
        network.module(x).square().sum().backward()
        network.step()
        return network.flat.theta.clone()

    step(first)
    second.load("C", first.state("C"))
    ahead = [step(first), step(first)]
    assert [torch.equal(step(second), theta) for theta in ahead] == [True, True]


def test_glorot_of_g_has_the_gain_of_sngan():
    G = Generator((1, 8, 8), 2, 64, 4)
    limit = math.sqrt(2) * math.sqrt(6 / (64 * 9 + 64 * 9))
    assert G.blocks[0].conv1.weight.abs().max().item() == pytest.approx(limit, rel=1e-3)
    assert G.blocks[0].shortcut.weight.abs().max().item() == pytest.approx(math.sqrt(6 / 128), rel=1e-2)
