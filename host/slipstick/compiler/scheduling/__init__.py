"""Orders the work: groups, runs, tile sizes, interleaved instructions."""
