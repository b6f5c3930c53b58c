"""Small components that stand for what a chip has ready-made, and registers in rows."""
