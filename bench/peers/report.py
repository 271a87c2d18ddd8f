"""The result as a table for a terminal and as one self-contained HTML page."""

import html
import math

STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
td.off { color: #999 }
td.bad { color: #b00020 }
.won { font-weight: 600 }
svg text { font: 11px system-ui, sans-serif; fill: #444 }
"""
COLOURS = ["#d1495b", "#8d96a3", "#00798c", "#edae49", "#30638e", "#66a182", "#7b4b94", "#a0622d",
           "#2e4057", "#5b8c5a", "#c06c84", "#111111"]


def seconds_text(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"


def names(result):
    """All peers in the order of the first case that has them."""
    order = {}
    for case in result["cases"]:
        for name in case["peers"]:
            order.setdefault(name, None)
    return list(order)


def cell(case, name):
    """(text, class, tooltip) of one peer on one case."""
    peer = case["peers"].get(name)
    if peer is None:
        return "", "off", ""
    figures = peer.get("figures", {})
    if "median" not in figures:
        return peer["status"], "off", peer.get("why", "")
    text = f"{seconds_text(figures['median'])} · {100 * figures['part_of_peak']:.0f} %"
    if name in case["ratios"]:
        text += f" · {case['ratios'][name]['median']:.2f}x"
    tip = (f"{peer['version']}; {peer['detail']}; min {seconds_text(figures['least'])}, p90 "
           f"{seconds_text(figures['p90'])}; {figures['gflops']:.0f} GFLOP/s, "
           f"{figures['gbytes_per_second']:.1f} GB/s; {figures['readings_kept']} readings kept, "
           f"{figures['readings_discarded']} discarded; error {peer['error']:.1e}")
    if peer["status"] != "ok":
        return f"{text} · {peer['status']}", "bad", f"{peer.get('why', '')}; {tip}"
    return text, "won" if name == case["best_peer"] else "", tip


def table(result, group):
    columns = names(result)
    rows = ["<tr><th>case</th><th>GFLOP</th>" +
            "".join(f"<th>{html.escape(n)}</th>" for n in columns) + "<th>best peer</th></tr>"]
    for case in result["cases"]:
        if case["group"] != group:
            continue
        row = [f"<td>{html.escape(case['id'])}</td><td>{case['flops'] / 1e9:.3g}</td>"]
        for name in columns:
            text, kind, tip = cell(case, name)
            row.append(f'<td class="{kind}" title="{html.escape(tip)}">{html.escape(text)}</td>')
        best = case["best_peer"]
        row.append(f"<td>{case['ratios'][best]['median']:.2f}x {html.escape(best)}</td>" if best
                   else "<td></td>")
        rows.append("<tr>" + "".join(row) + "</tr>")
    found = result["groups"].get(group, {})
    for key, label in (("geomean", "geomean"), ("worst", "worst")):
        row = "".join(f"<td>{found[n][key]:.2f}x</td>" if n in found else "<td></td>"
                      for n in [*columns, "best"])
        rows.append(f"<tr><th>{label}</th><td></td>{row}</tr>")
    return "<table>" + "\n".join(rows) + "</table>"


def peer_notes(result):
    """Version and settings of each peer, or why it was not there."""
    rows = []
    for name in names(result):
        found = [c["peers"][name] for c in result["cases"] if name in c["peers"]]
        versions = {p["version"] for p in found if "version" in p}
        reasons = {}
        for peer in found:
            if peer["status"] != "ok":
                reasons.setdefault(peer.get("why", peer["status"]), []).append(peer)
        why = "; ".join(f"{len(p)} x {r}" for r, p in reasons.items())
        rows.append(f"<tr><td>{html.escape(name)}</td><td>{html.escape(', '.join(versions))}</td>"
                    f"<td style='text-align:left;white-space:normal'>{html.escape(why)}</td></tr>")
    for package, why in result["not_installed"].items():
        rows.append(f"<tr><td>{html.escape(package)}</td><td>not installed</td>"
                    f"<td style='text-align:left'>{html.escape(why)}</td></tr>")
    return ("<table><tr><th>peer</th><th>version</th><th style='text-align:left'>not measured</th>"
            "</tr>" + "\n".join(rows) + "</table>")


class LogAxis:
    """Maps values of a whole number of decades to pixels."""

    def __init__(self, values, begin, end):
        logs = [math.log10(v) for v in values]
        self.low, self.high = math.floor(min(logs)), math.ceil(max(logs))
        self.high = max(self.high, self.low + 1)
        self.begin, self.end = begin, end

    def at(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def decades(self):
        return [10.0**e for e in range(self.low, self.high + 1)]


def roofline(result):
    """GFLOP/s over flop per compulsory byte (weights, inputs and outputs once), with both roofs."""
    points = [(name, case["id"], case["flops"] / case["bytes"], peer["figures"]["gflops"])
              for case in result["cases"] for name, peer in case["peers"].items()
              if "median" in peer.get("figures", {}) and case["flops"]]
    if not points:
        return "<p>No readings.</p>"
    fma, read = result["best_burst"] / 1e9, result["roofs"]["read"] / 1e9
    ridge = fma / read
    x = LogAxis([p[2] for p in points] + [ridge], 60, 700)
    y = LogAxis([p[3] for p in points] + [fma], 420, 20)
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" width="900" height="470" role="img">']
    for value in x.decades():
        parts.append(f'<line x1="{x.at(value):.1f}" y1="20" x2="{x.at(value):.1f}" y2="420" '
                     f'stroke="#eee"/><text x="{x.at(value):.1f}" y="436" '
                     f'text-anchor="middle">{value:g}</text>')
    for value in y.decades():
        parts.append(f'<line x1="60" y1="{y.at(value):.1f}" x2="700" y2="{y.at(value):.1f}" '
                     f'stroke="#eee"/><text x="54" y="{y.at(value) + 4:.1f}" '
                     f'text-anchor="end">{value:g}</text>')
    left, bottom = 10.0**x.low, 10.0**y.low
    start = max(left, bottom / read)  # where the memory roof enters the plot
    parts.append(f'<polyline fill="none" stroke="#444" points="{x.at(start):.1f},'
                 f'{y.at(start * read):.1f} {x.at(ridge):.1f},{y.at(fma):.1f} 700,'
                 f'{y.at(fma):.1f}"/>')
    parts.append(f'<text x="696" y="{y.at(fma) - 6:.1f}" text-anchor="end">FMA peak {fma:.0f} '
                 f'GFLOP/s, memory {read:.0f} GB/s</text>')
    parts.append('<text x="380" y="458" text-anchor="middle">flop per compulsory byte</text>'
                 '<text x="60" y="12">GFLOP/s (direct convolution counted)</text>')
    order = names(result)
    for name, case, intensity, gflops in points:
        colour = COLOURS[order.index(name) % len(COLOURS)]
        parts.append(f'<circle cx="{x.at(intensity):.1f}" cy="{y.at(gflops):.1f}" r="4" '
                     f'fill="{colour}" fill-opacity="0.75"><title>{html.escape(name)}: '
                     f'{html.escape(case)}, {gflops:.0f} GFLOP/s</title></circle>')
    for i, name in enumerate(order):
        parts.append(f'<circle cx="724" cy="{30 + 18 * i}" r="5" '
                     f'fill="{COLOURS[i % len(COLOURS)]}"/><text x="736" y="{34 + 18 * i}">'
                     f'{html.escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>"


def page(result):
    groups = list(dict.fromkeys(case["group"] for case in result["cases"]))
    tables = "\n".join(f"<h2>{html.escape(g)}</h2>\n{table(result, g)}" for g in groups)
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"/><title>Tilewright and its peers</title>
<style>{STYLE}</style></head><body>
<h1>Tilewright and its peers</h1>
<p>{html.escape(result['machine'])}, {result['threads']} thread(s), {result['rounds']} interleaved
rounds. Strongest burst {result['best_burst'] / 1e9:.0f} GFLOP/s; readings beside a burst below
{100 * result.get('weak', 0.95):.0f} % of it are discarded.
Cells: median time, percent of the peak beside the reading (multiplications of direct convolution
counted, so fast algorithms exceed 100 %), and how many times as fast Tilewright is; details on
hover. f32, batch 1.</p>
{tables}
<h2>Roofline</h2>
{roofline(result)}
<h2>Peers</h2>
{peer_notes(result)}
</body></html>
"""


def text(result):
    """One line per case and peer."""
    lines = [f"best burst {result['best_burst'] / 1e9:.0f} GFLOP/s, memory "
             f"{result['roofs']['read'] / 1e9:.0f} GB/s, {result['threads']} thread(s)"]
    for case in result["cases"]:
        lines.append(f"{case['id']}  {case['flops'] / 1e9:.3g} GFLOP")
        for name, peer in case["peers"].items():
            shown, _, _ = cell(case, name)
            kept = peer.get("figures", {})
            count = (f"  [{kept['readings_kept']} kept, {kept['readings_discarded']} discarded, "
                     f"error {peer['error']:.0e}]" if kept else f"  {peer.get('why', '')[:150]}")
            lines.append(f"  {name:<18} {shown}{count}")
    return "\n".join(lines)
