"""The unlabelled losses: values by hand, gradients to the student only, VAT's direction by linear algebra."""

import math
from typing import get_args, get_type_hints

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ordisco.maths.unlabeled import UNLABELED_LOSSES, UnlabeledLoss, make_unlabeled_loss
from ordisco.maths.unlabeled.align import align_distribution, mean_of, running_sums
from ordisco.maths.unlabeled.fixmatch import FixMatch
from ordisco.maths.unlabeled.mean_teacher import MeanTeacher
from ordisco.maths.unlabeled.pi_model import PiModel
from ordisco.maths.unlabeled.pseudo_label import PseudoLabel
from ordisco.maths.unlabeled.vat import VAT
from ordisco.settings.learner import UnlabeledSettings


class Marked:
    """Augmentation that marks its views: weak adds 1, 2, … in turn, strong adds 100."""

    def __init__(self) -> None:
        self.count = 0

    def weak(self, x: Tensor) -> Tensor:
        self.count += 1
        return x + self.count

    def strong(self, x: Tensor) -> Tensor:
        return x + 100


class Still:
    def weak(self, x: Tensor) -> Tensor:
        return x

    strong = weak


def logits_of(*probabilities: list[float]) -> Tensor:
    return torch.tensor(probabilities, dtype=torch.float64).log().requires_grad_()


def value(loss: UnlabeledLoss, student: tuple[Tensor, ...], teacher: tuple[Tensor, ...] = ()) -> Tensor:
    """The loss of each image with the targets as they are."""
    return loss.loss(student, loss.targets(student, teacher))


# ------------------------------------------------------------------ values


def test_mean_teacher_is_the_squared_distance_of_probabilities():
    student, teacher = logits_of([0.25, 0.75], [0.5, 0.5]), logits_of([0.5, 0.5], [0.5, 0.5])
    torch.testing.assert_close(value(MeanTeacher(), (student,), (teacher,)).tolist(), [0.125, 0.0])


def test_pi_model_compares_two_views_of_the_student():
    a, b = logits_of([0.25, 0.75]), logits_of([0.5, 0.5])
    assert value(PiModel(), (a, b)).item() == pytest.approx(0.125)


def test_pseudo_label_counts_only_confident_images():
    loss = value(PseudoLabel(threshold=0.95), (logits_of([0.97, 0.03], [0.94, 0.06], [0.01, 0.99]),))
    torch.testing.assert_close(loss.tolist(), [-math.log(0.97), 0.0, -math.log(0.99)])


@pytest.mark.parametrize("teacher", [False, True])
def test_fixmatch_teaches_the_strong_view_the_label_of_the_weak_one(teacher: bool):
    strong, weak = logits_of([0.4, 0.6], [0.4, 0.6]), logits_of([0.96, 0.04], [0.6, 0.4])
    loss = FixMatch(teacher=teacher)
    found = value(loss, (strong,), (weak,)) if teacher else value(loss, (strong, weak))
    torch.testing.assert_close(found.tolist(), [-math.log(0.4), 0.0])


def test_vat_is_a_divergence_plus_the_entropy():
    clean, adversarial = logits_of([0.5, 0.5]), logits_of([0.25, 0.75])
    divergence = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert value(VAT(entropy=0.0), (clean, adversarial)).item() == pytest.approx(divergence)
    assert value(VAT(entropy=1.0), (clean, adversarial)).item() == pytest.approx(divergence + math.log(2))


def test_targets_are_the_probabilities_of_who_labels():
    a, b, c = logits_of([0.25, 0.75]), logits_of([0.9, 0.1]), logits_of([0.6, 0.4])
    for loss, student, teacher, expected in (
        (MeanTeacher(), (a,), (c,), [0.6, 0.4]),
        (PseudoLabel(), (a,), (), [0.25, 0.75]),
        (FixMatch(), (a, b), (), [0.9, 0.1]),
        (FixMatch(teacher=True), (a,), (c,), [0.6, 0.4]),
    ):
        targets = loss.targets(student, teacher)
        torch.testing.assert_close(targets[0].tolist(), expected)
        assert not targets.requires_grad
    assert PiModel().targets((a, b), ()) is None
    assert VAT().targets((a, b), ()) is None


