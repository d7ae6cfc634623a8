"""Quantities with units (model, section 8): text to exact fractions and back."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

from smtsynth.errors import InputError

Number = int | float | str | Decimal | Fraction

_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_BITS = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9, "Tbit": 10**12}

UNITS: dict[str, dict[str, Fraction]] = {
    "bytes": {unit: Fraction(scale) for unit, scale in _BYTES.items()},
    "bytes/s": {f"{unit}/s": Fraction(scale) for unit, scale in _BYTES.items()}
    | {f"{unit}/s": Fraction(scale, 8) for unit, scale in _BITS.items()},
    "seconds": {"s": Fraction(1), "ms": Fraction(1, 10**3), "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)},
}
EXAMPLES = {"bytes": "8 GiB", "bytes/s": "8 GB/s", "seconds": "20 us"}

_QUANTITY = re.compile(r"\s*([+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?)\s*(\S*)\s*")


def quantity(value: Number, dimension: str, *, where: str | None = None, bare: bool = False) -> Fraction:
    """Read `value` as a quantity of `dimension` ("bytes", "bytes/s" or "seconds"), in that base unit, exactly.

    A plain number is taken only where `bare` is true. Negative values are refused.
    Raises InputError naming `where`.
    """
    expected = f"a quantity such as {EXAMPLES[dimension]!r}"
    if isinstance(value, bool) or not isinstance(value, (int, float, str, Decimal, Fraction)):
        raise InputError(f"{value!r} is not a quantity", where=where, expected=expected)
    if isinstance(value, str):
        match = _QUANTITY.fullmatch(value) if len(value) <= 200 else None
        if match is None:
            raise InputError(f"{value[:60]!r} is not a quantity", where=where, expected=expected)
        number, unit = match.groups()
        unit = unit.replace("µ", "u").replace("μ", "u")
        if unit in UNITS[dimension]:
            result = Fraction(number) * UNITS[dimension][unit]
        elif unit == "" and bare:
            result = Fraction(number)
        else:
            what = f"{value!r} has no unit" if unit == "" else f"unit {unit[:20]!r} of {value[:60]!r} does not fit"
            raise InputError(what, where=where, expected=f"one of {' '.join(UNITS[dimension])}")
    elif bare:
        try:
            result = Fraction(str(value)) if isinstance(value, float) else Fraction(value)
        except (ValueError, OverflowError):
            raise InputError(f"{value!r} is not a finite number", where=where, expected=expected) from None
    else:
        raise InputError(f"{value!r} has no unit", where=where, expected=expected)
    if result < 0:
        raise InputError(f"{value!r} is negative", where=where, expected=expected)
    return result


def exact_text(value: Fraction | int, dimension: str) -> str:
    """A quantity as text that `quantity` reads back exactly, in the unit that needs the fewest digits.

    Raises InputError where no unit gives it a decimal of at most 30 digits before and after the point.
    """
    amount = Fraction(value)
    best: tuple[bool, int, Fraction, str] | None = None
    for unit, scale in UNITS[dimension].items():
        scaled = amount / scale
        fives = twos = 0
        rest = scaled.denominator
        while rest % 2 == 0:
            rest, twos = rest // 2, twos + 1
        while rest % 5 == 0:
            rest, fives = rest // 5, fives + 1
        places = max(twos, fives)
        if rest > 1 or places > 30 or scaled >= 10**30 or "bit" in unit:
            continue
        digits = str(int(scaled * 10**places)).rjust(places + 1, "0")
        text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
        candidate = (places > 0, len(text), -scale if amount else abs(scale - 1), f"{text} {unit}")
        best = candidate if best is None or candidate < best else best
    if best is None:
        raise InputError(f"a quantity of {dimension} has no short decimal", expected="at most 30 digits")
    return best[3]


def seconds_of(nanoseconds: int | None) -> float | None:
    """Nanoseconds as seconds, the nearest float, for JSON and tables."""
    return None if nanoseconds is None else nanoseconds / 10**9


def show_seconds(seconds: float | Fraction) -> str:
    """A duration as people write it, e.g. 0.417776266 -> '417.776 ms'."""
    value = float(seconds)
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{value / scale:.6g} {unit}"
    return f"{value / 1e-9:.6g} ns"


def show_bandwidth(rate: float | Fraction) -> str:
    """A bandwidth in GB/s (or MB/s when small), one direction."""
    value = float(rate)
    return f"{value / 1e9:.6g} GB/s" if value >= 1e8 else f"{value / 1e6:.6g} MB/s"


def show_bytes(size: float | Fraction) -> str:
    """A payload, in binary units where they divide it evenly enough to read well."""
    value = Fraction(size)
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        scale = UNITS["bytes"][unit]
        if value >= scale:
            if (value / scale).denominator <= 8:
                return f"{float(value / scale):.6g} {unit}"
            break
    for unit in ("TB", "GB", "MB", "kB"):
        if value >= UNITS["bytes"][unit]:
            return f"{float(value / UNITS['bytes'][unit]):.4g} {unit}"
    return f"{float(value):.6g} B"
