"""One agent in one disposable container: the record, the lifecycle, the engines, the agents."""
