"""Devices: where tensors live, and how many threads work on them."""

import os

import torch


class DeviceError(ValueError):
    """A device that this machine does not have; the text is one sentence."""


def choose(name: str | None = None) -> torch.device:
    """The device called `name`, else FORGETSCOPE_DEVICE, else cuda, mps or cpu, whichever is there.

    Raises:
        DeviceError: the device is unknown or absent.
    """
    name = name or os.environ.get("FORGETSCOPE_DEVICE") or _best()
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError):
        raise DeviceError(f"There is no device {name!r} here; cpu always works.") from None
    return device


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
