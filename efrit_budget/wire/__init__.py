"""JSON-RPC over stdio: framing, JSON, dispatch, lifecycle and cancellation."""
