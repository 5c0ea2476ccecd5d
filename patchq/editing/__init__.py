"""The verbs that make and edit patches, and bring them in and out.

Each is a conversation as those of `patchq.conversation` are, at the desk
(`patchq.conversation.desk`): the queue's own files change with the environment's.
"""
