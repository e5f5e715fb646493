"""Settings: names, ranges, help texts, the way to a file and back, presets."""

import dataclasses
import json

import pytest

from ordisco.errors import UsageError
from ordisco.runs.config import RunConfig
from ordisco.runs.presets import PRESET_IMAGES, PRESETS, preset, preset_learner, preset_stream, preset_threads
from ordisco.settings.fields import choices_of
from ordisco.settings.learner import GROUPS, LearnerSettings
from ordisco.settings.methods import method
from ordisco.settings.steps import steps_of
from ordisco.streams.catalogue import STREAMS

FIELDS = [(group, field) for group in GROUPS for field in dataclasses.fields(group)]


def test_replace_finds_the_group_and_leaves_the_rest():
    old = LearnerSettings()
    new = old.replace(steps=5, alpha=0.25, umb_size=7)
    assert (new.step.steps, new.gan.alpha, new.memory.umb_size) == (5, 0.25, 7)
    assert new.replace(steps=old.step.steps, alpha=old.gan.alpha, umb_size=None) == old
    assert old.step.steps == 7_000


def test_replace_refuses_an_unknown_name_and_tells_the_known_ones():
    with pytest.raises(UsageError, match=r"unknown setting 'c_lrr'; known: .*\bc_lr\b"):
        LearnerSettings().replace(c_lrr=0.1)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("steps", 0, "from 1 to 1000000000"),
        ("steps", 2.5, "int"),
        ("steps", True, "int"),
        ("c_width", -3, "from 1 to 4096"),
        ("dropout", 0.96, "from 0.0 to 0.95"),
        ("c_lr", float("nan"), "from 0.0 to 1000000.0"),
        ("c_lr", "fast", "float"),
        ("ema", 1.1, "from 0.0 to 1.0"),
        ("alpha", -0.1, "from 0.0 to 1.0"),
        ("pseudo_real", 1.0, "from 0.0 to 0.99"),
        ("unlabeled_loss", "mixmatch", "mean-teacher, pi-model, .*, none"),
        ("adversarial", "wasserstein", "logistic, hinge"),
        ("third_term", "sum", "argmax, expectation"),
        ("umb_size", 0, "from 1 to 100000000"),
        ("d_steps", None, "int"),
    ],
)
def test_values_out_of_range_are_refused_by_name(name: str, value: object, allowed: str):
    with pytest.raises(UsageError, match=rf"^{name} = .* is not allowed: .*{allowed}"):
        LearnerSettings().replace(**{name: value})


def test_an_optional_value_may_be_none_and_an_int_may_stand_for_a_float():
    settings = LearnerSettings().replace(c_penalty=None, umb_size=None, c_lr=1)
    assert settings.memory.c_penalty is None
    assert isinstance(settings.classifier.c_lr, float)


@pytest.mark.parametrize("name", PRESETS)
def test_settings_come_back_from_a_file(name: str):
    settings = PRESETS[name].replace(umb_size=12, c_penalty=3.5, unlabeled_loss="vat")
    plain = json.loads(json.dumps(settings.to_dict()))
    assert LearnerSettings.from_dict(plain) == settings
    without_none = {
        group: {key: value for key, value in values.items() if value is not None}
        for group, values in PRESETS[name].to_dict().items()
    }
    assert LearnerSettings.from_dict(without_none) == PRESETS[name]  # TOML has no null


def test_a_file_with_an_unknown_setting_is_refused():
    with pytest.raises(UsageError, match="unknown setting 'momentum'"):
        LearnerSettings.from_dict({"classifier": {"momentum": 0.9}})


@pytest.mark.parametrize(("group", "field"), FIELDS, ids=[field.name for _, field in FIELDS])
def test_every_field_has_a_help_text_and_a_range(group: type, field: dataclasses.Field):
    assert len(field.metadata["help"]) > 10
    bounded = field.metadata["low"] is not None and field.metadata["high"] is not None
    assert bounded or choices_of(group, field.name) or isinstance(field.default, bool)


def test_groups_are_those_of_the_learner_and_share_no_name():
    assert (
        tuple(type(getattr(LearnerSettings(), field.name)) for field in dataclasses.fields(LearnerSettings)) == GROUPS
    )
    names = [field.name for _, field in FIELDS]
    assert len(names) == len(set(names))
    assert all(group.__doc__ and not group.__doc__.startswith(group.__name__) for group in GROUPS)


def test_the_paper_preset_has_the_papers_values():
    paper = preset("paper")
    assert paper == LearnerSettings().replace(epochs=500.0, joint_steps=200_000)
    assert (paper.gan.alpha, paper.gan.d_penalty) == (0.5, 0.001)
    assert (paper.gan.third_term, paper.gan.pseudo_real) == ("argmax", 0.0)  # Eq. 4 as printed
    assert (paper.unlabeled.unlabeled_loss, paper.unlabeled.align) == ("mean-teacher", "none")
    assert paper.replay.replay_weight == 1.0  # Eq. 6
    assert (paper.step.batch_labeled, paper.step.batch_unlabeled) == (50, 50)  # as Oliver et al.
    assert (paper.classifier.width, paper.gan.g_width, paper.gan.d_width, paper.gan.z_dim) == (128, 256, 256, 256)


def test_the_paper_preset_has_none_of_the_additions():
    gan, replay = preset("paper").gan, preset("paper").replay
    assert (gan.gan_net, gan.mismatched, gan.d_balance, gan.pseudo_threshold) == ("residual", 0.0, False, 0.0)
    assert (gan.d_colour, gan.lecam, gan.gan_every) == (0.0, 0.0, 1)
    assert (gan.d_translate, gan.g_ema, replay.replay_new, replay.replay_unlabeled) == (0, 0.0, 0.0, 1.0)


