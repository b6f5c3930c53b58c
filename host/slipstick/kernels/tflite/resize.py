"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR on codes, with the reference's arithmetic."""

from collections.abc import Mapping
from typing import Any

import numpy as np

FRACTION_BITS = 10
"""Fraction bits of positions between pixels: the bilinear weights of a pixel add up to 2^20."""


def resize_nearest(x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """Each pixel is the input's nearest; positions are float32 as in the reference.

    Parameters
    ----------
    x : array, N x H x W x C
    attributes : mapping
        As :class:`slipstick.graph.Node` has them.
    """
    rows, columns = (
        nearest_places(source, target, attributes)
        for source, target in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    return x[:, rows][:, :, columns]


def nearest_places(source: int, target: int, attributes: Mapping[str, Any]) -> np.ndarray:
    """The input position of each output position along one axis."""
    corners = attributes["align_corners"]
    if corners and target > 1:
        scale = np.float32(source - 1) / np.float32(target - 1)
    else:
        scale = np.float32(source) / np.float32(target)
    offset = np.float32(0.5 if attributes["half_pixel_centers"] else 0.0)
    place = (np.arange(target, dtype=np.float32) + offset) * scale
    place = np.floor(place + np.float32(0.5)) if corners else np.floor(place)
    return np.clip(place.astype(np.int64), 0, source - 1)


def resize_bilinear(x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """The mean of four pixels, weighted in 10-bit fixed point, ties away from zero.

    Parameters are as for ``resize_nearest``. With ties up it is the reference's mean of uint8
    codes, which are 128 higher, in float32.
    """
    if attributes.get("ties", "away") == "up":
        return (_real_bilinear(x.astype(np.int16) + 128, attributes) - 128).astype(x.dtype)
    (top, bottom, down), (left, right, across) = (
        _neighbours(source, target, attributes)
        for source, target in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    one = 1 << FRACTION_BITS
    codes = x.astype(np.int64)
    down, across = down[:, None, None], across[:, None]
    rows = codes[:, top] * (one - down) + codes[:, bottom] * down
    total = rows[:, :, left] * (one - across) + rows[:, :, right] * across
    half = 1 << (2 * FRACTION_BITS - 1)
    # integer division in C truncates
    value = np.sign(total) * ((np.abs(total) + half) >> (2 * FRACTION_BITS))
    return value.astype(x.dtype)


def _real_bilinear(x: np.ndarray, attributes: Mapping[str, Any]) -> np.ndarray:
    """The same in float32, in the reference's order of operations; codes that are not negative."""
    (top, bottom, down), (left, right, across) = (
        _real_neighbours(source, target, attributes)
        for source, target in zip(x.shape[1:3], attributes["size"], strict=True)
    )
    one, codes = np.float32(1), x.astype(np.float32)
    down, across = down[:, None, None], across[:, None]
    total = codes[:, top][:, :, left] * (one - down) * (one - across)
    total = total + codes[:, bottom][:, :, left] * down * (one - across)
    total = total + codes[:, top][:, :, right] * (one - down) * across
    total = total + codes[:, bottom][:, :, right] * down * across
    return (total + np.float32(0.5)).astype(np.int16)


def _real_neighbours(
    source: int, target: int, attributes: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As ``_neighbours``, in float32."""
    scale = np.float32(source) / np.float32(target)
    if attributes["align_corners"] and target > 1:
        scale = np.float32(source - 1) / np.float32(target - 1)
    place = np.arange(target, dtype=np.float32)
    if attributes["half_pixel_centers"]:
        place = (place + np.float32(0.5)) * scale - np.float32(0.5)
    else:
        place = place * scale
    before = np.maximum(np.floor(place).astype(np.int64), 0)
    behind = np.minimum(np.ceil(place).astype(np.int64), source - 1)
    return before, behind, place - before.astype(np.float32)


def _neighbours(
    source: int, target: int, attributes: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pixels before and behind each output position, and its distance from the first."""
    one = 1 << FRACTION_BITS
    scale = (one * source + target // 2) // target
    if attributes["align_corners"] and target > 1:
        scale = (one * (source - 1) + (target - 1) // 2) // (target - 1)
    place = np.arange(target, dtype=np.int64) * scale
    if attributes["half_pixel_centers"]:
        place += scale // 2 - one // 2
    before = np.maximum(place, 0) >> FRACTION_BITS
    # a position before the first pixel lies between it and itself
    behind = np.minimum(np.maximum(place + one - 1, 0) >> FRACTION_BITS, source - 1)
    return before, behind, place - one * before
