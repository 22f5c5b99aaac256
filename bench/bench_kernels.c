/*
 * How many samples a second one core trains when everything is in memory: whole steps (gather,
 * gradient, optimizer) over a synthetic stream of batches, for the kernels and for their plain
 * twins, which must agree first.
 *
 *   click data  39 fields, cardinality 3 to 2 M, 5 M rows in all, Zipf 1.05 within each field;
 * AdaGrad; all values 1 ratings     138 k users, 27 k items, Zipf 0.6 and 0.9; AdaGrad
 *   words       39 of 39 x 1000, Zipf 1.05; 10, 20 and 100 classes; AdaGrad
 *
 * Rows lie scattered within their field, as they do without a layout. Each number is the median of
 * 5 runs.
 *
 *   bench_kernels [--seconds S]     S seconds a run and kernel, 0.5 unless told
 *                 [--instructions I] baseline, avx2 or avx512; the highest there is unless told
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/drps_clock.h"
#include "base/kernel/drps_level.h"
#include "base/drps_rng.h"
#include "engine/model/drps_model.h"
#include "engine/model/drps_optim.h"

enum { SAMPLES = 1000, RUNS = 5, MAX_FIELDS = 39 };

struct field {
    uint64_t first, rows;
    double zipf;
};

struct stream {
    const char *name;
    struct field fields[MAX_FIELDS];
    uint32_t n_fields;
    uint32_t classes; /* labels are numbers below it; 0: -1 and +1 */
    uint64_t rows;
    size_t n_batches;
    struct drps_batch *batches;
    uint32_t **index; /* [n_batches][rows of the batch], increasing */
    size_t max_rows, sum_rows;
};

static void *must(void *p)
{
    if (p) return p;
    fprintf(stderr, "bench_kernels: out of memory\n");
    exit(1);
}

/* Zeroed memory in huge pages where the kernel agrees. */
static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return must(NULL);
    (void)madvise(p, bytes, MADV_HUGEPAGE); /* advice only */
    return p;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* A row of the field: inversion of the continuous power law, then an affine permutation of the
 * ranks. */
static uint64_t draw(const struct field *f, double u)
{
    const double a = 1 - f->zipf;
    const double top = pow((double)f->rows + 1, a);
    uint64_t rank = (uint64_t)pow(1 + u * (top - 1), 1 / a) - 1;
    if (rank >= f->rows) rank = f->rows - 1;
    uint64_t odd = 2654435761u;
    while (gcd(odd, f->rows) != 1)
        odd++;
    return f->first + (rank % f->rows * (odd % f->rows)) % f->rows;
}

