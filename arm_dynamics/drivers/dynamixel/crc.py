"""CRC-16 of protocol 2.0: x¹⁶ + x¹⁵ + x² + 1, from 0, highest bit first.

Source: e-manual, "CRC Calculation".
"""

from __future__ import annotations

POLYNOMIAL = 0x8005


def _remainder(byte: int) -> int:
    value = byte << 8
    for _ in range(8):
        value = (value << 1) ^ (POLYNOMIAL if value & 0x8000 else 0)
    return value & 0xFFFF


_TABLE = tuple(_remainder(byte) for byte in range(256))


def crc16(data: bytes, start: int = 0) -> int:
    """The CRC of ``data``, going on from the CRC ``start`` of what came before it."""
    crc = start
    for byte in data:
        crc = ((crc << 8) & 0xFF00) ^ _TABLE[(crc >> 8) ^ byte]
    return crc
