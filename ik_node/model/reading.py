"""Reading: what is found out about a description while it is read, beside its joints."""

from __future__ import annotations

PLACES = 20  # of one matter that a warning names; the rest is counted


class Reading:
    """The remarks on one description.

    faults: by joint name, a sentence on why no arm can have this joint.
    """

    def __init__(self) -> None:
        self.faults: dict[str, str] = {}
        self._places: dict[str, list[str]] = {}

    def note(self, matter: str, place: str) -> None:
        """Note one place, such as 'joint "a" (line 3)', of an untidy matter that is read all the same."""
        self._places.setdefault(matter, []).append(place)

    def warnings(self) -> tuple[str, ...]:
        """Return one sentence for each matter that was noted, with at most PLACES of its places."""
        return tuple(
            f'{matter}: {", ".join(places[:PLACES])}'
            + (f' and {len(places) - PLACES} more' if len(places) > PLACES else '')
            for matter, places in self._places.items()
        )
