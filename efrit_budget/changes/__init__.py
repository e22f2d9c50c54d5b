"""What files held before and after they were changed, so that each change can be undone."""
