"""Knobs: hyper-parameters declared once, as fields of a frozen dataclass."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, get_type_hints

Value = bool | int | float | str


class KnobError(ValueError):
    """A knob that does not exist, or a value outside its range; the text is one sentence."""


@dataclass(frozen=True)
class Knob:
    """What a person may know about one hyper-parameter."""

    name: str
    kind: type
    default: Value
    low: float | None
    high: float | None
    help: str
    unit: str
    log: bool
    choices: tuple[str, ...]

    def check(self, value: Value) -> None:
        """Accept `value` or say in one sentence what would be accepted.

        Raises:
            KnobError: wrong type, not finite, out of range, or not among the choices.
        """
        if self.kind is bool or self.kind is str:
            right = isinstance(value, self.kind)
        else:
            numeric = (int, float) if self.kind is float else int
            right = isinstance(value, numeric) and not isinstance(value, bool)
        if not right:
            raise KnobError(f"{self.name} takes {_KINDS[self.kind]}, not {value!r}.")
        if self.choices and value not in self.choices:
            raise KnobError(f"{self.name} is one of {', '.join(self.choices)}, not {value!r}.")
        if isinstance(value, str):
            return
        if not math.isfinite(value):
            raise KnobError(f"{self.name} must be a finite number, not {value}.")
        below = self.low is not None and value < self.low
        if below or (self.high is not None and value > self.high):
            raise KnobError(
                f"{self.name} must lie in [{self.low:g}, {self.high:g}], not {value:g}."
            )

    def parse(self, text: str) -> Value:
        """The value that `text` writes, in range.

        Raises:
            KnobError: `text` is no such value.
        """
        value: Value = text
        try:
            if self.kind is bool:
                value = {"true": True, "1": True, "false": False, "0": False}[text.lower()]
            elif self.kind is not str:
                value = self.kind(text)
        except (KeyError, ValueError):
            raise KnobError(f"{self.name} takes {_KINDS[self.kind]}, not {text!r}.") from None
        self.check(value)
        return value


_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}


def knob(
    default: Value,
    low: float | None = None,
    high: float | None = None,
    help: str = "",  # noqa: A002 - reads as prose at the place of declaration
    *,
    unit: str = "",
    log: bool = False,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a hyper-parameter: default, bounds (both included) and one sentence about it."""
    meta = {"low": low, "high": high, "help": help, "unit": unit, "log": log, "choices": choices}
    return dataclasses.field(default=default, metadata={"knob": meta})


@dataclass(frozen=True, kw_only=True)
class Knobbed:
    """A frozen dataclass whose fields are knobs, checked when it is built.

    Raises:
        KnobError: a value outside its declared range.
    """

    def __post_init__(self) -> None:
        for declared in self.knobs():
            declared.check(getattr(self, declared.name))

    @classmethod
    def knobs(cls) -> tuple[Knob, ...]:
        """The knobs in the order of their declaration."""
        kinds = get_type_hints(cls)
        return tuple(
            Knob(f.name, kinds[f.name], f.default, **f.metadata["knob"])  # pyright: ignore[reportArgumentType]
            for f in dataclasses.fields(cls)
            if "knob" in f.metadata
        )

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Self:
        """Build from `{"lr": "0.1"}`; names left out keep their defaults.

        Raises:
            KnobError: an unknown name or a value out of range.
        """
        known = {declared.name: declared for declared in cls.knobs()}
        for name in texts:
            if name not in known:
                valid = ", ".join(known) or "none"
                raise KnobError(f"There is no knob {name!r}; the knobs are: {valid}.")
        return cls(**{name: known[name].parse(text) for name, text in texts.items()})

    def settings(self) -> dict[str, Value]:
        """Name to value, for a recipe."""
        return {declared.name: getattr(self, declared.name) for declared in self.knobs()}
