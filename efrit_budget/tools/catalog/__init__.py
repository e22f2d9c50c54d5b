"""The tools of the sidecar, one file each."""
