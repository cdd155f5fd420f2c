"""Stand-ins for the model APIs that the real runtimes talk to: loopback only, standard library
only."""
