"""News of a run, for the apps above: nothing here imports them."""

from django.dispatch import Signal

run_ended = Signal()  # sender: Run; run: the ended row. Sent after the row is committed
