"""What the page shows in three dimensions."""
