// The runtime.
