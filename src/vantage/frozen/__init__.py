"""What is left of a run: the frozen encoder, its features, and the files that other libraries load."""
