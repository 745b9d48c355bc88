# SPDX-License-Identifier: Apache-2.0
"""Reading: faults and warnings collected while a description is read."""

from __future__ import annotations

PLACES = 20  # locations that a warning lists; the rest is counted


class Reading:
    """The faults and warnings of one description.

    faults: by joint name, a sentence on why no arm can contain this joint.
    """

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self._places: dict[str, list[str]] = {}

    def note(self, matter: str, place: str) -> None:
        """Note one location, such as 'joint "a" (line 3)', of an issue that does not prevent reading."""
        self._places.setdefault(matter, []).append(place)

    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each issue, with at most PLACES of its locations."""
        return tuple(
            f'{matter}: {", ".join(places[:PLACES])}'
            + (f' and {len(places) - PLACES} more' if len(places) > PLACES else '')
            for matter, places in self._places.items()
        )
