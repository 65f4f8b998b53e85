"""Training: the settings by which originals and golds are trained."""

from dataclasses import dataclass

from core.knobs import Knobbed, knob

__support__ = True


@dataclass(frozen=True, kw_only=True)
class Training(Knobbed):
    """SGD with Nesterov momentum, linear warm-up and cosine decay to zero."""

    epochs: int = knob(30, 1, 1000, "passes over the training set")
    lr: float = knob(0.2, 1e-5, 5.0, "peak step size", log=True)
    momentum: float = knob(0.9, 0.0, 0.999, "momentum")
    weight_decay: float = knob(1.2e-3, 0.0, 0.1, "L2 penalty on every weight", log=True)
    batch: int = knob(128, 1, 4096, "examples a step")
    warmup: float = knob(0.15, 0.0, 0.9, "share of the steps in which the step size rises")
    pad: int = knob(0, 0, 8, "random crops after padding by this much", unit="pixels")
    flip: bool = knob(True, help="mirror half of the images of a data set that allows it")
    plain_from: float = knob(
        0.65, 0.0, 1.0, "share of the steps after which images come as they are"
    )
