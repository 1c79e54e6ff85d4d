"""What every process needs before any area: settings, cache, database connections, clocks, traces."""
