"""Five drills: killed while sending, the answer lost, a double click, a worker killed, a restore.

The other modules have what they share with other tests.
"""
