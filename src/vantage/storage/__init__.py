"""What is written to disk, and how files get there complete or not at all.

`files` writes complete files. `cache` is a folder for what can be made again, and `cache_size` keeps it below a bound.
Work that continues where it was stopped is kept in three forms: the `state` of a training, finished `results`, and
`arrays` of rows, each a `rows_file` when it is complete. A damaged file in the cache is ignored, and a cache that
cannot be written is not an error. A damaged file in a folder of results is refused, and so is one that was made under
other settings. `provenance` and `metrics`, with TensorBoard's `events`, belong to runs; `tables` and `figures` are for
people.
"""
