"""The Messages wire: requests, rules, replies and errors of the Messages API."""
