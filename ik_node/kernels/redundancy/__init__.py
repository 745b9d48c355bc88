# SPDX-License-Identifier: Apache-2.0
"""Arms with a spare joint: curves of solutions, and families of such curves."""
