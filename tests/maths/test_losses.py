"""Eqs. 1–7 against numbers worked out by hand; ln 3 is the logit of 3/4."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ordisco.maths import losses
from ordisco.maths.unlabeled.mean_teacher import MeanTeacher

LN3 = math.log(3)
FORMS = ("logistic", "hinge")


def tensor(*rows: object) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


# ---------------------------------------------------------------------- C


def test_eq_1_and_eq_6_add_their_terms():
    assert losses.classifier_partial(tensor(2.0), tensor(0.5)).item() == 2.5
    assert losses.classifier(tensor(2.5), tensor(4.0)).item() == 6.5


def test_eq_2_is_the_mean_cross_entropy():
    # C(x) = (1/4, 3/4) labelled 1 and (1/2, 1/2) labelled 0
    loss = losses.supervised(tensor([0.0, LN3], [5.0, 5.0]), torch.tensor([1, 0]))
    assert loss.item() == pytest.approx(-(math.log(0.75) + math.log(0.5)) / 2)
    assert loss.item() == pytest.approx(0.49041, abs=1e-5)


def test_eq_3_is_the_squared_distance_of_probabilities_for_each_image():
    student = tensor([0.0, LN3], [1.0, 1.0], [0.0, 100.0]).requires_grad_()
    teacher = tensor([0.5, 0.5], [0.5, 0.5], [1.0, 0.0]).requires_grad_()
    loss = losses.consistency(student, teacher)
    # (1/4 − 1/2)² + (3/4 − 1/2)²;  equal;  the two farthest corners of the simplex
    assert loss.tolist() == pytest.approx([0.125, 0, 2])
    loss.sum().backward()
    assert teacher.grad is None
    assert student.grad[0].abs().min() > 0


def test_eq_3_is_the_mean_teacher():
    torch.manual_seed(0)
    student, teacher = torch.randn(4, 3), torch.randn(4, 3)
    expected = losses.consistency(student, teacher.softmax(1))
    loss = MeanTeacher()
    torch.testing.assert_close(loss.loss((student,), loss.targets((student,), (teacher,))), expected)


def test_eq_7_uses_samples_as_labelled_and_as_unlabelled_data():
    logits, labels = tensor([0.0, LN3], [LN3, 0.0]), torch.tensor([1, 1])
    loss = losses.replay(logits, labels, tensor(0.3, 0.5))
    assert loss.item() == pytest.approx(-(math.log(0.75) + math.log(0.25)) / 2 + 0.4)


# ---------------------------------------------------------------------- D and G


@pytest.mark.parametrize(
    ("form", "d", "real", "fake"),
    [
        ("logistic", LN3, math.log(4 / 3), math.log(4)),
        ("logistic", 0.0, math.log(2), math.log(2)),
        ("logistic", -LN3, math.log(4), math.log(4 / 3)),
        ("hinge", 0.25, 0.75, 1.25),
        ("hinge", 2.0, 0.0, 3.0),
        ("hinge", -2.0, 3.0, 0.0),
    ],
)
def test_the_cost_of_a_logit(form: losses.Adversarial, d: float, real: float, fake: float):
    assert losses.called_real(tensor(d), form).item() == pytest.approx(real)
    assert losses.called_fake(tensor(d), form).item() == pytest.approx(fake)


@settings(max_examples=30, deadline=None)
@given(st.floats(-30, 30))
def test_the_logistic_form_is_that_of_the_paper(d: float):
    probability = torch.sigmoid(tensor(d))
    torch.testing.assert_close(losses.called_real(tensor(d), "logistic"), -probability.log())
    torch.testing.assert_close(
        losses.called_fake(tensor(d), "logistic"), -torch.sigmoid(tensor(-d)).log()
    )  # 1 − D(x, y)


def test_a_pair_picks_the_score_of_its_label():
    assert losses.pair(tensor([1, 2, 3], [4, 5, 6]), torch.tensor([2, 0])).tolist() == [3, 4]


def test_eq_4_logistic_by_hand():
    # D = 3/4 and 1/2 on real pairs, 1/4 on a generated one, 1/2 and 3/4 on two pseudo-labelled ones
    real = losses.real_pairs(tensor(LN3, 0.0), tensor(0.5, 0.5), "logistic")
    assert real.item() == pytest.approx(-(math.log(3 / 4) + math.log(1 / 2)) / 2)
    pseudo = losses.pseudo_pairs_fake(tensor([0.0, 9.0], [9.0, LN3]), tensor([1, 0], [0, 1]), "logistic")
    assert pseudo.tolist() == pytest.approx([-math.log(1 / 2), -math.log(1 / 4)])
    loss = losses.discriminator(real, tensor(-LN3), pseudo, 0.3, "logistic")
    expected = -(math.log(3 / 4) + math.log(1 / 2)) / 2 - 0.3 * math.log(3 / 4) - 0.7 * math.log(1 / 8) / 2
    assert loss.item() == pytest.approx(expected)


def test_eq_4_hinge_by_hand():
    real = losses.real_pairs(tensor(0.5, 3.0), tensor(0.5, 0.5), "hinge")  # (0.5 + 0) / 2
    pseudo = losses.pseudo_pairs_fake(tensor([-0.5, 9.0], [9.0, -4.0]), tensor([1, 0], [0, 1]), "hinge")  # 0.5, 0
    loss = losses.discriminator(real, tensor(0.0, -0.75), pseudo, 0.25, "hinge")  # (1 + 0.25) / 2
    assert loss.item() == pytest.approx(0.25 + 0.25 * 0.625 + 0.75 * 0.25)


def test_eq_4_without_unlabelled_images_has_two_terms():
    loss = losses.discriminator(tensor(0.25), tensor(0.0), None, 0.5, "hinge")
    assert loss.item() == pytest.approx(0.25 + 0.5)


def test_the_third_term_by_argmax_and_by_expectation():
    d, p = tensor([0.5, -0.5, 1.0]), tensor([0.5, 0.3, 0.2])
    hard = losses.one_hot_argmax(p)
    assert hard.tolist() == [[1, 0, 0]]
    assert losses.pseudo_pairs_fake(d, hard, "hinge").item() == pytest.approx(1.5)  # D(x, argmax C(x))
    expectation = 0.5 * 1.5 + 0.3 * 0.5 + 0.2 * 2.0
    assert losses.pseudo_pairs_fake(d, p, "hinge").item() == pytest.approx(expectation)
    # the cost is averaged, not the logit
    assert losses.pseudo_pairs_fake(d, p, "logistic").item() == pytest.approx(
        0.5 * math.log1p(math.exp(0.5)) + 0.3 * math.log1p(math.exp(-0.5)) + 0.2 * math.log1p(math.exp(1.0))
    )


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0.5), (0.75, 0.25 * 0.5 + 0.75 * 2.0)])
def test_a_share_of_the_real_pairs_may_be_pseudo_labelled(share: float, expected: float):
    d = tensor(0.5, 0.5, -2.0, 0.0)  # two labelled pairs, costs 0.5; two pseudo-labelled ones, costs 3 and 1
    weights = losses.pair_weights(2, torch.ones(2), share)
    assert losses.real_pairs(d, weights, "hinge").item() == pytest.approx(expected)
    none = losses.pair_weights(2, torch.zeros(2), share)
    assert losses.real_pairs(d, none, "hinge").item() == pytest.approx(0.5)  # no pseudo-label is trusted
    assert losses.pair_weights(2, torch.zeros(0), 0.0).tolist() == [0.5, 0.5]


def test_only_trusted_pseudo_labels_count():
    # labelled 0.1 each; the trusted one of two pseudo-labels 0.4: shares of 0.6 in all
    assert losses.pair_weights(2, tensor(1.0, 0.0), 0.8).tolist() == pytest.approx([1 / 6, 1 / 6, 2 / 3, 0.0])


def test_balanced_pairs_give_every_class_the_same_weight():
    weights = losses.balanced(tensor(0.1, 0.1, 0.6, 0.2), torch.tensor([0, 2, 2, 2]), 4)  # no pair of classes 1 and 3
    assert weights.tolist() == pytest.approx([0.5, 0.1 / 1.8, 0.6 / 1.8, 0.2 / 1.8])
    assert losses.balanced(tensor(1.0, 0.0), torch.tensor([0, 1]), 2).tolist() == [1.0, 0.0]


def test_a_mismatched_pair_is_a_real_image_with_a_wrong_class():
    d = tensor([5.0, 0.0, -2.0], [1.0, -0.5, 9.0])
    assert losses.mismatched_pairs_fake(d, torch.tensor([0, 2]), "hinge").tolist() == [0.5, 1.25]
    assert losses.mismatched_pairs_fake(tensor([3.0]), torch.tensor([0]), "hinge").tolist() == [0.0]


def test_eq_5_by_hand():
    assert losses.generator(tensor(LN3, 0.0), "logistic").item() == pytest.approx(math.log(4 / 3 * 2) / 2)
    assert losses.generator(tensor(3.0, -1.0, 7.0), "hinge").item() == pytest.approx(-3.0)


@pytest.mark.parametrize("form", FORMS)
def test_signs_d_raises_real_and_lowers_both_kinds_of_fake_and_g_raises_its_own(form: losses.Adversarial):
    real, generated, d_u = (torch.zeros(2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    pseudo = losses.pseudo_pairs_fake(d_u[:, None], torch.ones(2, 1, dtype=torch.float64), form)
    losses.discriminator(losses.real_pairs(real, tensor(0.5, 0.5), form), generated, pseudo, 0.5, form).backward()
    assert (real.grad < 0).all()
    assert (generated.grad > 0).all()
    assert (d_u.grad > 0).all()
    logits = torch.zeros(2, requires_grad=True)
    losses.generator(logits, form).backward()
    assert (logits.grad < 0).all()  # Eq. 5 as printed would push D(G) to 0


# ---------------------------------------------------------------------- ramps


@pytest.mark.parametrize(
    ("progress", "end", "expected"),
    [
        (0.0, 0.5, math.exp(-5)),
        (0.25, 0.5, math.exp(-1.25)),
        (0.4, 0.5, math.exp(-5 * 0.2**2)),
        (0.5, 0.5, 1.0),
        (0.9, 0.5, 1.0),
        (0.0, 0.0, 1.0),
        (0.7, 0.0, 1.0),
    ],
)
def test_ramp(progress: float, end: float, expected: float):
    assert losses.ramp_up(progress, end) == pytest.approx(expected)
