"""Building fresh benchmarks: pipelines of steps, resumable, with what each step took, made and dropped."""
