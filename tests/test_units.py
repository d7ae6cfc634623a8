"""Quantities (model, section 8): exact both ways, and every bad one refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smtsynth.errors import InputError
from smtsynth.model.system import Level, System
from smtsynth.model.units import UNITS, exact_text, quantity, show_bandwidth, show_bytes, show_seconds

DECIMALS = st.builds(lambda digits, places: Fraction(digits, 10**places), st.integers(0, 10**15), st.integers(0, 12))


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("8 GB/s", "bytes/s", 8 * 10**9),
        ("400 Gbit/s", "bytes/s", 50 * 10**9),
        ("1bit/s", "bytes/s", Fraction(1, 8)),
        ("1 KiB/s", "bytes/s", 1024),
        ("8 GiB", "bytes", 8 * 2**30),
        ("1.5 kB", "bytes", 1500),
        ("8e9 B", "bytes", 8 * 10**9),
        (" .5  TiB ", "bytes", 2**39),
        ("20 us", "seconds", Fraction(20, 10**6)),
        ("20 µs", "seconds", Fraction(20, 10**6)),
        ("0.1 s", "seconds", Fraction(1, 10)),
        ("0 us", "seconds", 0),
        ("250 ns", "seconds", Fraction(1, 4 * 10**6)),
        ("3 ms", "seconds", Fraction(3, 1000)),
    ],
)
def test_units_of_the_model(text: str, dimension: str, value: Fraction) -> None:
    assert quantity(text, dimension) == value


@pytest.mark.parametrize(
    ("value", "dimension", "named"),
    [
        ("8", "bytes/s", "no unit"),
        (8, "bytes/s", "no unit"),
        ("8 GB", "bytes/s", "'GB'"),
        ("8 Gb/s", "bytes/s", "'Gb/s'"),
        ("8 gb", "bytes", "'gb'"),
        ("8 GB/s", "bytes", "'GB/s'"),
        ("8 GB", "seconds", "'GB'"),
        ("eight GB", "bytes", "'eight GB'"),
        ("", "bytes", "''"),
        ("-1 us", "seconds", "negative"),
        ("nan s", "seconds", "nan"),
        ("inf B", "bytes", "inf"),
        ("1e999 B", "bytes", "1e999"),
        ("1 2 B", "bytes", "1 2"),
        (True, "bytes", "True"),
        (None, "bytes", "None"),
        ([1], "bytes", "[1]"),
    ],
)
def test_bad_quantities_are_refused(value: object, dimension: str, named: str) -> None:
    with pytest.raises(InputError) as caught:
        quantity(value, dimension, where="here")  # type: ignore[arg-type]
    assert named in str(caught.value)
    assert caught.value.where == "here"
    assert caught.value.expected
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_numbers_that_are_not_finite_are_refused(value: float | Decimal) -> None:
    with pytest.raises(InputError, match="finite"):
        quantity(value, "bytes", bare=True)


def test_plain_numbers_are_taken_exactly_where_they_are_allowed() -> None:
    assert quantity(0.1, "bytes", bare=True) == Fraction(1, 10)
    assert quantity(Decimal("0.3"), "bytes", bare=True) == Fraction(3, 10)
    assert quantity("8e9", "bytes", bare=True) == 8 * 10**9


@given(DECIMALS, st.sampled_from(["bytes", "bytes/s", "seconds"]))
def test_exact_text_comes_back_exactly(value: Fraction, dimension: str) -> None:
    assert quantity(exact_text(value, dimension), dimension) == value


@given(st.integers(1, 10**6), st.sampled_from([(d, u) for d, units in UNITS.items() for u in units]))
def test_what_a_file_says_comes_back(number: int, unit: tuple[str, str]) -> None:
    value = quantity(f"{number} {unit[1]}", unit[0])
    text = exact_text(value, unit[0])
    assert quantity(text, unit[0]) == value
    if "bit" not in unit[1]:
        assert len(text.split()[0]) <= len(str(number))


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (8 * 10**9, "bytes/s", "8 GB/s"),
        (50 * 10**9, "bytes/s", "50 GB/s"),
        (2**31, "bytes", "2 GiB"),
        (Fraction(20, 10**6), "seconds", "20 us"),
        (Fraction(1, 10**12), "seconds", "0.001 ns"),
        (0, "seconds", "0 s"),
    ],
)
def test_exact_text_is_what_people_would_write(value: Fraction, dimension: str, text: str) -> None:
    assert exact_text(value, dimension) == text


@pytest.mark.parametrize("value", [Fraction(1, 3), Fraction(1, 10**50), Fraction(10**80)])
def test_exact_text_refuses_what_it_cannot_say(value: Fraction) -> None:
    with pytest.raises(InputError, match="no short decimal"):
        exact_text(value, "seconds")


def test_shown_quantities() -> None:
    assert show_seconds(0.417776266) == "417.776 ms"
    assert show_seconds(Fraction(600176, 10**9)) == "600.176 us"
    assert show_seconds(0) == "0 ns"
    assert show_bandwidth(8 * 10**9) == "8 GB/s"
    assert show_bandwidth(5 * 10**6) == "5 MB/s"
    assert show_bytes(2**31) == "2 GiB"
    assert show_bytes(8 * 10**9) == "8 GB"


@settings(max_examples=50)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_device_ids_are_mixed_radix_numbers(sizes: list[int], data: st.DataObject) -> None:
    system = System([Level(f"l{number}", size, 1) for number, size in enumerate(sizes)])
    device = data.draw(st.integers(0, system.devices - 1))
    number = 0
    for digit, size in zip(system.coordinates(device), sizes, strict=True):
        assert 0 <= digit < size
        number = number * size + digit
    assert number == device


def test_the_example_of_section_1() -> None:
    system = System([Level("node", 4, "8 GB/s"), Level("gpu", 16, "270 GB/s")])
    assert system.describe(37) == "node 2, gpu 5"
    assert [system.below(level) for level in (0, 1)] == [16, 1]
