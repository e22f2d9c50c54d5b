"""Chat Completions: its requests, rules, replies and errors, as OpenAI has them."""
