"""A scripted model: no account, no key, no network.

It speaks every protocol of the relay, streamed and not, and makes any agent do one piece of real
work: in its first turn it calls the agent's shell tool with a command that lists the files of the
working directory with their SHA-256 digests, writes them to REPORT.md and prints them; in its
second turn it quotes the digests it was given back. So a run proves that the agent, its tool, the
container, the relay and the way back all work, and the digests prove that the request's body
arrived. Requests that offer no tools (an agent that wants a title) get a few words.

A task may steer it with lines at its very beginning:

    rehearsal: command <shell>   call the tool with this command
    rehearsal: loop              call the tool again in every turn, without end
    rehearsal: slow <seconds>    wait before each event of the stream
    rehearsal: silent <seconds>  send nothing at all for that long, then answer
    rehearsal: status <code>     answer with this HTTP status and the protocol's own error body

The same request gets the same answer, identifiers and token counts included.
"""

from relay.rehearsal.app import create_rehearsal_app

__all__ = ["create_rehearsal_app"]
