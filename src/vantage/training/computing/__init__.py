"""What a run computes on and how: processes, compiled steps, and buckets of gradients."""
