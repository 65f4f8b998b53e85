"""Losses: what is masked, and what of the rest is kept."""

import torch
import worlds

from core.losses import gone, kl, without

SEVERAL = "classes:two,four"


def test_gone_lists_all_forgotten_classes_or_each_image_its_own():
    y = torch.tensor([2, 4, 2])
    assert gone(worlds.target(SEVERAL), y).tolist() == [[2, 4]] * 3
    assert gone(worlds.target("random:3"), y).tolist() == [[2], [4], [2]]


def test_without_keeps_the_ratios_of_what_is_left():
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, y = z.softmax(1), torch.tensor([0, 1, 2, 3, 4])
    q = without(z, y)
    assert torch.equal(q.gather(1, y[:, None]), torch.zeros(5, 1, dtype=torch.float64))
    torch.testing.assert_close(q.sum(1), torch.ones(5, dtype=torch.float64))
    kept = 1 - torch.nn.functional.one_hot(y, 6).double()
    torch.testing.assert_close(q, p * kept / (p * kept).sum(1, keepdim=True))


def test_kl_is_a_mean_over_images_and_none_between_equals():
    z = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    p, q = z.softmax(1), z.flip(0).softmax(1)
    torch.testing.assert_close(kl(p, z), torch.tensor(0.0), atol=1e-6, rtol=0)
    torch.testing.assert_close(kl(p, z.flip(0)), (p * (p / q).log()).sum(1).mean())
