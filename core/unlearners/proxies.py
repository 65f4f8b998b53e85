"""Proxies: carry over what forgetting changes in a simple model that can be refitted exactly."""

from dataclasses import dataclass
from typing import ClassVar, final

from core.knobs import knob
from core.unlearners.base import Citation, Unlearner
from core.unlearners.proxy_features import read
from core.unlearners.proxy_goal import FITS, aim, distil


@final
@dataclass(frozen=True, kw_only=True)
class Proxies(Unlearner):
    """Distil the network's answer p, tilted to p e^(eta Delta) / sum, where Delta is what the
    forget set takes from a proxy's log-posterior.

    eta is the largest step up to `limit` with h(eta), the mean log of that sum, at most 0. A proxy
    with h > 0 from the start is not admissible, and the model comes back untouched. The surer a
    proxy is of its rows the smaller its step, so that `dims` should be well below the number of
    forgotten images. `dir_2c` fits nothing, takes the whole step, and need not be admissible.
    Single images hardly move a proxy, and so hardly the network.
    Differs: batch norm's statistics are kept; batches are smaller, for a small forget set has
    few; h comes to 0 from below, so that its bound holds; where a whole class goes its logit falls
    by a fixed amount, for the published floors need not cancel; `dir_2c` gives a forgotten row to
    no other class that goes; a batch that is answered to 1e-6 nats moves nothing.
    """

    cite: ClassVar = Citation(
        "Dine, Furon",
        2026,
        "Exact Unlearning from Proxies Induces Closeness Guarantees on Approximate Unlearning",
        "arxiv.org/abs/2605.10680",
    )
    needs: ClassVar = frozenset({"forget", "retain"})
    norms: ClassVar = "frozen"

    proxy: str = knob(
        "lda_2c",
        help="LDA or QDA, fitted twice, or as mixtures or cells of retained and forgotten",
        choices=(*FITS, "dir_2c"),
    )
    covariance: str = knob("diagonal", help="the covariances of QDA", choices=("diagonal", "full"))
    tap: str = knob(
        "middle",
        help="the features that are fitted: the map before the last stage, or what the head sees",
        choices=("middle", "penultimate"),
    )
    dims: int = knob(256, 2, 1024, "features that are kept of more, by a random map")
    limit: float = knob(1.0, 0.001, 10.0, "largest step along the signal")
    distil: str = knob("both", help="the sets that teach", choices=("both", "forget only"))
    lr: float = knob(0.001, 1e-6, 1.0, "Adam step size; it falls by a twentieth a pass", log=True)
    epochs: int = knob(8, 1, 1000, "passes over the forget set")
    batch: int = knob(64, 1, 4096, "examples of each set a step")

    def run(self, model, teacher, split, target, rng, on_step):
        seen = read(teacher, split, self.tap, self.dims)
        goal, said = aim(seen, self.proxy, self.covariance, self.limit)
        if goal is None:
            on_step(1, 1)
            return said
        distil(
            model,
            split,
            goal.to(model.head.weight),
            both=self.distil == "both",
            lr=self.lr,
            epochs=self.epochs,
            batch=self.batch,
            rng=rng,
            on_step=on_step,
        )
        return said
