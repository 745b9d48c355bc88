"""Goals that move: one step along a branch, paths, pursuit within limits."""
