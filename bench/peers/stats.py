"""From readings to figures: which readings count, medians, ratios."""

import math
import statistics

WEAK = 0.95  # a reading beside a burst below this part of the best burst is discarded


def best_burst(result):
    """The strongest burst of the whole run, over all peers and cases."""
    bursts = [reading["burst"] for case in result["cases"] for peer in case["peers"].values()
              for reading in peer.get("readings", []) if reading is not None]
    return max(bursts, default=0.0)


def kept(readings, best, weak=WEAK):
    """The same list with None where the burst was weak or the reading failed."""
    return [r if r is not None and r["burst"] >= weak * best else None for r in readings]


def percentile(values, part):
    """Nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


def summarise(readings, best, flops, compulsory_bytes, weak=WEAK):
    """Figures of one peer on one case; only counts where no reading was quiet."""
    quiet = [r for r in kept(readings, best, weak) if r is not None]
    figures = {"readings_kept": len(quiet), "readings_discarded": len(readings) - len(quiet)}
    if not quiet:
        return figures
    seconds = [r["median"] for r in quiet]
    figures.update(
        median=statistics.median(seconds), least=min(r["least"] for r in quiet),
        p90=percentile(seconds, 0.9),
        gbytes_per_second=compulsory_bytes / statistics.median(seconds) / 1e9,
        gflops=flops / statistics.median(seconds) / 1e9,
        part_of_peak=statistics.median(flops / r["median"] / r["burst"] for r in quiet))
    return figures


def ratio(readings, base, best, weak=WEAK):
    """How many times the base is as fast, as the median over rounds in which both readings count,
    each time taken in units of the burst beside it; None where there is no such round."""
    pairs = [(a, b) for a, b in zip(kept(readings, best, weak), kept(base, best, weak)) if a and b]
    ratios = [(a["median"] * a["burst"]) / (b["median"] * b["burst"]) for a, b in pairs]
    if not ratios:
        return None
    return {"median": statistics.median(ratios), "low": percentile(ratios, 0.25),
            "high": percentile(ratios, 0.75), "rounds": len(ratios)}


def geomean(values):
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def evaluate(result, base="tilewright"):
    """Adds figures and ratios to each case and totals per group, in place. Peers whose results are
    wrong keep their figures but are no part of ratios, best or totals."""
    best = result["best_burst"] = max(best_burst(result), result.get("burst_floor", 0.0))
    weak = result.get("weak", WEAK)
    for case in result["cases"]:
        peers = case["peers"]
        for peer in peers.values():
            if "readings" in peer:
                peer["figures"] = summarise(peer["readings"], best, case["flops"],
                                            case["bytes"], weak)
                if not peer["figures"]["readings_kept"] and peer["status"] == "ok":
                    peer["status"], peer["why"] = "noisy", "no reading beside a strong burst"
        case["ratios"] = {}
        if peers.get(base, {}).get("status") == "ok":
            for name, peer in peers.items():
                if name != base and peer["status"] == "ok":
                    found = ratio(peer["readings"], peers[base]["readings"], best, weak)
                    if found:
                        case["ratios"][name] = found
        others = {n: r["median"] for n, r in case["ratios"].items() if not n.startswith(base)}
        case["best_peer"] = min(others, key=others.get) if others else None
    result["groups"] = totals(result["cases"])
    return result


def totals(cases):
    """{group: {peer or 'best': {geomean, worst, cases}}} of the ratios."""
    groups = {}
    for case in cases:
        columns = {n: r["median"] for n, r in case["ratios"].items()}
        if case["best_peer"]:
            columns["best"] = columns[case["best_peer"]]
        for name, value in columns.items():
            groups.setdefault(case["group"], {}).setdefault(name, []).append(value)
    return {group: {name: {"geomean": geomean(v), "worst": min(v), "cases": len(v)}
                    for name, v in columns.items()} for group, columns in groups.items()}
