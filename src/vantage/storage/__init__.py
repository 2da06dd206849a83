"""What is written to disk, and how it gets there whole.

`files`: a file is there complete or not at all. `cache`: a folder for what can be made again. Work that goes on where
it was stopped is kept in three forms: the `state` of a training, `results` that are done, and `arrays` of rows. What is
in the cache is ignored if it is damaged, and a cache that cannot be written is no failure; what is in a folder of
results is refused if it is damaged or was made under other settings. `provenance` and `metrics`, with TensorBoard's
`events`, belong to runs; `tables` and `figures` are for people.
"""
