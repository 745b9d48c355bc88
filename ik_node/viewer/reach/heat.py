# SPDX-License-Identifier: Apache-2.0
"""Colours of a map, and the map as an image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ik_node.checks import Array
from ik_node.viewer.panel import html

# Of the shares 0, 0.25, 0.5, 0.75 and 1: dark blue to yellow, ever lighter, so that it reads in grey too.
ANCHORS = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)])
OPACITY = 190


def image(shares: Array, size: int) -> NDArray[np.uint8]:
    """Return an image (size, size, 4) of shares (size^2,) from 0 to 1; NaN is transparent."""
    known = np.isfinite(shares)
    pixels = np.column_stack([colours(np.where(known, shares, 0.0)), np.where(known, OPACITY, 0)])
    return pixels.reshape(size, size, 4).astype(np.uint8)


def colours(shares: Array) -> NDArray[np.uint8]:
    """Return the colours (k, 3) of shares (k,) from 0 to 1."""
    places = np.linspace(0.0, 1.0, len(ANCHORS))
    return np.column_stack([np.interp(shares, places, channel) for channel in ANCHORS.T]).astype(np.uint8)


def legend(sentence: str) -> str:
    """Return the scale of colours with a sentence, as HTML."""
    stops = ', '.join(f'rgb({r}, {g}, {b})' for r, g, b in ANCHORS.tolist())
    bar = f'<div style="height:0.7em;border-radius:0.2em;background:linear-gradient(90deg, {stops})"></div>'
    ends = html.row('0 %', '100 %')
    return html.box(bar + ends + html.paragraph(sentence, faint=True))
