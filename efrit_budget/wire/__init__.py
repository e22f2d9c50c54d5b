"""JSON-RPC over stdin and stdout: framing, JSON, dispatch, lifecycle and cancellation."""
