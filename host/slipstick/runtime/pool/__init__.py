"""One program on many boards at once: work is shared by how fast each is, and done again elsewhere
where a board fails."""