def test_a_loss_is_that_of_the_targets_it_is_given():
    student, sure = logits_of([0.25, 0.75]), logits_of([0.98, 0.02])
    aligned = torch.tensor([[0.25, 0.75]], dtype=torch.float64)
    assert MeanTeacher().loss((student,), aligned).item() == pytest.approx(0.0)
    swapped = torch.tensor([[0.02, 0.98]], dtype=torch.float64)
    assert PseudoLabel().loss((sure,), swapped).item() == pytest.approx(-math.log(0.02))
    assert FixMatch().loss((student, sure), swapped).item() == pytest.approx(-math.log(0.75))
    for loss in (MeanTeacher(), PseudoLabel(), FixMatch()):
        with pytest.raises(ValueError, match="needs targets"):
            loss.loss((student, sure), None)


# ------------------------------------------------------------------ gradients


def gradients(loss: Tensor, logits: tuple[Tensor, ...]) -> list[bool]:
    """For each tensor: does the loss have a gradient that is not 0?"""
    found = torch.autograd.grad(loss.sum(), logits, allow_unused=True)
    return [g is not None and bool(g.abs().sum() > 0) for g in found]


def test_gradient_reaches_the_student_and_no_target():
    a, b = logits_of([0.3, 0.7]), logits_of([0.96, 0.04])
    assert gradients(value(MeanTeacher(), (a,), (b,)), (a, b)) == [True, False]
    assert gradients(value(PiModel(), (a, b)), (a, b)) == [True, False]
    assert gradients(value(PseudoLabel(), (b,)), (b,)) == [True]
    assert gradients(value(FixMatch(), (a, b)), (a, b)) == [True, False]
    assert gradients(value(FixMatch(teacher=True), (a,), (b,)), (a, b)) == [True, False]
    assert gradients(value(VAT(entropy=0.0), (a, b)), (a, b)) == [False, True]
    assert gradients(value(VAT(entropy=1.0), (a, b)), (a, b)) == [True, True]  # the entropy is of the clean view


def test_mean_teacher_pulls_the_student_to_the_teacher():
    student, teacher = torch.zeros(1, 3, requires_grad=True), torch.tensor([[2.0, 0.0, -1.0]])
    for _ in range(200):
        loss = value(MeanTeacher(), (student,), (teacher,)).sum()
        (g,) = torch.autograd.grad(loss, student)
        student = (student - 5 * g).detach().requires_grad_()
    torch.testing.assert_close(student.softmax(1), teacher.softmax(1), atol=1e-2, rtol=0)


# ------------------------------------------------------------------ views


def test_views_name_who_sees_what():
    x, net = torch.zeros(2, 1, 4, 4), nn.Sequential(nn.Flatten(), nn.Linear(16, 3))

    def marks(loss: object) -> tuple[list[float], list[float]]:
        views = loss.views(x, Marked(), net)  # type: ignore[attr-defined]
        assert all(view.shape == x.shape for side in views for view in side)
        return [v.mean().item() for v in views.student], [v.mean().item() for v in views.teacher]

    assert marks(MeanTeacher()) == ([1], [2])
    assert marks(MeanTeacher(strong=True)) == ([100], [1])
    assert marks(PiModel()) == ([1, 2], [])
    assert marks(PseudoLabel()) == ([1], [])
    assert marks(FixMatch()) == ([100, 1], [])
    assert marks(FixMatch(teacher=True)) == ([100], [1])


