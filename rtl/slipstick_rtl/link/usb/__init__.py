"""USB at full speed: the link's bytes as a serial port (CDC-ACM), made of luna's parts."""
