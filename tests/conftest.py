"""What every test shares: one thread, quiet and derandomised Hypothesis, a store of its own."""

import os

import pytest
import torch
from hypothesis import settings

os.environ["FORGETSCOPE_THREADS"] = "1"
torch.set_num_threads(1)
settings.register_profile("forgetscope", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("forgetscope")


@pytest.fixture(autouse=True)
def _own_store(tmp_path_factory, monkeypatch):
    """No test may read or fill the store of the person who runs it."""
    monkeypatch.setenv("FORGETSCOPE_HOME", str(tmp_path_factory.mktemp("store")))
    monkeypatch.setenv("FORGETSCOPE_DEVICE", "cpu")
