"""SISA: trains a network a shard, so that a forgotten image concerns one of them only."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, final

import torch
from torch import Tensor

from core.data.examples import Examples
from core.knobs import knob
from core.losses import kl
from core.models.classifier import Classifier
from core.models.training import Training
from core.optim import OnStep, descend, fit
from core.unlearners.base import Citation, Unlearner
from core.unlearners.two_sets import counted


@final
@dataclass(frozen=True, kw_only=True)
class SISA(Unlearner):
    """Train each shard's network on what is left of the shard, and answer with their mean.

    Shards follow from the ids alone and each has a seed of its own, so a shard that lost nothing
    gives, bit for bit, the network that it gave before. Nothing of the original is used. All
    shards are trained in the call, as nothing was stored before, and at the defaults that costs
    about half of a retraining; a class would touch every shard anyway. Each network sees a part
    of the data, for `share` of the epochs, which costs accuracy.
    Differs: the mean answer is distilled, on the retain set, into one network of the original's
    kind, as one is what the audit takes; slices are left out, which save time only where
    checkpoints of an earlier training exist.
    """

    cite: ClassVar = Citation(
        "Bourtoule et al.", 2021, "Machine Unlearning", "arxiv.org/abs/1912.03817"
    )
    needs: ClassVar = frozenset({"retain"})
    from_original: ClassVar = False

    shards: int = knob(3, 1, 50, "networks, each of a shard of its own")
    share: float = knob(0.2, 0.01, 2.0, "epochs of a shard, as a share of the original's", log=True)
    epochs: int = knob(4, 1, 100, "passes over the retain set while distilling")
    lr: float = knob(0.1, 1e-5, 1.0, "SGD step size while distilling", log=True)
    batch: int = knob(128, 2, 1024, "examples a step while distilling")

    def run(self, model, teacher, split, target, rng, on_step):
        training = replace(
            model.recipe[0].training,
            epochs=max(1, round(self.share * model.recipe[0].training.epochs)),
        )
        where = shard_of(split.retain.ids, self.shards)
        parts = [split.retain[where == s] for s in range(self.shards)]
        steps = [training.epochs * math.ceil(len(part) / training.batch) for part in parts]
        distilling = self.epochs * math.ceil(len(split.retain) / self.batch)
        count = counted(on_step, sum(steps) + distilling)
        # Drawn before any shard is trained: what one reads cannot move another's seed.
        seeds = torch.randint(2**31, (self.shards + 1,), generator=rng).tolist()
        networks = [
            constituent(teacher, part, training, seed, count)
            for part, seed in zip(parts, seeds[1:], strict=True)
            if len(part) > 1  # batch norm needs two
        ]
        if not networks:
            return "No shard has two images left, so the original stays."
        return self.distil(networks, teacher, split.retain, seeds[0], count)

    def distil(
        self,
        networks: list[Classifier],
        teacher: Classifier,
        examples: Examples,
        seed: int,
        on_step: OnStep,
    ) -> Classifier:
        """One network, taught the mean answer of them all."""
        rng = torch.manual_seed(seed)
        student = teacher.fresh().to(teacher.mean.device).train()
        goals = torch.cat([answer(networks, b.x) for b in examples.ordered(500)])
        rows = torch.arange(len(examples), device=goals.device)
        batches = replace(examples, y=rows).batches(self.batch, rng)

        def loss() -> Tensor:
            b = next(batches)
            return kl(goals[b.y], student(b.x))

        steps = self.epochs * math.ceil(len(examples) / self.batch)
        descend(
            student,
            loss,
            steps=steps,
            lr=self.lr,
            weight_decay=5e-4,
            cosine=True,
            on_step=on_step,
        )
        return student


def shard_of(ids: Tensor, shards: int) -> Tensor:
    """Each id's shard (n), in [0, shards): by Fibonacci hashing, whatever the other ids are."""
    return ((ids * 2_654_435_761) % 2**32 // 2**8) % shards


def constituent(
    original: Classifier, examples: Examples, training: Training, seed: int, on_step: OnStep
) -> Classifier:
    """A new network, trained on one shard from a seed of its own."""
    rng = torch.manual_seed(seed)
    network = original.fresh().to(original.mean.device)
    fit(network, examples, training, rng, on_step)
    return network


@torch.no_grad()
def answer(networks: list[Classifier], x: Tensor) -> Tensor:
    """The mean of the networks' probabilities (n k)."""
    return torch.stack([network(x).softmax(1) for network in networks]).mean(0)
