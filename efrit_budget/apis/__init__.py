"""Put requests into the form of a model's API, and replies into that of the Messages API.

Conversations are stored as the Messages API has them.
"""
