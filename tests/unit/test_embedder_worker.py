"""The thread for local models, and things that belong to one event loop."""

import asyncio
import os
import subprocess
import sys
import threading
import time

from symfonic_pg.embedders.loops import PerLoop
from symfonic_pg.embedders.worker import Worker


async def test_work_runs_one_at_a_time_in_one_other_thread():
    worker = Worker("test")
    running = overlaps = 0

    def work():
        nonlocal running, overlaps
        overlaps += running
        running += 1
        time.sleep(0.002)
        running -= 1
        return threading.current_thread()

    threads = await asyncio.gather(*(worker.run(work) for _ in range(8)))
    assert overlaps == 0
    assert len(set(threads)) == 1
    assert threads[0] is not threading.current_thread()


async def test_a_call_whose_caller_has_gone_is_skipped():
    worker = Worker("test")
    begin = threading.Event()
    done = []
    first = asyncio.create_task(worker.run(begin.wait))
    second = asyncio.create_task(worker.run(lambda: done.append("second")))
    await asyncio.sleep(0.01)
    second.cancel()
    await asyncio.sleep(0)
    begin.set()
    await first
    await worker.run(lambda: done.append("third"))
    assert done == ["third"]


FORK = """
import asyncio, os, signal
from symfonic_pg.embedders.worker import Worker
worker = Worker("test")
assert asyncio.run(worker.run(lambda: 1)) == 1
child = os.fork()
if not child:
    signal.alarm(10)
    os._exit(asyncio.run(worker.run(lambda: 7)))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_gets_a_thread_of_its_own():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", FORK], env=environment, capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "7"


def test_each_event_loop_has_its_own_and_taking_forgets_it():
    own = PerLoop(object)

    async def twice():
        return own.get() is own.get(), own.get(), own.take(), own.take()

    same, first, taken, gone = asyncio.run(twice())
    assert same
    assert taken is first
    assert gone is None
    assert asyncio.run(twice())[1] is not first
