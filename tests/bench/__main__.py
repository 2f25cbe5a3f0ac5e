"""Every bench, one after the other: `make bench`."""

from tests.bench import real_agents, run_cost

if __name__ == "__main__":
    run_cost.main()
    real_agents.main()
