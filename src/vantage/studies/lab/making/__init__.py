"""How cells are trained, measured, stored and collected, and how the work is shared between processes."""
