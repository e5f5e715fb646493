"""Where runs are made: in processes here, on a Ray cluster, by Slurm. One file a launcher, one interface for all."""
