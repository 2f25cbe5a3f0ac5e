"""Every bench, one after the other: `make bench`."""

from tests.bench import link_call, real_agents, relay_latency, run_cost

if __name__ == "__main__":
    relay_latency.main()
    link_call.main()
    run_cost.main()
    real_agents.main()
