# SPDX-License-Identifier: Apache-2.0
"""Models of what is controlled."""
