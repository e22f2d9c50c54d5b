"""What happened in a session, and how it shrinks."""
