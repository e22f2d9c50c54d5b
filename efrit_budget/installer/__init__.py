"""An installer of this program for another machine: one file, which Python runs there."""
