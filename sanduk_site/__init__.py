"""The site: settings, the `sanduk` command, the pages and the worker, wired together."""

__version__ = "0.4.0"
