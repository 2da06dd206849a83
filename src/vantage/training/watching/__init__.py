"""What a run reports while it trains: losses, health of the vectors, kNN accuracy, and the time left."""
