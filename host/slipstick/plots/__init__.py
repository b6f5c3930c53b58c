"""Pictures: drawing areas, and labels that hide nothing."""
