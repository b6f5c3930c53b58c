"""Maps a convolution onto the array: reduction order, depthwise windows, addresses."""
