"""The loan servicing portal."""

import gc

# By default Python collects garbage after every 700 new objects, and every hundredth time it searches everything the
# portal has loaded, which stops all threads. A page creates tens of thousands of objects and drops them at its end, and
# what startup creates is never garbage.
gc.set_threshold(50_000)
