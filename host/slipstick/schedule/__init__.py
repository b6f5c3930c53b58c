"""From operations to instructions: layout, memory, tiling, waits, and predicted cycles."""
