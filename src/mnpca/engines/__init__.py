"""Where the data matrix lives."""
