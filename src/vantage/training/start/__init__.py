"""What happens before the first step: parts are tried, memories get first rows, and a warm start is taken."""
