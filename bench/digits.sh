# shellcheck shell=bash
# MNIST as libsvm text. Source it with `data` set.

digits_text() { # SET, train or t10k: a line an image, grey values of 0 to 1
    paste -d ' ' <(xz -dc "$data/mnist/$1-labels-idx1-ubyte.xz" | tail -c +9 | od -An -v -tu1 -w1) \
        <(xz -dc "$data/mnist/$1-images-idx3-ubyte.xz" | tail -c +17 | od -An -v -tu1 -w784) |
        awk '{printf "%s", $1; for (i = 2; i <= NF; i++) if ($i) printf " %d:%.4g", i - 1, $i / 255; print ""}'
}
