# SPDX-License-Identifier: Apache-2.0
"""HTML for the panel, and formatted numbers."""

from __future__ import annotations

import html
import math

Colour = tuple[int, int, int]

GREEN, AMBER, RED, GREY = '#2f9e5b', '#d9840b', '#d43c3c', '#7c8794'
_BOX = 'padding:0.2em 0.9em 0.5em;font-size:0.86em;line-height:1.5'


def box(content: str) -> str:
    """Return the content with margins and the size of text in a panel."""
    return f'<div style="{_BOX}">{content}</div>'


def pills(*texts: tuple[str, str]) -> str:
    """Return labels (text, colour) side by side, each on its colour."""
    style = (
        'display:inline-block;color:#fff;border-radius:0.9em;padding:0 0.8em;font-weight:600;'
        'margin:0 0.35em 0.35em 0'
    )
    spans = (
        f'<span style="background:{colour};{style}">{html.escape(text)}</span>' for text, colour in texts
    )
    return f'<div>{"".join(spans)}</div>'


def answer(sentence: str, label: str = '') -> str:
    """Return a sentence in a box, faint unless a label says that something was rejected; '' without one."""
    head = pills((label, RED)) if label else ''
    return box(head + paragraph(sentence, faint=not label)) if sentence else ''


def row(label: str, value: str) -> str:
    """Return a line with a label on the left and a value, HTML itself, on the right."""
    return (
        f'<div style="display:flex;justify-content:space-between"><span>{label}</span>'
        f'<span style="font-variant-numeric:tabular-nums;font-weight:600">{value}</span></div>'
    )


def paragraph(text: str, faint: bool = False) -> str:
    """Return a sentence, nothing for none."""
    if not text:
        return ''
    style = 'opacity:0.6;font-size:0.92em;' if faint else ''
    style += 'margin-top:0.35em;line-height:1.35;overflow-wrap:anywhere'  # paths have no spaces
    return f'<div style="{style}">{html.escape(text)}</div>'


def legend(*entries: tuple[Colour, str]) -> str:
    """Return texts side by side, each behind a bar in its colour."""
    spans = ''.join(f'<span>{swatch(colour)}{html.escape(text)}</span>' for colour, text in entries)
    return f'<div style="display:flex;justify-content:space-between;margin-top:0.35em">{spans}</div>'


def swatch(colour: Colour) -> str:
    """Return a small bar in a colour."""
    return (
        '<span style="display:inline-block;width:1.1em;height:0.28em;border-radius:0.14em;'
        f'margin-right:0.4em;vertical-align:middle;background:rgb{colour}"></span>'
    )


def at_page(text: str) -> str:
    """Return a text of ik_node with what people press at the page instead of the service that they call."""
    return text.replace('call ~/resume', 'press Resume')


def capital(text: str) -> str:
    """Return the text with a capital first letter, unless it begins with a name, as in "seed_arm: ..."."""
    first = text.split(' ', 1)[0]
    return text if '_' in first or first.endswith(':') else text[:1].upper() + text[1:]


def length(metres: float) -> str:
    """Return a length with a suitable unit."""
    if metres < 1e-6:
        return '&lt; 1 µm'
    if metres < 1e-3:
        return f'{1e6 * metres:.0f} µm'
    return f'{1e3 * metres:.1f} mm' if metres < 1.0 else f'{metres:.3f} m'


def angle(radians: float) -> str:
    """Return an angle in degrees."""
    degrees = math.degrees(radians)
    return '&lt; 0.001°' if degrees < 1e-3 else f'{degrees:.3f}°' if degrees < 1.0 else f'{degrees:.1f}°'
