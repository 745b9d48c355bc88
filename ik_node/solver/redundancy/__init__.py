# SPDX-License-Identifier: Apache-2.0
"""Arms with spare joints: self-motions, locked joints, a roll joint that does not move the tool point."""
