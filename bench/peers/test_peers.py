#!/usr/bin/env python3
"""Tests of the harness itself, with made-up readings: python3 bench/peers/test_peers.py"""

import math
import os
import sys
import unittest
from html.parser import HTMLParser

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import environment  # noqa: E402
import report  # noqa: E402
import stats  # noqa: E402
import worker  # noqa: E402

VOID = {"meta", "br"}


def reading(seconds, burst):
    return {"median": seconds, "least": 0.9 * seconds, "runs": 3, "burst": burst}


def peer(readings, **more):
    return dict({"status": "ok", "version": "1", "detail": "<made up & quoted>", "error": 0.0,
                 "readings": readings}, **more)


def made_up(peers, flops=2e9):
    case = {"id": "case/<a>&b", "group": "g", "flops": flops, "bytes": 1e6, "peers": peers}
    return {"machine": "m", "threads": 1, "rounds": 3, "roofs": {"fma": 1e11, "read": 4e10},
            "cases": [case], "not_installed": {"absent==1": "no such wheel"}}


class Balanced(HTMLParser):
    """Fails where tags do not nest, and on anything loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                raise AssertionError(f"refers to {value}")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


class Statistics(unittest.TestCase):
    def test_discards_weak_bursts_only(self):
        readings = [reading(1, 100), reading(2, 95), reading(3, 94.9), None]
        self.assertEqual([r and r["median"] for r in stats.kept(readings, 100)], [1, 2, None, None])

    def test_best_burst_is_of_the_whole_run(self):
        result = made_up({"tilewright": peer([reading(1, 90)] * 3),
                          "other": peer([reading(1, 100), None])})
        stats.evaluate(result)
        self.assertEqual(result["best_burst"], 100)
        self.assertEqual(result["cases"][0]["peers"]["tilewright"]["status"], "noisy")
        self.assertEqual(result["cases"][0]["ratios"], {})

    def test_known_peak_discards_a_run_that_was_weak_throughout(self):
        result = made_up({"tilewright": peer([reading(1, 90)] * 3)})
        result["burst_floor"] = 100
        stats.evaluate(result)
        self.assertEqual(result["cases"][0]["peers"]["tilewright"]["status"], "noisy")

    def test_figures(self):
        figures = stats.summarise([reading(s, 100) for s in (4, 1, 2)] + [reading(9, 50)], 100, 800,
                                  400)
        self.assertEqual(figures["median"], 2)
        self.assertEqual(figures["p90"], 4)
        self.assertAlmostEqual(figures["least"], 0.9)
        self.assertEqual((figures["readings_kept"], figures["readings_discarded"]), (3, 1))
        self.assertEqual(figures["part_of_peak"], 4)  # median of 8, 4, 2
        self.assertAlmostEqual(figures["gflops"], 400e-9)
        self.assertAlmostEqual(figures["gbytes_per_second"], 200e-9)

    def test_ratio_pairs_rounds_and_divides_by_the_burst(self):
        ours = [reading(1, 100), reading(1, 100), reading(1, 50), reading(1, 100)]
        theirs = [reading(2, 100), reading(3, 96), reading(100, 100), reading(100, 60)]
        found = stats.ratio(theirs, ours, 100)
        self.assertEqual(found["rounds"], 2)  # the last two rounds each lack one reading
        self.assertAlmostEqual(found["median"], (2 + 2.88) / 2)
        self.assertIsNone(stats.ratio(theirs[2:], ours[2:], 100))

    def test_best_peer_leaves_out_wrong_results_and_our_own_variants(self):
        base = [reading(1, 100)] * 3
        result = made_up({"tilewright": peer(base),
                          "tilewright-exact": peer([reading(1.1, 100)] * 3),
                          "slow": peer([reading(4, 100)] * 3), "fast": peer([reading(2, 100)] * 3),
                          "broken": peer([reading(0.1, 100)] * 3, status="wrong", why="differs")})
        stats.evaluate(result)
        case = result["cases"][0]
        self.assertEqual(case["best_peer"], "fast")
        self.assertNotIn("broken", case["ratios"])
        self.assertAlmostEqual(result["groups"]["g"]["best"]["geomean"], 2)
        self.assertAlmostEqual(case["ratios"]["tilewright-exact"]["median"], 1.1)

    def test_geomean(self):
        self.assertAlmostEqual(stats.geomean([1, 4]), 2)
        self.assertIsNone(stats.geomean([]))


class Timing(unittest.TestCase):
    def test_leaves_the_first_run_out(self):
        calls = []
        times = worker.run_times(lambda: calls.append(0), 0.001, 5)
        self.assertEqual((len(times), len(calls)), (5, 6))

    def test_a_long_run_is_one_reading(self):
        calls = []
        times = worker.run_times(lambda: calls.append(0), 0.0, 5)
        self.assertEqual((len(times), len(calls)), (1, 1))


class Page(unittest.TestCase):
    def check(self, result):
        parser = Balanced()
        text = report.page(stats.evaluate(result))
        parser.feed(text)
        self.assertEqual(parser.open, [])
        return text, parser.seen

    def test_is_well_formed_and_escaped(self):
        text, seen = self.check(made_up({
            "tilewright": peer([reading(0.01, 1e11)] * 3),
            "onnxruntime": peer([reading(0.02, 1e11)] * 3),
            "absent": {"status": "not available", "why": "no <wheel>"}}))
        self.assertTrue({"svg", "circle", "polyline", "table"} <= seen)
        self.assertIn("case/&lt;a&gt;&amp;b", text)
        self.assertIn("2.00x", text)
        self.assertIn("no &lt;wheel&gt;", text)  # what is not available is said, not dropped
        self.assertIn("no such wheel", text)

    def test_survives_no_readings(self):
        text, seen = self.check(made_up({"absent": {"status": "not available", "why": "gone"}}))
        self.assertNotIn("svg", seen)
        self.assertIn("gone", report.text(stats.evaluate(made_up(
            {"absent": {"status": "not available", "why": "gone"}}))))

    def test_axis_spans_whole_decades(self):
        axis = report.LogAxis([3, 250], 0, 300)
        self.assertEqual((axis.low, axis.high), (0, 3))
        self.assertTrue(math.isclose(axis.at(10), 100))


class Requirements(unittest.TestCase):
    def test_sections(self):
        text = "# words\na==1\n\n# prefix: p\nb==2\nc==3\n"
        self.assertEqual(environment.parse_requirements(text),
                         [("", ["a==1"]), ("p", ["b==2", "c==3"])])


if __name__ == "__main__":
    unittest.main()
