"""What pairs of neighbouring bytes cost, added up for a whole text at once."""

from __future__ import annotations

from typing import NamedTuple


class Pairs(NamedTuple):
    """The classes of first and second bytes, and what pairs of classes cost.

    A class is half a byte, that of a first one the upper half. The tables of costs, by pair, have
    as many bits set as the pair costs eighths of a token, and 64ths beyond those.
    """

    first: bytes
    second: bytes
    eighths: bytes
    rest: bytes

    def codes(self, coded: bytes) -> bytes:
        """A byte for each two neighbours: the classes of both."""
        first = int.from_bytes(coded[:-1].translate(self.first), "little")
        second = int.from_bytes(coded.translate(self.second), "little")
        return (first << 8 | second).to_bytes(len(coded), "little")[1:]

    def cost(self, coded: bytes) -> float:
        """The tokens that end between neighbours."""
        codes = self.codes(coded)
        return ones(codes.translate(self.eighths)) / 8 + ones(codes.translate(self.rest)) / 64


def ones(coded: bytes) -> int:
    """Count the bits that are set."""
    return int.from_bytes(coded, "little").bit_count()
