"""Tests of replaying recorded sessions."""
