"""Multisets of contributors (model, section 5, "Buffers"): each distinct one kept once, and named by a number.

Adding buffers position by position meets few distinct sums, so a piece holds a number only.
"""

from __future__ import annotations

from collections.abc import Iterable

from smtsynth.errors import LimitReached

UNDEFINED = 0
MAX_SUM_BYTES = 2**28


class Sums:
    """Multisets of contributors, each once, numbered from 1 in order of appearance; 0 is undefined.

    A multiset is written in binary, as bit sets: (shift, plane 0, plane 1, …), where bit i of plane p is bit p of the
    count of contributor shift + i. The first contributor has bit 0, and the last plane is not 0.
    """

    def __init__(self) -> None:
        self._keys: list[tuple[int, ...]] = [(0,)]
        self._numbers: dict[tuple[int, ...], int] = {}
        self._added: dict[tuple[int, int], int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    def _number(self, shift: int, planes: list[int]) -> int:
        every = 0
        for plane in planes:
            every |= plane
        low = (every & -every).bit_length() - 1
        key = (shift + low, *(plane >> low for plane in planes))
        number = self._numbers.get(key)
        if number is None:
            self._bytes += 100 + len(planes) * every.bit_length() // 8
            if self._bytes > MAX_SUM_BYTES:
                raise LimitReached(f"more than {MAX_SUM_BYTES >> 20} MiB of different sums")
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def of(self, contributors: Iterable[int]) -> int:
        """The sum of these contributors (at least one), each once."""
        members = list(contributors)
        low = min(members)
        bits = bytearray((max(members) - low) // 8 + 1)
        for member in members:
            bits[(member - low) >> 3] |= 1 << ((member - low) & 7)
        return self._number(low, [int.from_bytes(bits, "little")])

    def add(self, one: int, two: int) -> int:
        """The sum of two sums, counts added up; undefined where one is."""
        if not (one and two):
            return UNDEFINED
        pair = (one, two) if one < two else (two, one)
        number = self._added.get(pair)
        if number is None:
            (shift1, *planes1), (shift2, *planes2) = self._keys[one], self._keys[two]
            shift, carry, planes = min(shift1, shift2), 0, []
            for place in range(max(len(planes1), len(planes2))):
                x = planes1[place] << (shift1 - shift) if place < len(planes1) else 0
                y = planes2[place] << (shift2 - shift) if place < len(planes2) else 0
                planes.append(x ^ y ^ carry)
                carry = (x & y) | (carry & (x ^ y))
            number = self._added[pair] = self._number(shift, planes + [carry] * (carry > 0))
        return number

    def present(self, number: int) -> int:
        """The contributors of a sum, as a bit set; none where it is undefined."""
        shift, *planes = self._keys[number]
        mask = 0
        for plane in planes:
            mask |= plane
        return mask << shift

    def repeated(self, number: int) -> int:
        """The contributors that are in a sum more than once, as a bit set."""
        shift, _, *planes = (*self._keys[number], 0)
        mask = 0
        for plane in planes:
            mask |= plane
        return mask << shift

    def counts(self, number: int) -> dict[int, int]:
        """The sum as {contributor: how many times}."""
        shift, *planes = self._keys[number]
        return {
            contributor: sum((plane >> (contributor - shift) & 1) << place for place, plane in enumerate(planes))
            for contributor in numbers_of(self.present(number))
        }


def numbers_of(bits: int) -> list[int]:
    """The numbers of the set bits, ascending."""
    return [number for number, bit in enumerate(reversed(bin(bits)[2:])) if bit == "1"]
