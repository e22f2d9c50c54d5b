"""The sidecar of efrit: budget, work log and project tools for a model in Emacs."""

__version__ = "0.1.0"
PROTOCOL_VERSION = 1
