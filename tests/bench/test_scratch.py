import threading
import time
from contextlib import suppress

from bench.scratch import scratch_directory


def test_a_scratch_directory_is_removed_although_upkeep_still_writes_to_it() -> None:
    with scratch_directory() as place:

        def write() -> None:
            until = time.monotonic() + 0.5
            with suppress(FileNotFoundError):
                while time.monotonic() < until:
                    (place / str(time.monotonic_ns())).mkdir(exist_ok=True)

        writer = threading.Thread(target=write)
        writer.start()
    writer.join()
    assert not place.exists()
