"""Metrics by name: `METRICS["probe_linear"]`."""

import sys
from collections.abc import Mapping

from core import registry
from core.metrics.base import Metric

METRICS: Mapping[str, type[Metric]] = registry.discover(sys.modules[__name__], Metric)
