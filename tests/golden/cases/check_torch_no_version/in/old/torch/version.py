version = 2
