"""Checks a page of drps-stat --html against the JSON of what it shows.

report.py PAGE JSON...: the page is XML, stands alone, can be read aloud, and has the numbers of each manifest.
"""
import json
import re
import sys
import xml.etree.ElementTree as xml

page, manifests = sys.argv[1], [json.load(open(path)) for path in sys.argv[2:]]
text = open(page, encoding="utf-8").read()
root = xml.fromstring(text)
checked = 0


def fail(what):
    sys.exit("%s: %s" % (page, what))


def words(element):
    return "".join(element.itertext())


def check_stands_alone():
    for element in root.iter():
        if element.tag in ("script", "link", "img", "iframe", "object", "embed", "base", "image", "use", "form"):
            fail("it has an element " + element.tag)
        for name, value in element.attrib.items():
            if name.startswith("on") or (name in ("href", "src") and not re.fullmatch(r"#[a-z0-9]+", value)):
                fail("%s has %s=%r" % (element.tag, name, value))
    if re.search(r"https?:|url\(|@import", text):
        fail("it refers to something outside")


def check_read_aloud():
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    if len(ids) != len(set(ids)):
        fail("two elements have the same id")
    for svg in root.iter("svg"):
        if svg.get("role") == "img":
            for name in svg.get("aria-labelledby").split():
                label = [e for e in svg if e.get("id") == name]
                if len(label) != 1 or not words(label[0]).strip():
                    fail("a chart has no title or description")
    for table in root.iter("table"):
        heads = [th for th in table.iter("th") if th.get("scope") == "col"]
        if not words(table.find("caption")) or not heads:
            fail("a table has no caption, or no headers")
        for row in table.iter("tr"):
            if len(row) not in (len(heads), 1):
                fail("a row of %r has %d cells" % (words(table.find("caption")), len(row)))


def sections():
    """The part of each manifest, in their order."""
    return [s for s in root.iter("section") if s.get("aria-labelledby")]


def table(section, caption):
    """Rows of the table: a dictionary of the columns' names and their numbers, or texts."""
    found = [t for t in section.iter("table") if words(t.find("caption")).startswith(caption)]
    if len(found) != 1:
        return None
    heads = [words(th) for th in found[0].iter("th") if th.get("scope") == "col"]
    rows = []
    for row in found[0].find("tbody"):
        cells = [c.find("data").get("value") if c.find("data") is not None else words(c) for c in row]
        rows.append(list(zip(heads, cells)))
    return rows


def same(what, found, expected):
    global checked
    if expected is None or found is None:
        if found not in (None, "-") or expected is not None:
            fail("%s is %r, not %r" % (what, found, expected))
    elif isinstance(expected, str):
        if found != expected:
            fail("%s is %r, not %r" % (what, found, expected))
    elif float(found) != float(expected):
        fail("%s is %s, not %s" % (what, found, expected))
    checked += 1


def check_epochs(section, training):
    names = {"seconds": "seconds", "samples/s": "samples_per_s", "train loss": "train_loss", "test loss": "test_loss",
             "AUC": "test_auc", "accuracy": "test_accuracy", "RMSE": "test_rmse", "rows read": "read_bytes",
             "rows written": "written_bytes"}
    rows = table(section, "Epochs")
    if len(rows) != len(training["epochs"]):
        fail("%d epochs, not %d" % (len(rows), len(training["epochs"])))
    for row, epoch in zip(rows, training["epochs"]):
        same("epoch", row[0][1], epoch["epoch"])
        for head, value in row[1:]:
            same("epoch %d, %s" % (epoch["epoch"], head), value, epoch[names[head]])
    best = [r for r in section.iter("tr") if r.get("class") == "best"]
    if len(best) != 1 or (training.get("best_epoch") and words(best[0][0]) != str(training["best_epoch"])):
        fail("the best epoch is not set off")


def check_curve(section, training):
    """The points of the line of training losses: as many as epochs, and lower where the loss is lower."""
    figure = [f for f in section.iter("figure") if words(f.find("figcaption")) == "Loss by epoch"][0]
    line = [p for p in figure.iter("path") if p.get("class") == "line s0"][0].get("d")
    points = [tuple(map(float, p.split())) for p in re.findall(r"[ML]([-0-9. ]+)", line)]
    losses = [e["train_loss"] for e in training["epochs"]]
    if len(points) != len(losses):
        fail("the curve has %d points, not %d" % (len(points), len(losses)))
    for (x, y), (next_x, next_y), loss, later in zip(points, points[1:], losses, losses[1:]):
        if next_x <= x or (abs(later - loss) > 1e-3 * loss and (next_y > y) != (later < loss)):
            fail("the curve goes otherwise than the losses")


