# SPDX-License-Identifier: Apache-2.0
"""Goals and reports as messages: frames, times, projections."""
