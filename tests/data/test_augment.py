import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from ordisco.data import augment
from ordisco.errors import UsageError


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def images(n: int = 40, channels: int = 3, size: int = 8) -> Tensor:
    return torch.rand((n, channels, size, size), generator=seeded(9)) * 2 - 1


@settings(deadline=None, max_examples=20)
@given(translate=st.integers(0, 4), flip=st.booleans(), channels=st.sampled_from([1, 3]), seed=st.integers(0, 99))
def test_weak_gives_a_crop_of_the_reflected_image(translate: int, flip: bool, channels: int, seed: int) -> None:
    x = images(6, channels)
    y = augment.weak(x, translate, flip, seeded(seed))
    for image, result in zip(x, y, strict=True):
        padded = F.pad(image[None], [translate] * 4, mode="reflect")[0] if translate else image
        wanted = [p.unfold(1, 8, 1).unfold(2, 8, 1) for p in ([padded, padded.flip(2)] if flip else [padded])]
        crops = torch.cat([crop.permute(1, 2, 0, 3, 4).flatten(0, 1) for crop in wanted])
        assert (crops == result).flatten(1).all(1).any()


def test_every_image_has_its_own_draw_and_all_shifts_occur() -> None:
    x = images(1).expand(2000, 3, 8, 8)
    for memory in (x.contiguous(), x.contiguous(memory_format=torch.channels_last)):
        different = augment.weak(memory, 2, True, seeded()).flatten(1).unique(dim=0)
        assert len(different) == 5 * 5 * 2
        assert len(augment.weak(memory, 1, False, seeded()).flatten(1).unique(dim=0)) == 9


def test_flip_is_fair_and_never_on_digits() -> None:
    x = images(1).repeat(2000, 1, 1, 1)
    mirrored = (augment.weak(x, 0, True, seeded()) == x.flip(3)).flatten(1).all(1).float().mean()
    assert 0.45 < mirrored < 0.55
    assert torch.equal(augment.weak(x, 0, False, seeded()), x)


def test_channels_last_gives_the_same_pixels_and_stays() -> None:
    x = images()
    last = x.contiguous(memory_format=torch.channels_last)
    y = augment.weak(last, 3, True, seeded(1))
    assert torch.equal(y, augment.weak(x, 3, True, seeded(1)))
    assert y.is_contiguous(memory_format=torch.channels_last)
    part = images(80)[::2, :, :, :]
    assert torch.equal(augment.weak(part, 3, True, seeded(1)), augment.weak(part.clone(), 3, True, seeded(1)))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("form", [augment.weak, augment.strong])
def test_seeded_and_within_range_and_leaves_its_input(form: object, channels: int) -> None:
    x = images(channels=channels)
    before = x.clone()
    assert callable(form)
    y = form(x, 2, True, seeded(5))
    assert y.shape == x.shape
    assert torch.equal(x, before)
    assert torch.equal(y, form(x, 2, True, seeded(5)))
    assert not torch.equal(y, form(x, 2, True, seeded(6)))
    assert y.abs().max() <= 1
    assert torch.isfinite(y).all()
    torch.manual_seed(3)
    free = form(x, 2, True)
    torch.manual_seed(3)
    assert torch.equal(free, form(x, 2, True))


def test_affine_without_change_is_the_identity_and_flips() -> None:
    x = images(200)
    y = augment.affine(x, 0, True, seeded(), degrees=0, scale=0, shear=0)
    same = (y - x).abs().amax(dim=(1, 2, 3)) < 1e-5
    mirrored = (y - x.flip(3)).abs().amax(dim=(1, 2, 3)) < 1e-5
    assert (same ^ mirrored).all()
    assert 0.3 < same.float().mean() < 0.7
    unflipped = augment.affine(x, 0, False, seeded(), degrees=0, scale=0, shear=0)
    assert torch.allclose(unflipped, x, atol=1e-5)


def test_affine_shifts_by_at_most_translate_pixels() -> None:
    ramp = torch.arange(32.0).div(16).sub(1).expand(500, 1, 32, 32).contiguous()  # 1/16 a pixel along x
    y = augment.affine(ramp, 4, False, seeded(), degrees=0, scale=0, shear=0)
    shift = (y - ramp)[:, 0, 16, 16] * 16
    assert shift.abs().max() <= 4.001
    assert shift.abs().max() > 3.5


