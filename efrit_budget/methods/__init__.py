"""One file per family of JSON-RPC methods."""
