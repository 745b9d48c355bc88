"""Motion within the limits, to a place or after a stream of goals."""
