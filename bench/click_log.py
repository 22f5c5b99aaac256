#!/usr/bin/env python3
# Usage: click_log.py CLICKS SEED >FILE
# Prints a click log as advertisers have it: codes of address, app, device, system and channel, a time, and whether
# the app was then installed, of about one click in 400. Codes are whole numbers with gaps, some far more frequent than
# others. What an app, a channel, a system, an address and an hour add to the chance is fixed by the seed.
import bisect, itertools, math, random, sys

def codes(rng, n, most, power):
    """n codes of 0 .. most, the k-th most frequent with weight 1 / (k + 1) ** power."""
    names = rng.sample(range(most + 1), n)
    return names, list(itertools.accumulate((k + 1) ** -power for k in range(n)))

def draw(rng, table):
    names, sums = table
    return names[bisect.bisect_left(sums, rng.random() * sums[-1])]

def main():
    clicks, seed = int(sys.argv[1]), int(sys.argv[2])
    rng = random.Random(seed)
    columns = {"ip": codes(rng, 40000, 364000, 0.9), "app": codes(rng, 200, 760, 1.4), "device": codes(rng, 100, 3900, 3),
               "os": codes(rng, 120, 600, 1.2), "channel": codes(rng, 160, 500, 0.9)}
    spread = {"ip": 1.2, "app": 1.8, "device": 0.5, "os": 0.3, "channel": 1.2}
    effects = {c: {name: rng.gauss(0, spread[c]) for name in columns[c][0]} for c in columns}
    print("ip,app,device,os,channel,click_time,is_attributed")
    for i in range(clicks):
        second = int(i * 3 * 86400 / clicks)
        hour = second // 3600 % 24
        row = {c: draw(rng, columns[c]) for c in columns}
        score = -8.7 + sum(effects[c][row[c]] for c in columns) + 0.5 * math.sin(hour / 24 * 2 * math.pi)
        label = int(rng.random() < 1 / (1 + math.exp(-score)))
        when = "2017-11-%02d %02d:%02d:%02d" % (6 + second // 86400, hour, second // 60 % 60, second % 60)
        print(",".join(str(row[c]) for c in columns) + ",%s,%d" % (when, label))

main()
