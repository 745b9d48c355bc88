"""Arms with a spare joint: curves of solutions, and families of such curves."""
