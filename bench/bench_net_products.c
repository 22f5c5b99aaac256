/*
 * The least time of a net's steps: their products of matrices alone.
 *
 *   bench_net_products NET FIELDS CLASSES SAMPLES [TIMES [SEQUENCE]]
 *
 * NET is a name of index/layers/. For each conv, full and lstm layer OpenBLAS (one thread)
 * multiplies matrices of the layer's sizes: forward, by the weights, and by the input but of layers
 * that read the data; of conv sample by sample, of full all samples of a batch at once, of lstm
 * what goes from sample to sample step by step, for sequences of SEQUENCE (64) samples. Prints
 * seconds of the processor for a batch, the median of TIMES (5), and 10^9 multiplications and
 * additions a second.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DRPS_WITH_OPENBLAS
#include <cblas.h>
#endif

#include "base/drps_clock.h"
#include "index/layers/drps_layers.h"

#ifdef DRPS_WITH_OPENBLAS
enum { TIMES_MOST = 100 };

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_net_products: %s\n", what);
    exit(1);
}

static float *matrix(size_t rows, size_t columns)
{
    float *m = malloc(rows * columns * sizeof(*m));
    if (!m) die("no memory");
    for (size_t i = 0; i < rows * columns; i++)
        m[i] = (float)(i % 17) / 17 - 0.5f;
    return m;
}

/* Products of n rows of w floats with N x w weights. */
struct products {
    size_t n, w, N;
    int forward, by_weights, by_input; /* which of them */
    size_t times;
};

/* Returns the seconds; adds the multiplications to *count. */
static double multiply(struct products p, double *count)
{
    const int n = (int)p.n, w = (int)p.w, N = (int)p.N;
    float *a = matrix((size_t)n, (size_t)w), *weights = matrix((size_t)N, (size_t)w),
          *b = matrix((size_t)n, (size_t)N);
    const uint64_t start = drps_clock_thread_ns();
    for (size_t t = 0; t < p.times; t++) {
        if (p.forward)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, N, w, 1, a, w, weights, w, 0, b,
                        N);
        if (p.by_weights)
            cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, N, w, n, 1e-6f, b, N, a, w, 1,
                        weights, w);
        if (p.by_input)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, w, N, 1e-6f, b, N, weights, w,
                        0, a, w);
    }
    const double seconds = (double)(drps_clock_thread_ns() - start) * 1e-9;
    *count += (double)n * w * N * (double)p.times * (p.forward + p.by_weights + p.by_input);
    free(a);
    free(weights);
    free(b);
    return seconds;
}

static size_t width(const struct drps_layer *y)
{
    return (size_t)y->parts * y->each;
}

/* The seconds of a layer for a batch. */
static double layer(const struct drps_layers *l, const struct drps_layer *y, size_t samples,
                    size_t sequence, double *count)
{
    const struct drps_layer *a = &l->layers[y->input[0]];
    const int inner = a->kind != DRPS_LAYER_IMAGE && a->kind != DRPS_LAYER_NUMBERS;
    const size_t N = width(y), gates = 4 * N, seen = (size_t)y->kernel * y->kernel * a->each;
    switch (y->kind) {
    case DRPS_LAYER_CONV:
        return multiply((struct products){y->parts, seen, y->each, 1, 1, inner, samples}, count);
    case DRPS_LAYER_FULL:
        return multiply((struct products){samples, width(a), N, 1, 1, inner, 1}, count);
    case DRPS_LAYER_LSTM:
        return multiply((struct products){samples, width(a), gates, 1, 1, inner, 1}, count) +
               multiply((struct products){samples / sequence, N, gates, 1, 0, 1, sequence}, count) +
               multiply((struct products){samples, N, gates, 0, 1, 0, 1}, count);
    default:
        return 0;
    }
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static struct drps_layers l;
    struct drps_err err = DRPS_ERR_INIT;
    double seconds[TIMES_MOST], products = 0;
    if (argc < 5) die("bench_net_products NET FIELDS CLASSES SAMPLES [TIMES [SEQUENCE]]");
    const size_t samples = strtoul(argv[4], NULL, 10),
                 times = argc > 5 ? strtoul(argv[5], NULL, 10) : 5,
                 sequence = argc > 6 ? strtoul(argv[6], NULL, 10) : 64;
    if (!samples || samples > 100000 || !times || times > TIMES_MOST) die("too few or too many");
    if (!sequence) die("sequences have samples");
    if (drps_layers_named(&l, argv[1], 0, &err) < 0 ||
        drps_layers_shape(&l, (uint32_t)strtoul(argv[2], NULL, 10),
                          (uint32_t)strtoul(argv[3], NULL, 10), &err) < 0)
        die(err.text);
    if (l.has_sequences && samples % sequence) die("sequences must fill the batch");
    openblas_set_num_threads(1);
    for (size_t t = 0; t < times; t++) {
        products = 0;
        seconds[t] = 0;
        for (const struct drps_layer *y = l.layers; y < l.layers + l.n; y++)
            seconds[t] += layer(&l, y, samples, sequence, &products);
    }
    qsort(seconds, times, sizeof(*seconds), by_size);
    printf("%.4f %.2f\n", seconds[times / 2], products / seconds[times / 2] / 1e9);
    return 0;
}
#else
int main(void)
{
    (void)fprintf(stderr, "bench_net_products: drps was built without OpenBLAS\n");
    return 77;
}
#endif
