# SPDX-License-Identifier: Apache-2.0
"""Solutions by formula."""
