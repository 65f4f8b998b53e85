"""Console: how commands are read, and how they say what is wrong in one line."""

import argparse
import sys
from typing import NoReturn


class Usage(Exception):
    """A command that cannot be understood; the text is one line."""


class Failed(Exception):
    """A run that came to nothing; the text is one line."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        raise Usage(f"{message} (see {self.prog} --help)")


def complain(text: str, code: int) -> int:
    """One line on stderr, and the exit code."""
    sys.stderr.write(f"forgetscope: {' '.join(text.split())}\n")
    return code
