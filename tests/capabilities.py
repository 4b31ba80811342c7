"""Run a command as other processors would, one after another, on this machine.

``python tests/capabilities.py pytest -q tests/models``, or ``--only avx2 make reproduce``.
Libraries choose their kernels by the processor, and round differently;
what holds on one processor by luck fails under another of these. The status is the number of
capabilities under which the command failed.
"""

import argparse
import os
import resource
import subprocess
import sys
import time

CAPABILITIES = {
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        "OPENBLAS_CORETYPE": "Haswell",
    },
    "sse": {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
        "OPENBLAS_CORETYPE": "Nehalem",
    },
    "compatible": {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default"},
    "threads": {"SHRINK_TEST_THREADS": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
}


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(CAPABILITIES), help="such as sse,threads")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    told, failed = [], 0
    for name in options.only.split(","):
        print(f"--- {name}: {CAPABILITIES[name]}", flush=True)
        started, before = time.perf_counter(), processor_seconds()
        status = subprocess.run(options.command, env=os.environ | CAPABILITIES[name]).returncode
        wall, used = time.perf_counter() - started, processor_seconds() - before
        told.append(f"{name:10}  status {status}  {wall:6.0f} s, {used:6.0f} s of a processor")
        failed += status != 0
    print("\n".join(told))
    return failed


if __name__ == "__main__":
    sys.exit(main())
