"""Tests of framing, dispatch, lifecycle and cancellation."""
