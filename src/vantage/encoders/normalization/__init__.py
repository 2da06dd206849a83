"""Which images share the statistics of BatchNorm, and how processes compute them."""
