"""Unlearners by name: `UNLEARNERS["pour_p"]`."""

import sys
from collections.abc import Mapping

from core import registry
from core.unlearners.base import Unlearner

UNLEARNERS: Mapping[str, type[Unlearner]] = registry.discover(sys.modules[__name__], Unlearner)
