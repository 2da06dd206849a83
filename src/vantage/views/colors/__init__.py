"""Color spaces: fixed, measured, or learned."""
