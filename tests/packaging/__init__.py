"""The packages that install: the wheel, and the tar for Emacs."""
