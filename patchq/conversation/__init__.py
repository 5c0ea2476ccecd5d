"""What is asked of one environment, and in which order, for each verb.

A conversation is a generator: it yields requests and is sent replies, so it
knows nothing of child processes or SSH, and one text serves both. A transport
drives it (`patchq.transport.channel.Conversation`).
"""
