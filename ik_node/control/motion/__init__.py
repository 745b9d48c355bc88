# SPDX-License-Identifier: Apache-2.0
"""Motion within the limits, to a target or after a stream of goals."""
