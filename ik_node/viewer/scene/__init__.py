# SPDX-License-Identifier: Apache-2.0
"""What the page shows in three dimensions."""