static int by_value(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void build(struct stream *st, size_t n_batches, uint64_t seed)
{
    const size_t nnz = (size_t)SAMPLES * st->n_fields;
    uint32_t *seen = must(calloc(st->rows, sizeof(*seen))),
             *local = must(calloc(st->rows, sizeof(*local)));
    uint32_t *ids = must(malloc(nnz * sizeof(*ids))),
             *distinct = must(malloc((nnz + 1) * sizeof(*distinct)));
    uint64_t r = 0;

    st->n_batches = n_batches;
    st->batches = must(calloc(n_batches, sizeof(*st->batches)));
    st->index = must(calloc(n_batches, sizeof(*st->index)));
    for (size_t t = 0; t < n_batches; t++) {
        uint16_t *local16 = must(malloc(nnz * sizeof(*local16)));
        float *labels = must(malloc(SAMPLES * sizeof(*labels)));
        size_t m = 0;
        distinct[m++] = 0; /* the intercept */
        for (size_t j = 0; j < nnz; j++) {
            ids[j] = (uint32_t)draw(&st->fields[j % st->n_fields],
                                    drps_unit_double(drps_rng_at(seed, r++)));
            if (seen[ids[j]] != t + 1) distinct[m++] = ids[j];
            seen[ids[j]] = (uint32_t)t + 1;
        }
        qsort(distinct, m, sizeof(*distinct), by_value);
        for (size_t l = 0; l < m; l++)
            local[distinct[l]] = (uint32_t)l;
        for (size_t j = 0; j < nnz; j++)
            local16[j] = (uint16_t)local[ids[j]];
        for (size_t s = 0; s < SAMPLES; s++)
            labels[s] = st->classes                  ? (float)(drps_rng_at(seed, r++) % st->classes)
                        : drps_rng_at(seed, r++) & 3 ? -1.0f
                                                     : 1.0f;
        st->index[t] = must(malloc(m * sizeof(*distinct)));
        memcpy(st->index[t], distinct, m * sizeof(*distinct));
        st->batches[t] = (struct drps_batch){.samples = SAMPLES,
                                             .rows = m,
                                             .nnz = nnz,
                                             .labels = labels,
                                             .per_sample = st->n_fields,
                                             .local16 = local16};
        st->max_rows = m > st->max_rows ? m : st->max_rows;
        st->sum_rows += m;
    }
    free(seen);
    free(local);
    free(ids);
    free(distinct);
    printf("%s: %llu rows, %zu batches of %d samples with %u entries, %.0f distinct rows a batch\n",
           st->name, (unsigned long long)st->rows, n_batches, SAMPLES, st->n_fields,
           (double)st->sum_rows / (double)n_batches);
}

static void unbuild(struct stream *st)
{
    for (size_t t = 0; t < st->n_batches; t++) {
        free((void *)(uintptr_t)st->batches[t].local16); /* own: made by build() */
        free((void *)(uintptr_t)st->batches[t].labels);
        free(st->index[t]);
    }
    free(st->batches);
    free(st->index);
}

static void click_fields(struct stream *st)
{
    static const uint32_t rows[MAX_FIELDS] = {
        3,     3,     4,     4,     7,      10,     14,     15,      18,     20,
        24,    27,    31,    40,    60,     90,     100,    105,     120,    150,
        180,   200,   305,   500,   580,    633,    1000,   1500,    2200,   3200,
        12000, 30000, 60000, 93000, 280000, 430000, 690000, 1400000, 2000000};
    uint64_t next = 1;

    st->name = "click data";
    st->n_fields = MAX_FIELDS;
    for (uint32_t f = 0; f < MAX_FIELDS; f++) {
        st->fields[f] = (struct field){.first = next, .rows = rows[f], .zipf = 1.05};
        next += rows[f];
    }
    st->rows = next;
}

static void rating_fields(struct stream *st)
{
    st->name = "ratings";
    st->n_fields = 2;
    st->fields[0] = (struct field){.first = 1, .rows = 138493, .zipf = 0.6};
    st->fields[1] = (struct field){.first = 138494, .rows = 26744, .zipf = 0.9};
    st->rows = 138494 + 26744;
}

static void word_fields(struct stream *st)
{
    st->name = "words";
    st->n_fields = MAX_FIELDS;
    st->classes = 10;
    for (uint32_t f = 0; f < MAX_FIELDS; f++)
        st->fields[f] = (struct field){.first = 1 + 1000 * f, .rows = 1000, .zipf = 1.05};
    st->rows = 1 + 1000 * MAX_FIELDS;
}

struct kernels {
    const char *name;
    double (*gradient)(const struct drps_model *, const struct drps_batch *, size_t, size_t,
                       const float *, float *, float *, void *);
    void (*step)(const struct drps_optim *, uint32_t, const struct drps_rows *, size_t, size_t,
                 const float *, const uint32_t *, size_t);
};

static const struct kernels fast = {"kernels", drps_model_gradient, drps_optim_step};
static const struct kernels plain = {"twins", drps_model_gradient_ref, drps_optim_step_ref};

struct run {
    const struct stream *stream;
    struct drps_model model;
    struct drps_optim optim;
    char *table;
    size_t table_bytes;
    size_t stride;
    float *params, *grads, *scores;
    void *scratch;
    float loss; /* keeps the work alive */
};

/* `rank`: factors, or with words how many classes there are. */
static void run_open(struct run *r, const struct stream *st, const char *algo, uint32_t rank)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int classes = st->classes ? (int)rank : strcmp(algo, "lmf") != 0;

    *r = (struct run){.stream = st};
    if (drps_model_init(&r->model, algo, NULL, st->classes ? 0 : rank, classes, &err) < 0 ||
        drps_optim_init(&r->optim, "adagrad", &err) < 0) {
        fprintf(stderr, "bench_kernels: %s\n", err.text);
        exit(1);
    }
    const size_t dim = r->model.dim;
    r->stride = drps_optim_row_floats(&r->optim, (uint32_t)dim) * sizeof(float);
    r->table_bytes = st->rows * r->stride;
    r->table = pages(r->table_bytes);
    for (uint64_t id = 0; id < st->rows; id++) {
        float *row = (float *)(void *)(r->table + id * r->stride);
        drps_model_init_row(&r->model, id, row);
        drps_optim_init_row(&r->optim, r->model.dim, id == 0, row);
    }
    r->params = pages(st->max_rows * dim * sizeof(float));
    r->grads = pages(st->max_rows * dim * sizeof(float));
    r->scores = must(malloc(SAMPLES * r->model.outputs * sizeof(float)));
    r->scratch = must(malloc(drps_model_scratch_bytes(&r->model, SAMPLES, st->max_rows) + 1));
}

static void run_close(struct run *r)
{
    munmap(r->table, r->table_bytes);
    munmap(r->params, r->stream->max_rows * r->model.dim * sizeof(float));
    munmap(r->grads, r->stream->max_rows * r->model.dim * sizeof(float));
    free(r->scores);
    free(r->scratch);
}

