"""News of a run, for the apps above: nothing here imports them."""

from django.dispatch import Signal

run_ended = Signal()  # sender: Run; run: the ended row. Sent after the row is committed

# sent at the end of each look for what dead processes left; watcher: of a process that looks again
# and again, else None; done: runs.reconcile.Reconciled, which takes further troubles
looked = Signal()
