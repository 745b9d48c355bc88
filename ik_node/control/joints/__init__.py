"""Groups of joints: where they are, how they follow, who shares them."""
