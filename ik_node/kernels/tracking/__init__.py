# SPDX-License-Identifier: Apache-2.0
"""Goals that move: one step along a branch, paths, pursuit within limits."""
