"""How cells are trained, measured and stored, and how the work is shared between processes."""
