"""The stand-alone LNS unit: adds, multiplies and converts."""
