"""Runs the converter for each month. A loop that looks at the job could show its progress one day."""

import subprocess
import sys
import time

lines = []
for month in range(1, 9):
    # The converter gets its data from a tape, which has to wind.
    job = subprocess.Popen(["sh", "-c", f"sleep 0.01; echo month {month}"], stdout=subprocess.PIPE, text=True)
    while job.poll() is None:
        time.sleep(0.2)
    lines.append(job.stdout.read())
    job.stdout.close()
sys.stdout.writelines(lines)