def check_training(section, model):
    training = model["training"]
    check_epochs(section, training)
    check_curve(section, training)
    if "phase_seconds" not in training:
        return
    for row in table(section, "Seconds by phase"):
        same("phase " + row[0][1], row[1][1], training["phase_seconds"][row[0][1]])
    for row, part in zip(table(section, "Memory that was set aside"), training["memory"]["parts"]):
        same("part", row[0][1], part["what"])
        same(part["what"], row[1][1], part["bytes"])
    process = dict((r[0][1], r[1][1]) for r in table(section, "The process"))
    same("limit", process["limit (--memory)"], training["memory"]["limit_bytes"])
    same("peak", process["largest resident set"], training["peak_rss_bytes"])
    forecast = table(section, "Forecast beside actual")
    if forecast:
        for row, key in zip(forecast, ("read_bytes", "written_bytes")):
            same("forecast of " + key, row[1][1], training["forecast"][key])
            same("the last epoch's " + key, row[2][1], training["epochs"][-1][key])
    histograms = [f for f in section.iter("figure") if words(f.find("figcaption")).startswith("Time of a")]
    expected = [d[k] for d in (training["io"], training["device"] or {}) for k in ("read_latency", "write_latency")
                if d.get(k)]
    if len(histograms) != len(expected):
        fail("%d histograms, not %d" % (len(histograms), len(expected)))
    for figure, latency in zip(histograms, expected):
        bars = [r for r in figure.iter("rect")]
        same("bars", len(bars), len([c for c in latency["counts"] if c]))
        same("calls", words(figure.find("p")).split()[0], sum(latency["counts"]))
    sent = ("rank", "sent_bytes", "forecast_sent_bytes", "received_bytes", "forecast_received_bytes")
    read = ("rank", "read_bytes", "written_bytes", "waiting_seconds", "waiting_share")
    for caption, keys in (("What each rank sent", sent), ("What each rank read", read)):
        ranks = training.get("ranks") or []
        rows = table(section, caption) or []
        same("ranks", len(rows), len(ranks))
        for row, rank in zip(rows, ranks):
            for (head, value), key in zip(row, keys):
                same("rank: " + head, value, rank[key])


def check_plan(section, plan):
    keys = {"training samples": "samples", "test samples": "test_samples", "training batches": "batches",
            "rows of the largest batch": "max_batch_rows", "blocks": "blocks"}
    captions = ["Samples and batches", "Blocks"]
    if not plan.get("windows_later"):
        keys["windows of an epoch"] = "windows"
        captions.append("Windows")
    found = dict((r[0][1], r[1][1]) for c in captions for r in table(section, c))
    for name, key in keys.items():
        same(name, found[name], plan[key])
    for row, forecast in zip(table(section, "What an epoch would move") or [], plan.get("forecast", [])):
        same("memory of a forecast", row[1][1], forecast["memory_bytes"])


def check_plan_files(section, plan):
    """Of one worker: each block is counted, and each window, if there are any, has its point."""
    if plan.get("cluster"):
        return
    same("blocks of all sizes", sum(int(row[1][1]) for row in table(section, "Sizes of blocks")), plan["blocks"])
    if plan.get("windows_later"):
        return
    figure = [f for f in section.iter("figure") if words(f.find("figcaption")) == "Rows of each window"][0]
    points = [re.findall(r"[ML]", p.get("d")) for p in figure.iter("path") if p.get("class", "").startswith("line s")]
    same("windows in the chart", len(points[0]), min(plan["windows"], 256))


check_stands_alone()
check_read_aloud()
if len(sections()) != len(manifests):
    fail("it shows %d folders, not %d" % (len(sections()), len(manifests)))
for section, manifest in zip(sections(), manifests):
    summary = dict((r[0][1], r[1][1]) for r in table(section, "Summary"))
    if "rows" in manifest:
        same("rows", summary["rows"], manifest["rows"])
    for command in (manifest.get("command"), manifest.get("plan_command"), manifest.get("training", {}).get("command")):
        if command and command not in [words(code) for code in section.iter("code")]:
            fail("the command line %r is not there" % command)
    if "training" in manifest:
        check_training(section, manifest)
    else:
        check_plan(section, manifest)
        check_plan_files(section, manifest)
if checked < 10:
    fail("only %d numbers were compared" % checked)
print("ok", page.split("/")[-1], checked, "numbers")
