"""Framing, strict JSON, dispatch, lifecycle and cancellation of JSON-RPC over stdio."""