/* One step; ns [3] gains the time of gather, gradient (with zeroing) and optimizer. */
static void step(struct run *r, const struct kernels *k, size_t t, uint64_t ns[3])
{
    const struct drps_batch *b = &r->stream->batches[t];
    const struct drps_rows rows = {
        .base = r->table, .stride = r->stride, .index = r->stream->index[t], .n = b->rows};
    const uint32_t dim = r->model.dim;

    const uint64_t t0 = drps_clock_ns();
    drps_rows_gather(&rows, dim, 0, b->rows, r->params);
    const uint64_t t1 = drps_clock_ns();
    memset(r->grads, 0, b->rows * dim * sizeof(float));
    r->loss +=
        (float)k->gradient(&r->model, b, 0, b->samples, r->params, r->grads, r->scores, r->scratch);
    const uint64_t t2 = drps_clock_ns();
    k->step(&r->optim, dim, &rows, 0, b->rows, r->grads, NULL, drps_model_common_rows(&r->model));
    const uint64_t t3 = drps_clock_ns();
    ns[0] += t1 - t0;
    ns[1] += t2 - t1;
    ns[2] += t3 - t2;
}

/* Run both variants on a few batches from the same rows; exit when they differ. */
static void validate(struct run *r)
{
    const size_t dim = r->model.dim, score_n = SAMPLES * r->model.outputs;
    float *grads = must(malloc(r->stream->max_rows * dim * sizeof(float)));
    float *scores = must(malloc(score_n * sizeof(*scores)));
    uint64_t ns[3] = {0};
    double worst = 0;

    for (size_t t = 0; t < 2; t++) {
        const struct drps_batch *b = &r->stream->batches[t];
        step(r, &plain, t, ns); /* params are the gathered ones also after the step */
        memcpy(grads, r->grads, b->rows * dim * sizeof(float));
        memcpy(scores, r->scores, score_n * sizeof(*scores));
        memset(r->grads, 0, b->rows * dim * sizeof(float));
        (void)fast.gradient(&r->model, b, 0, b->samples, r->params, r->grads, r->scores,
                            r->scratch);
        for (size_t i = 0; i < b->rows * dim; i++) {
            const double e =
                fabs((double)grads[i] - (double)r->grads[i]) / (1 + fabs((double)grads[i]));
            worst = e > worst ? e : worst;
        }
        for (size_t s = 0; s < score_n; s++) {
            const double e =
                fabs((double)scores[s] - (double)r->scores[s]) / (1 + fabs((double)scores[s]));
            worst = e > worst ? e : worst;
        }
    }
    free(grads);
    free(scores);
    if (worst < 1e-4) return; /* float sums of up to 1000 terms in another order */
    fprintf(stderr, "bench_kernels: kernels and twins differ by %g\n", worst);
    exit(1);
}

static int by_speed(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(struct run *r, const struct kernels *k, const char *name, double seconds)
{
    double speeds[RUNS][4]; /* samples a second, then ns a sample of each part */
    size_t t = 0;

    for (int run = 0; run < RUNS; run++) {
        uint64_t ns[3] = {0};
        const uint64_t start = drps_clock_ns();
        size_t steps = 0;
        do {
            step(r, k, t++ % r->stream->n_batches, ns);
            steps++;
        } while (drps_seconds_since(start) < seconds);
        const double samples = (double)steps * SAMPLES;
        speeds[run][0] = samples / drps_seconds_since(start);
        for (int p = 0; p < 3; p++)
            speeds[run][1 + p] = (double)ns[p] / samples;
    }
    qsort(speeds, RUNS, sizeof(speeds[0]), by_speed);
    const double *m = speeds[RUNS / 2];
    printf("%-10s %-8s %9.3f M samples/s   ns a sample: gather %7.1f  gradient %8.1f  step %7.1f\n",
           name, k->name, m[0] * 1e-6, m[1], m[2], m[3]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
                                            {"instructions", required_argument, NULL, 'i'},
                                            {NULL, 0, NULL, 0}};
    static const struct {
        const char *name, *algo;
        uint32_t rank;
        int stream;
    } cases[] = {
        {"lr", "lor", 0, 0},        {"fm k=8", "fm", 8, 0},       {"fm k=16", "fm", 16, 0},
        {"mf k=16", "lmf", 16, 1},  {"mf k=64", "lmf", 64, 1},    {"mlr J=10", "mlr", 10, 2},
        {"mlr J=20", "mlr", 20, 2}, {"mlr J=100", "mlr", 100, 2}, {"svm J=20", "svm", 20, 2},
    };
    struct stream streams[3] = {{0}};
    struct drps_err err = DRPS_ERR_INIT;
    double seconds = 0.5;
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 's') seconds = atof(optarg);
        if (c == 'i' && drps_level_set(optarg, &err) == 0) continue;
        if (c != 's' || seconds <= 0) {
            fprintf(stderr, "%s\nusage: bench_kernels [--seconds S] [--instructions I]\n",
                    err.text);
            return 2;
        }
    }
    click_fields(&streams[0]);
    rating_fields(&streams[1]);
    word_fields(&streams[2]);
    build(&streams[0], 256, 1);
    build(&streams[1], 1024, 2);
    build(&streams[2], 64, 3);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct run r;
        run_open(&r, &streams[cases[i].stream], cases[i].algo, cases[i].rank);
        validate(&r);
        measure(&r, &fast, cases[i].name, seconds);
        measure(&r, &plain, cases[i].name, seconds);
        run_close(&r);
    }
    unbuild(&streams[0]);
    unbuild(&streams[1]);
    unbuild(&streams[2]);
    return 0;
}
