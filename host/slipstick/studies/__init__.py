"""Studies: trainings and measurements that say what a number format does to a network."""
