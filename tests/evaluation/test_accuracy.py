"""Right and wrong counted by hand, with a learner that answers what it is told to."""

from types import SimpleNamespace

import pytest
import torch

from ordisco.data.dataset import Split
from ordisco.errors import OrdiscoError
from ordisco.evaluation.accuracy import (
    Evaluation,
    PseudoLabels,
    assess,
    evaluate,
    generated_accuracy,
)
from ordisco.maths.unlabeled.fixmatch import FixMatch
from ordisco.maths.unlabeled.mean_teacher import MeanTeacher


class Stub:
    """Predicts the value of an image's first pixel; its generator draws images of the label plus `shift`."""

    def __init__(self, classes=(0, 1, 2), generator=True, shift=0, loss=None):
        self.classes = list(classes)
        self.setup = SimpleNamespace(unlabeled_loss=loss)
        self.shift = shift
        self.has_generator = generator
        self.asked = []

    def predict(self, images):
        return images[:, 0, 0, 0].long()

    def predict_proba(self, images):
        """Sure of its answer by its second pixel, in percent."""
        sure = images[:, 0, 0, 1:2] / 100
        rows = torch.nn.functional.one_hot(self.predict(images), len(self.classes)) * sure
        return rows + (1 - sure) / len(self.classes)

    def sample(self, labels, seed=0):
        self.asked.append((labels.tolist(), seed))
        return images_of((labels + self.shift) % 3)


def images_of(labels):
    return torch.as_tensor(labels).to(torch.uint8)[:, None, None, None].expand(-1, 1, 2, 2)


TRUTH = [0, 0, 0, 1, 1, 3]
GUESS = [0, 1, 0, 1, 3, 1]
TEST = Split(images_of(GUESS), torch.tensor(TRUTH))


def test_confusion_accuracy_and_classes_by_hand():
    result = assess(Stub(), TEST, 4)
    assert result.confusion.tolist() == [[2, 1, 0, 0], [0, 1, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]]
    assert result.accuracy == 3 / 6
    assert result.per_class == {0: 2 / 3, 1: 1 / 2, 3: 0.0}  # class 2 has no test image


def test_the_mean_over_images_is_not_the_mean_over_classes():
    result = Evaluation(torch.tensor([[9, 0], [1, 0]]))
    assert result.accuracy == 0.9
    assert list(result.per_class.values()) == [1.0, 0.0]


def test_accuracy_is_exact_beyond_what_float32_counts():
    right = 2**24 + 1
    assert Evaluation(torch.tensor([[right, 0], [0, 0]])).accuracy == 1.0
    assert Evaluation(torch.tensor([[right, 2], [0, 0]])).accuracy == right / (right + 2)


@pytest.mark.parametrize("classes", [(), (0, 1), (5, 2)])
def test_evaluate_makes_room_for_every_label_it_meets(classes):
    assert evaluate(Stub(classes=(*classes, 3)), TEST) == 0.5


def test_no_test_images_are_one_line():
    with pytest.raises(OrdiscoError, match="no test images"):
        assess(Stub(), Split(images_of([]), torch.tensor([], dtype=torch.int64)), 3)


def test_pseudo_labels_count_where_the_truth_is_known():
    images = images_of([0, 1, 2, 2]).clone()
    images[:, 0, 0, 1] = 100
    assert PseudoLabels.of(Stub(), images, torch.tensor([0, 2, -1, 2])) == PseudoLabels(2 / 3)
    assert PseudoLabels.of(Stub(), images, torch.tensor([-1, -1, -1, -1])) == PseudoLabels()
    assert PseudoLabels.of(Stub(), images[:0], torch.tensor([], dtype=torch.int64)) == PseudoLabels()


def test_trusted_pseudo_labels_are_those_that_the_loss_believes():
    images, truth = images_of([0, 1, 2, 2]).clone(), torch.tensor([0, 2, 2, 1])
    images[:, 0, 0, 1] = torch.tensor([100, 20, 100, 100], dtype=torch.uint8)  # percent
    found = PseudoLabels.of(Stub(loss=FixMatch()), images, truth)
    assert found == PseudoLabels(2 / 4, 3 / 4, 2 / 3)
    images[:, 0, 0, 1] = 20
    assert PseudoLabels.of(Stub(loss=FixMatch()), images, truth) == PseudoLabels(2 / 4, 0.0, None)
    assert PseudoLabels.of(Stub(loss=MeanTeacher()), images, truth) == PseudoLabels(2 / 4)  # it believes all


def test_a_judge_recognises_what_was_drawn_for_a_label():
    learner = Stub(classes=(2, 0))
    assert generated_accuracy(learner, Stub(), count=5, seed=7) == 1.0
    assert learner.asked == [([2, 0, 2, 0, 2], 7)]  # the classes in turn
    assert generated_accuracy(Stub(shift=1), Stub()) == 0.0
    assert generated_accuracy(Stub(generator=False), Stub()) is None
