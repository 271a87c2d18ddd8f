#!/usr/bin/env python3
"""How far calibrations of one machine differ: as it is, beside busy loops, and with a clock that loses time.

  bench/calibrations.py --count 20                    as the machine is
  bench/calibrations.py --count 20 --busy 2           beside two endless loops
  bench/calibrations.py --count 200 --faulty-clock    in one of 1 000 readings the clock stands 30 us behind
  bench/calibrations.py --reference 231.2 ...         deviations from this peak, not from the median

Each calibration begins with an empty cache and is followed by a `compile`, which must not measure again. The peak is
that of f32 on one core, in GFLOP/s. Exit code 1 where a later verb measured again, or a calibration failed.
"""
import argparse
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# In front of the C library's function: from time to time a reading lies 30 us before the true time, and so does what
# follows for the rest of that millisecond, as where a hypervisor corrects a guest's clock.
CLOCK = r"""
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* time) {
  static _Thread_local unsigned readings;
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && clock == CLOCK_MONOTONIC && ++readings % 1000 == 0) {
    time->tv_nsec -= 30000;
    if (time->tv_nsec < 0) { time->tv_nsec += 1000000000; time->tv_sec -= 1; }
  }
  return result;
}
"""


def built_clock(folder):
    """A library for LD_PRELOAD."""
    source, library = os.path.join(folder, "clock.c"), os.path.join(folder, "clock.so")
    with open(source, "w") as file:
        file.write(CLOCK)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def calibrated(program, folder, environment):
    """The peak that one calibration keeps and its verdict; and whether the next verb measured again."""
    cache = os.path.join(folder, "cache")
    environment = {**environment, "TILEWRIGHT_CACHE_DIR": cache}
    environment.pop("TILEWRIGHT_CALIBRATE", None)
    subprocess.run(["rm", "-rf", cache], check=True)
    first = subprocess.run([program, "--progress", "none", "calibrate"], env=environment, capture_output=True, text=True)
    kept = glob.glob(os.path.join(cache, "rates", "*.json"))
    if first.returncode != 0 or len(kept) != 1:
        sys.exit(f"calibrate failed with {first.returncode}: {first.stderr}")
    with open(kept[0]) as file:
        rates = json.load(file)["rates"]
    before = os.stat(kept[0]).st_mtime_ns
    subprocess.run([program, "--progress", "none", "compile", os.path.join(ROOT, "examples", "02_gemm_relu.tw"), "-o",
                    os.path.join(folder, "p.twm")], env=environment, capture_output=True, check=True)
    verdict = [line for line in first.stdout.splitlines() if line.startswith("verdict:")]
    assumed = "f32" in rates.get("assumed", [])
    return (None if assumed else rates["f32"]), (verdict or ["?"])[0], os.stat(kept[0]).st_mtime_ns != before


def report(peaks, again, reference):
    known = [peak for peak in peaks if peak]
    middle = reference or statistics.median(known)
    off = sorted(abs(peak / middle - 1) for peak in known)
    print(f"\n{len(peaks)} calibrations, {len(peaks) - len(known)} without a peak of their own, {again} measured again")
    print(f"peak: median {statistics.median(known):.1f}, least {min(known):.1f}, most {max(known):.1f} GFLOP/s")
    print(f"off {middle:.1f}: median {off[len(off) // 2]:.1%}, 95 of 100 within {off[int(0.95 * (len(off) - 1))]:.1%}, "
          f"worst {off[-1]:.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "release", "tilewright"))
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--busy", type=int, default=0, help="endless loops beside it")
    parser.add_argument("--faulty-clock", action="store_true")
    parser.add_argument("--reference", type=float, help="the peak to compare with")
    options = parser.parse_args()
    environment = dict(os.environ)
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(options.busy)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            if options.faulty_clock:
                environment["LD_PRELOAD"] = built_clock(folder)
            peaks, again = [], 0
            for number in range(options.count):
                peak, verdict, measured_again = calibrated(os.path.abspath(options.program), folder, environment)
                peaks.append(peak)
                again += measured_again
                print(f"{number + 1:4} {f'{peak:8.1f}' if peak else '       -'}  load {os.getloadavg()[0]:.1f}  {verdict}", flush=True)
    finally:
        for loop in loops:
            loop.kill()
    report(peaks, again, options.reference)
    return 1 if again else 0


if __name__ == "__main__":
    sys.exit(main())
