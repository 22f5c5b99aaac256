#!/usr/bin/env python3
# Usage: images.py stripes SAMPLES SEED NAME [CHANNELS]
#        images.py enlarge FACTOR SAMPLES IMAGES LABELS NAME
# Writes NAME-images-idx3-ubyte, of several channels NAME-images-idx4-ubyte, and NAME-labels-idx1-ubyte. Stripes are images of
# 224 x 224 in ten classes, which say how far apart and how steep the stripes are; their place is random, in each channel, and so is
# a fourth of each number. Enlarged are the first samples of MNIST's
# files: each pixel becomes FACTOR x FACTOR pixels.
import lzma, random, struct, sys

SIDE, CLASSES = 224, 10

def stripes(rng, label):
    period, slope, place = 8 + 5 * (label % 5), 1 if label < 5 else -1, rng.randrange(SIDE)
    wave = bytes(0 if k % period < period // 2 else 192 for k in range(4 * SIDE + period))
    rows = b"".join(wave[at : at + SIDE] for at in (SIDE + slope * y + place for y in range(SIDE)))
    noise = int.from_bytes(rng.randbytes(SIDE * SIDE), "big") & int.from_bytes(b"\x3f" * (SIDE * SIDE), "big")
    return (int.from_bytes(rows, "big") | noise).to_bytes(SIDE * SIDE, "big")

def enlarged(images, side, factor):
    for at in range(0, len(images), side):
        row = bytes(v for v in images[at : at + side] for _ in range(factor))
        yield row * factor

def write(name, side, images, labels, channels=1):
    sizes = [len(labels)] + [channels] * (channels > 1) + [side, side]
    with open(f"{name}-images-idx{len(sizes)}-ubyte", "wb") as file:
        file.write(bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes))
        file.writelines(images)
    with open(name + "-labels-idx1-ubyte", "wb") as file:
        file.write(bytes([0, 0, 8, 1]) + struct.pack(">I", len(labels)) + bytes(labels))

def main():
    if sys.argv[1] == "stripes":
        samples, seed, name = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
        channels = int(sys.argv[5]) if len(sys.argv) > 5 else 1
        rng = random.Random(seed)
        labels = [s % CLASSES for s in range(samples)]
        write(name, SIDE, (stripes(rng, label) for label in labels for _ in range(channels)), labels, channels)
    else:
        factor, samples, images, labels, name = int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
        with lzma.open(images) as file:
            side = struct.unpack(">IIII", file.read(16))[3]
            small = file.read(samples * side * side)
        with lzma.open(labels) as file:
            file.read(8)
            write(name, side * factor, enlarged(small, side, factor), list(file.read(samples)))

main()
