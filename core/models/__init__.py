"""Architectures by name: `MODELS["resnet_mini"]`."""

import sys
from collections.abc import Mapping

from core import registry
from core.models.base import Architecture

MODELS: Mapping[str, type[Architecture]] = registry.discover(sys.modules[__name__], Architecture)
