"""Work over several processes and machines, with Dask: images on boards, and jobs without boards.

``address`` reads the option; ``opening`` gives commands what they use. The other modules need the
extra ``cluster`` and are imported when a cluster is opened.
"""
