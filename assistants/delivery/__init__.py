"""Bringing approved items to their destinations, each once, and saying what is not known.

Everything here blocks; an event loop calls it in a thread.
"""

from assistants.delivery.sending import Delivered, deliver_due, recover

__all__ = ["Delivered", "deliver_due", "recover"]
