"""Running a prepared graph: values, feeds, threads, profiles."""