def test_every_name_makes_its_loss():
    allowed = get_args(get_type_hints(UnlabeledSettings)["unlabeled_loss"])
    assert set(allowed) == {*UNLABELED_LOSSES, "none"}
    made = {name: type(make_unlabeled_loss(UnlabeledSettings(unlabeled_loss=name))) for name in allowed}
    assert len(set(made.values())) == len(made)
    assert (made["vat"], made["none"]) == (VAT, type(None))
    assert make_unlabeled_loss(UnlabeledSettings(student_view="strong")) == MeanTeacher(strong=True)
    chosen = UnlabeledSettings(unlabeled_loss="fixmatch", threshold=0.8)
    assert make_unlabeled_loss(chosen) == FixMatch(threshold=0.8)
    assert make_unlabeled_loss(UnlabeledSettings(unlabeled_loss="vat", vat_epsilon=3.0)) == VAT(epsilon=3.0)


# ------------------------------------------------------------------ VAT


def linear_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 4)).double()


def hessians(net: nn.Sequential, x: Tensor) -> list[Tensor]:
    """Of KL(p(x) ‖ p(x + r)) at r = 0 for linear logits W x: Wᵀ (diag p − p pᵀ) W."""
    W = net[1].weight.detach()
    return [W.T @ (torch.diag(p) - torch.outer(p, p)) @ W for p in net(x).detach().softmax(1)]


def test_vat_makes_one_power_iteration():
    net, x = linear_net(), torch.randn(5, 3, 2, 2, dtype=torch.float64)
    torch.manual_seed(7)
    start = torch.randn_like(x).flatten(1)
    torch.manual_seed(7)
    found = VAT(xi=1e-5).direction(x, net).flatten(1)
    for d, r, H in zip(start, found, hessians(net, x), strict=True):
        torch.testing.assert_close(r, H @ d / (H @ d).norm(), atol=1e-4, rtol=0)


def test_vat_converges_to_the_steepest_direction():
    net, x = linear_net(), torch.randn(5, 3, 2, 2, dtype=torch.float64)
    found = VAT(xi=1e-4, iterations=60).direction(x, net).flatten(1)
    for r, H in zip(found, hessians(net, x), strict=True):
        assert abs(torch.dot(r, torch.linalg.eigh(H).eigenvectors[:, -1])).item() == pytest.approx(1, abs=1e-3)


def test_vat_direction_is_the_slope_by_finite_differences():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    x, vat = torch.randn(1, 2, 2, 2, dtype=torch.float64), VAT(xi=0.1)
    torch.manual_seed(3)
    d = torch.randn_like(x)
    d = d / d.norm()
    torch.manual_seed(3)
    found = vat.direction(x, net).flatten()

    def divergence(step: Tensor) -> float:
        p, q = net(x).softmax(1), net(x + 0.1 * step).softmax(1)
        return (p * (p.log() - q.log())).sum().item()

    slope = torch.empty(8, dtype=torch.float64)
    for i in range(8):
        h = torch.zeros(8, dtype=torch.float64)
        h[i] = 1e-4
        h = h.view_as(x)
        slope[i] = divergence(d + h) - divergence(d - h)
    torch.testing.assert_close(found, slope / slope.norm(), atol=1e-5, rtol=0)


def test_vat_step_has_length_epsilon_even_where_the_slope_is_tiny():
    net = linear_net().float()
    net[1].weight.data *= 1e-12
    x = torch.randn(4, 3, 2, 2)
    clean, adversarial = VAT(epsilon=2.5).views(x, Still(), net).student
    torch.testing.assert_close((adversarial - clean).flatten(1).norm(dim=1), torch.full((4,), 2.5))


def test_vat_default_xi_is_not_lost_in_single_precision():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.LeakyReLU(0.1), nn.Flatten(), nn.Linear(4096, 10))
    x = torch.rand(8, 3, 16, 16) * 2 - 1
    start = torch.randn_like(x)
    directions = []
    for dtype in (torch.float32, torch.float64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "randn_like", lambda t: start.to(t.dtype))
            directions.append(VAT().direction(x.to(dtype), net.to(dtype)).double().flatten(1))
    assert (directions[0] * directions[1]).sum(1).min() > 0.8


def noisy_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Flatten(),
        nn.Linear(64, 3),
    )


