"""Goals and reports as messages: frames, times, projections."""
