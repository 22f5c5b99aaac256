# shellcheck shell=bash
# MNIST as libsvm text, or what stands for it. Source it with `data` set.

digits_text() { # SET, train or t10k: a line an image, grey values of 0 to 1
    paste -d ' ' <(xz -dc "$data/mnist/$1-labels-idx1-ubyte.xz" | tail -c +9 | od -An -v -tu1 -w1) \
        <(xz -dc "$data/mnist/$1-images-idx3-ubyte.xz" | tail -c +17 | od -An -v -tu1 -w784) |
        awk '{printf "%s", $1; for (i = 2; i <= NF; i++) if ($i) printf " %d:%.4g", i - 1, $i / 255; print ""}'
}

# digits_generated LINES: images of ten kinds: a kind has a seventh of the pixels, an image most of these and a few others
digits_generated() {
    awk -v lines="$1" '
        function below(n) { state = (state * 16807) % 2147483647; return state % n }
        BEGIN {
            state = 1
            for (kind = 0; kind < 10; kind++) for (i = 1; i <= 784; i++) has[kind, i] = below(7) == 0
            for (line = 0; line < lines; line++) {
                kind = below(10)
                printf "%d", kind
                for (i = 1; i <= 784; i++) if (has[kind, i] ? below(5) : below(40) == 0) printf " %d:%.2f", i, (1 + below(100)) / 100
                print ""
            }
        }'
}
