"""Runs the converter for each month, and waits for its end."""

import subprocess
import sys

lines = []
for month in range(1, 9):
    # The converter gets its data from a tape, which has to wind.
    job = subprocess.Popen(["sh", "-c", f"sleep 0.01; echo month {month}"], stdout=subprocess.PIPE, text=True)
    job.wait()
    lines.append(job.stdout.read())
    job.stdout.close()
sys.stdout.writelines(lines)
