"""What engines tell of themselves: metrics pages and logs in the real forms."""
