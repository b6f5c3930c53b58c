"""USB full speed: descriptors, transceiver, a serial port of the class CDC ACM."""