def test_colour_changes_brightness_contrast_and_saturation() -> None:
    flat = torch.zeros(500, 1, 4, 4)
    bright = augment.colour(flat, seeded(), strength=0.3)
    assert bright.abs().max() <= 0.3001
    assert bright.amax() > 0.25
    assert (bright.amax(dim=(1, 2, 3)) == bright.amin(dim=(1, 2, 3))).all()
    red = torch.zeros(500, 3, 4, 4)
    red[:, 0] = 0.2
    spread = augment.colour(red, seeded(), strength=0.3)
    gap = spread[:, 0, 0, 0] - spread[:, 1, 0, 0]
    assert gap.min() < 0.2 * 0.8
    assert gap.max() > 0.2 * 1.2
    assert torch.equal(augment.colour(red, seeded(), strength=0), red)


def test_hue_turns_colours_and_leaves_greys() -> None:
    red, green, blue = torch.eye(3)
    (third,) = augment.hue(torch.tensor([2 * torch.pi / 3]))
    assert torch.allclose(torch.stack([third @ red, third @ green, third @ blue]), torch.eye(3)[[1, 2, 0]], atol=1e-6)
    turns = augment.hue(torch.linspace(-3, 3, 20))
    assert torch.allclose(turns @ torch.ones(3), torch.ones(3), atol=1e-6)
    assert torch.allclose(turns @ turns.mT, torch.eye(3).expand(20, 3, 3), atol=1e-6)  # lengths stay


def test_any_colours_turn_hues_and_make_every_other_image_a_negative() -> None:
    x = images(400, channels=3) * 0.3  # so that nothing is clipped
    y = augment.colour(x, seeded(), strength=0, any_colours=True)
    grey = x.mean(1)
    same, negative = ((y.mean(1) - sign * grey).abs().amax(dim=(1, 2)) < 1e-5 for sign in (1, -1))
    assert (same ^ negative).all()
    assert 0.4 < same.float().mean() < 0.6
    assert torch.allclose(y.square().sum(1), x.square().sum(1), atol=1e-4)
    moved = (y - torch.where(same[:, None, None, None], x, -x)).abs().amax(dim=(1, 2, 3))
    assert (moved > 0.05).float().mean() > 0.8
    one = images(400, channels=1)
    assert torch.equal(augment.colour(one, seeded(), strength=0, any_colours=True).abs(), one.abs())
    assert torch.equal(augment.strong(x, 2, True, seeded()), augment.strong(x, 2, True, seeded(), any_colours=False))
    assert not torch.equal(augment.strong(x, 2, True, seeded()), augment.strong(x, 2, True, seeded(), any_colours=True))


def test_cutout_sets_a_square_to_zero_and_nothing_else() -> None:
    x = torch.full((300, 3, 16, 16), 0.5)
    y = augment.cutout(x, seeded(), share=0.5)
    gone = y == 0
    assert ((y == 0.5) | gone).all()
    assert torch.equal(gone[:, 0], gone[:, 2])
    assert gone[:, 0].sum(dim=1).gt(0).sum(dim=1).max() == 8
    area = gone[:, 0].flatten(1).sum(1)
    rows, columns = gone[:, 0].any(2).sum(1), gone[:, 0].any(1).sum(1)
    assert torch.equal(area, rows * columns)


@pytest.mark.parametrize("form", [augment.weak, augment.affine])
def test_translation_must_fit_the_image(form: object) -> None:
    assert callable(form)
    for translate in (-1, 8):
        with pytest.raises(UsageError, match=f"translate = {translate} is not allowed: from 0 to 7"):
            form(images(), translate, False)


@pytest.mark.parametrize("channels", [1, 3])
def test_tint_by_hand(channels: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brightness, saturation and contrast one after the other, as DiffAugment writes them."""
    x = images(3, channels)
    u = torch.tensor([[0.0, 0.4, 1.0], [0.2, 0.9, 0.5], [0.7, 0.1, 0.5]]).view(3, 3, 1, 1, 1)  # uniform in [0, 1]
    monkeypatch.setattr(augment, "_uniform", lambda *_: u)
    expected = x + (u[0] - 0.5)
    mean = expected.mean(1, keepdim=True)
    expected = (expected - mean) * (2 * u[1]) + mean
    mean = expected.mean((1, 2, 3), keepdim=True)
    expected = (expected - mean) * (u[2] + 0.5) + mean
    torch.testing.assert_close(augment.tint(x, 1.0), expected)
    flat = torch.full((3, channels, 8, 8), 0.1)  # has neither saturation nor contrast: brightness alone
    brightness = torch.tensor([-0.25, -0.05, 0.25]).view(3, 1, 1, 1)
    torch.testing.assert_close(augment.tint(flat, 0.5), (flat + brightness).expand_as(flat))
    assert torch.equal(augment.tint(flat, 0.0), flat)


def test_gradients_go_through_tint() -> None:
    x = images(4).requires_grad_()
    augment.tint(x, 1.0, seeded()).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, torch.ones_like(x))  # saturation and contrast keep the sum; nothing is clipped
