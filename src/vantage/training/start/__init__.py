"""What happens before the first step: parts are tried, memories get their first rows, and a warm start is applied."""
