"""U-MIA: accuracy of an attacker who tells forgotten from unseen images by the loss."""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from core.metrics.base import Metric, Unavailable, mean_of
from core.metrics.unseen import against, log_likelihoods

FOLDS = 10


@final
@dataclass(frozen=True)
class UMia(Metric):
    """Population U-MIA of Deep Unlearn (Cadet et al. 2024, arxiv.org/abs/2410.01276): logistic
    regression on the cross-entropy, forget set against as many unseen images; accuracy on images
    that it was not fitted to. 0.5 is guessing; below 0.5 is chance too, or damage.

    One threshold for all images: it overestimates privacy, see `ratio_mia`. `rmia` attacks
    features, and `svc_mia_confidence` retained images against unseen ones.
    Differs: unseen images of the SAME classes for a class target, or the class would tell; ten
    folds instead of ten random splits, so that each image is judged once.
    """

    unit: ClassVar = "fraction"
    low: ClassVar = 0.0
    high: ClassVar = 1.0
    ideal: ClassVar = "gold"

    def measure(self, model, reference, tap, seed):
        rng = np.random.default_rng(seed)
        sides = [-log_likelihoods(model, name).numpy() for name in ("forget", against(model))]
        count = min(map(len, sides))
        if count < FOLDS:
            raise Unavailable(f"ten folds need {FOLDS} forgotten images and as many unseen ones")
        drawn = [side[np.sort(rng.permutation(len(side))[:count])] for side in sides]
        fold = rng.permutation(count) % FOLDS
        forget, unseen = torch.from_numpy(judged(np.stack(drawn), fold))
        return mean_of({"forget": forget, "unseen": unseen}, seed)


def judged(losses: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Whether members (first row) and others (second) are told rightly (2 n, 0 or 1).

    Each is told by the attacker that was fitted to the other folds.
    """
    from sklearn.linear_model import LogisticRegression

    losses = losses.round(6)  # of logits in single precision; what is below must not be blown up
    right = np.zeros(losses.shape)
    fit = LogisticRegression()
    for k in range(FOLDS):
        seen = fold != k
        x, y = losses[:, seen].ravel(), np.repeat([1, 0], seen.sum())
        middle, spread = x.mean(), x.std() or 1.0
        fit.fit((x[:, None] - middle) / spread, y)
        for side, is_member in enumerate((1, 0)):
            asked = (losses[side, ~seen][:, None] - middle) / spread
            right[side, ~seen] = fit.predict(asked) == is_member
    return right
