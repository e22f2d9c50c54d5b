"""The Chat Completions wire: requests, rules, replies and errors as OpenAI has them."""