def test_vat_leaves_no_trace_in_the_network():
    net, x = noisy_net().train(), torch.randn(6, 1, 4, 4)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    VAT(iterations=2).views(x, Still(), net)
    assert all(torch.equal(before[name], tensor) for name, tensor in net.state_dict().items())
    assert all(p.grad is None for p in net.parameters())
    assert all(module.training for module in net.modules())
    assert net[1].track_running_stats
    net(x)
    assert net[1].num_batches_tracked == 1  # and the network still learns its statistics afterwards


def test_vat_works_where_gradients_are_off():
    with torch.no_grad():
        clean, adversarial = VAT().views(torch.randn(2, 1, 4, 4), Still(), noisy_net()).student
    assert not torch.equal(clean, adversarial)
    assert not adversarial.requires_grad


# ------------------------------------------------------------------ distribution alignment


def test_alignment_by_hand():
    p, target, mean = torch.tensor([[0.6, 0.4]]), torch.tensor([0.5, 0.5]), torch.tensor([0.75, 0.25])
    aligned = align_distribution(p, target, mean)  # ∝ (0.6 · 2/3, 0.4 · 2) = (0.4, 0.8)
    torch.testing.assert_close(aligned, torch.tensor([[1 / 3, 2 / 3]]))


def test_alignment_gives_nothing_to_a_class_that_is_not_expected():
    p, target = torch.tensor([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]), torch.tensor([0.0, 0.5, 0.5])
    aligned = align_distribution(p, target, torch.tensor([0.5, 0.25, 0.25]))
    torch.testing.assert_close(aligned, torch.tensor([[0.0, 0.5, 0.5], [0.0, 0.375, 0.625]]))


weights = st.lists(st.floats(0.01, 1), min_size=4, max_size=4)


@settings(deadline=None, max_examples=30)
@given(weights, weights, weights)
def test_alignment_gives_probabilities_and_changes_nothing_where_all_is_as_expected(p, target, mean):
    p, target, mean = (torch.tensor(v) / sum(v) for v in (p, target, mean))
    aligned = align_distribution(p[None], target, mean)
    assert aligned.sum().item() == pytest.approx(1, abs=1e-5)
    torch.testing.assert_close(align_distribution(p[None], mean, mean), p[None])


def test_running_mean_of_predictions_for_each_increment():
    p = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    first = running_sums(None, p, torch.tensor([0, 0, 2]), 3)
    torch.testing.assert_close(mean_of(first), torch.tensor([[0.75, 0.25], [0.0, 0.0], [0.0, 1.0]]))
    second = running_sums(first, torch.tensor([[0.0, 1.0]]), torch.tensor([0]), 3)
    torch.testing.assert_close(second[0], torch.tensor([0.99 * 1.5, 0.99 * 0.5 + 1, 0.99 * 2 + 1]))
    torch.testing.assert_close(mean_of(second)[2], torch.tensor([0.0, 1.0]))  # no new image: the mean stays


def test_each_loss_has_its_published_weight_and_the_settings_overrule_it():
    published = {"mean-teacher": 5.0, "pi-model": 2.0, "pseudo-label": 1.0, "vat": 0.3, "fixmatch": 1.0}
    for name, weight in published.items():
        loss = make_unlabeled_loss(UnlabeledSettings(unlabeled_loss=name))
        assert loss is not None
        assert loss.weight == weight
        other = make_unlabeled_loss(UnlabeledSettings(unlabeled_loss=name, consistency_weight=7.0))
        assert other is not None
        assert other.weight == 7.0
    vat = make_unlabeled_loss(UnlabeledSettings(unlabeled_loss="vat"))
    assert isinstance(vat, VAT)
    assert (vat.epsilon, vat.entropy) == (1.0, 0.0)
    assert VAT.of(UnlabeledSettings(vat_entropy=1.0)).entropy == 1.0


def test_which_targets_are_trusted():
    p = torch.tensor([[0.96, 0.04], [0.6, 0.4]])
    for loss in (PseudoLabel(), FixMatch()):
        assert loss.trusted(p).tolist() == [True, False]
    for loss in (MeanTeacher(), PiModel(), VAT()):
        assert loss.trusted(p) is None
