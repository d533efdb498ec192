#!/bin/sh
# How many compile jobs fit: one for each processor, and one for each 2 GiB of memory that is free (a source file that includes
# torch takes 1.4 GB).
free_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null)
jobs=$(nproc 2>/dev/null || echo 1)
fit=$(( ${free_kib:-2097152} / 2097152 ))
[ "$fit" -lt "$jobs" ] && jobs=$fit
[ "$jobs" -lt 1 ] && jobs=1
echo "$jobs"
