"""Ways to reach an agent: a child process here, asyncssh, any command."""
