# SPDX-License-Identifier: Apache-2.0
"""Groups of joints: where they are, how they follow, who shares them."""
