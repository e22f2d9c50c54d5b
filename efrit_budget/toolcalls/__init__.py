"""Run one tool call: arguments, allowance, confirmation, stopping, keeping the result."""
