"""What every process needs before any area loads: settings, cache, database connections, clocks."""