def test_the_small_preset_changes_streams_of_real_images_only():
    digits, svhn, cifar = STREAMS["digits-1"], STREAMS["svhn-1"], STREAMS["cifar10-5"]
    assert preset_stream("small", digits) == digits
    assert preset_stream("paper", svhn) == svhn
    small = dataclasses.replace(svhn, size=16, max_images=10_000, contrast=True, grey=True)
    assert preset_stream("small", svhn) == small
    assert not preset_stream("small", cifar).grey  # colour tells a frog from a deer
    assert not small.even_classes  # a part of the images as they come: nobody knows their classes


def test_increments_of_new_instance_share_the_steps_of_the_small_preset():
    svhn, tasks = STREAMS["svhn-1"], STREAMS["svhn-1-new-class"]
    assert preset_learner("small", tasks) == preset("small")
    assert preset_learner("small", svhn) == preset("small").replace(steps=50)  # 30 × 50 are the 5 × 300 of New Class
    assert preset_learner("small", dataclasses.replace(svhn, increments=32_000)).step.steps == 1
    assert preset_learner("paper", svhn) == preset("paper")


def test_the_preset_colour_keeps_size_and_colours():
    svhn = STREAMS["svhn-1-new-class"]
    stream = preset_stream("colour", svhn)
    assert (stream.size, stream.grey, stream.max_images, stream.contrast) == (32, False, 10_000, True)
    learner = RunConfig.resolve("svhn-1-new-class", preset="colour").learner
    assert learner == preset("colour").replace(
        strong_colours="any"
    )  # of a digit colour tells nothing, of a frog it does
    frogs = preset_learner("colour", STREAMS["cifar10-5-new-class"])
    assert (frogs.unlabeled.strong_colours, frogs.classifier.labeled_view) == ("near", "strong")
    assert frogs.gan.kept_precision == "16"
    assert (frogs.step.batch_labeled, frogs.step.batch_unlabeled) == (32, 32)  # new classes are few of the labelled
    assert preset_learner("colour", STREAMS["svhn-1"]).step.steps == 5 * 600 // 30
    assert preset_threads("colour") == 1
    assert PRESET_IMAGES["colour"] == (3, 32, 32)


def test_the_preset_quick_is_small_with_narrow_networks_that_keep_up():
    for name in ("svhn-1-new-class", "svhn-1", "cifar10-5"):
        quick, small = (RunConfig.resolve(name, preset=preset) for preset in ("quick", "small"))
        assert quick.stream == small.stream
        assert quick.learner == small.learner.replace(c_width=16, g_width=16, d_width=16, c_lr=0.004, ema=0.97)
        assert quick.machine.threads == 1


def test_epochs_of_the_paper_preset_are_the_steps_that_the_audit_counts():
    paper, ordisco = preset("paper"), method("ordisco")
    for images, steps in ((2_442, 12_210), (14_651, 73_255), (500, 2_500)):  # SVHN New Instance, New Class; Tiny
        assert steps_of(ordisco, paper, 4, images) == steps
    assert steps_of(method("jt"), paper, 4, 2_442) == 200_000
    assert RunConfig.resolve("svhn-1", preset="paper", steps=3).learner.step.epochs is None  # steps were asked for


def test_the_variant_triple_gan_is_its_code():
    svhn, cifar = (preset_learner("triple-gan", STREAMS[name]) for name in ("svhn-1", "cifar10-5"))
    assert (svhn.step.batch_labeled, svhn.step.batch_unlabeled) == (1, 99)
    assert (cifar.step.batch_labeled, cifar.step.batch_unlabeled) == (10, 90)
    for learner in (svhn, cifar):
        assert (learner.gan.pseudo_real, learner.gan.third_term) == (0.9, "expectation")
        assert (learner.gan.adversarial, learner.gan.d_steps) == ("hinge", 5)
        assert (learner.gan.pseudo_real_start, learner.replay.replay_weight) == (0.0, 3.0)


def test_a_loss_or_network_that_is_not_the_presets_has_its_own_defaults():
    small = RunConfig.resolve("svhn-1-new-class").learner
    assert (small.unlabeled.threshold, small.unlabeled.labeller) == (0.8, "teacher")
    other = RunConfig.resolve("svhn-1-new-class", unlabeled_loss="pseudo-label").learner
    assert (other.unlabeled.threshold, other.unlabeled.consistency_weight) == (0.95, None)
    given = RunConfig.resolve("svhn-1-new-class", unlabeled_loss="vat", consistency_weight=2.0).learner
    assert given.unlabeled.consistency_weight == 2.0
    same = RunConfig.resolve("svhn-1-new-class", unlabeled_loss="fixmatch").learner
    assert same == small
    wide = RunConfig.resolve("svhn-1-new-class", c_net="wrn-28").learner.classifier
    assert (wide.width, wide.dropped) == (32, 0.0)
    assert (small.classifier.width, small.classifier.dropped) == (24, 0.2)
    assert (LearnerSettings().classifier.width, LearnerSettings().classifier.dropped) == (128, 0.5)


def test_vats_step_is_the_published_one_of_the_data_set():
    for stream, epsilon in (("svhn-1", 1.0), ("cifar10-5", 6.0)):
        for name in ("small", "paper"):
            assert RunConfig.resolve(stream, preset=name, unlabeled_loss="vat").learner.unlabeled.vat_epsilon == epsilon


def test_an_unknown_preset_is_refused():
    with pytest.raises(UsageError, match="one of demo, small, quick, colour, paper, triple-gan"):
        preset("tiny")
