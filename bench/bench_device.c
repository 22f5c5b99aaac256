/*
 * How near do the kernels of a device come to the bandwidth of its memory?
 *
 *   bench_device [LIBRARY [SAMPLES [ROWS [BANDWIDTH]]]]
 *
 * SAMPLES of a batch, default 16384; ROWS of the model, default 4 M; BANDWIDTH of the device's
 * memory in GB/s, where the device does not say it.
 *
 * Prints a line a model and kernel: calls, microseconds of a call (by the device's clock), MB that
 * it must move, GB/s, and the share of the device's bandwidth that these are. What a kernel must
 * move: each row of the batch once, in whole sectors of 32 bytes, as memory moves no less; of the
 * batch, its transposed index, slopes and sums each array once. Entries are drawn evenly, so that
 * nearly every one has a row of its own, which is the worst case. Exit status 77: no device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "engine/step/device/drps_device_worker.h"

enum { BATCHES = 8, TURNS = 6, SECTOR = 32, FIELDS = 39 };

static struct drps_device_use use;
static struct drps_device_about about;
static uint64_t model_rows = 4000000;
static size_t batch_samples = 16384;

struct example {
    const char *name, *algo;
    uint32_t factors, per_sample;
};
static const struct example examples[] = {
    {"lr", "lor", 0, FIELDS},    {"fm 8", "fm", 8, FIELDS}, {"fm 16", "fm", 16, FIELDS},
    {"fm 64", "fm", 64, FIELDS}, {"mf 16", "lmf", 16, 2},   {"mf 128", "lmf", 128, 2},
    {"ffm 4", "ffm", 4, FIELDS},
};

struct batch {
    struct drps_batch b;
    uint32_t *ids; /* own, as are the next ones */
    float *labels;
    uint32_t *local;
    uint16_t *fields;
};

static void die(const char *what, const struct drps_err *err)
{
    fprintf(stderr, "bench_device: %s: %s\n", what, err ? err->text : use.why);
    exit(1);
}

static void must(int rc, const char *what)
{
    if (rc < 0) die(what, NULL);
}

static void *array(size_t n, size_t size)
{
    void *a = calloc(n ? n : 1, size);
    if (!a) exit(1);
    return a;
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* ---- Batches ---- */

/* Draws a row for each entry, those of an entry's place from a range of their own; row 0 is the
 * intercept. */
static void make_batch(const struct example *e, uint64_t rows, uint64_t seed, struct batch *out)
{
    const size_t n = batch_samples, nnz = n * e->per_sample;
    const uint64_t range = (rows - 1) / e->per_sample;
    size_t m = 1;
    out->labels = array(n, sizeof(float));
    out->local = array(nnz, sizeof(uint32_t));
    out->fields = array(nnz, sizeof(uint16_t));
    out->ids = array(nnz + 1, sizeof(uint32_t));
    for (size_t j = 0; j < nnz; j++) {
        const uint64_t place = j % e->per_sample;
        out->local[j] = (uint32_t)(1 + place * range + drps_rng_at(seed, j) % range);
        out->fields[j] = (uint16_t)place;
        out->ids[j + 1] = out->local[j];
    }
    qsort(out->ids, nnz + 1, sizeof(uint32_t), compare);
    for (size_t j = 1; j <= nnz; j++)
        if (out->ids[j] != out->ids[m - 1]) out->ids[m++] = out->ids[j];
    for (size_t j = 0; j < nnz; j++) {
        const uint32_t *at = bsearch(&out->local[j], out->ids, m, sizeof(uint32_t), compare);
        if (!at) exit(1);
        out->local[j] = (uint32_t)(at - out->ids);
    }
    for (size_t s = 0; s < n; s++)
        out->labels[s] = drps_rng_at(~seed, s) % 2 ? 1 : -1;
    out->b = (struct drps_batch){.samples = n,
                                 .rows = m,
                                 .nnz = nnz,
                                 .labels = out->labels,
                                 .per_sample = e->per_sample,
                                 .local32 = out->local,
                                 .fields = out->fields};
}

static void drop_batch(struct batch *b)
{
    free(b->ids);
    free(b->labels);
    free(b->local);
    free(b->fields);
}

/* ---- What kernels must move ---- */

static double sectors(const struct batch *b, size_t stride, size_t bytes)
{
    double sum = 0;
    for (size_t r = 0; r < b->b.rows; r++) {
        const size_t at = b->ids[r] * stride % SECTOR;
        sum += (double)((at + bytes + SECTOR - 1) / SECTOR);
    }
    return sum * SECTOR;
}

static double must_move(const struct batch *b, const struct drps_server *server,
                        enum drps_device_kernel kernel)
{
    const struct drps_model *model = &server->model;
    const double n = (double)b->b.samples, m = (double)b->b.rows, nnz = (double)b->b.nnz;
    const double params = sectors(b, server->row_bytes, model->dim * sizeof(float));
    const double rows = sectors(b, server->row_bytes, server->row_bytes);
    const enum drps_scoring predictor = drps_algorithm(model->algo)->predictor;
    const double sums = predictor == DRPS_PREDICTOR_FM ? 4 * n * model->factors : 0;
    const int copies = predictor == DRPS_PREDICTOR_MF || predictor == DRPS_PREDICTOR_FFM;
    const double copy = copies ? 4 * m * model->dim : 0;
    switch (kernel) {
    case DRPS_DEVICE_FORWARD: /* entries, frames, labels; scores, slopes and sums */
        return params + 4 * nnz + 4 * m + 12 * n + sums;
    case DRPS_DEVICE_BACKWARD: /* rows twice; samples (and entries) of entries, ends and frames */
        return 2 * rows + (copies ? 8 : 4) * nnz + 8 * m + 4 * n + sums + copy;
    case DRPS_DEVICE_GATHER:
        return params + 4 * m + copy;
    default:
        return 0;
    }
}

/* ---- A model ---- */

static void settle(const struct example *e, struct drps_server *server)
{
    struct drps_model model;
    struct drps_optim optim;
    struct drps_err err = DRPS_ERR_INIT;
    const int is_mf = strcmp(e->algo, "lmf") == 0;
    int rc =
        drps_model_init(&model, e->algo, is_mf ? "squared" : "logistic", e->factors, !is_mf, &err);
    if (rc == 0)
        rc = drps_model_set_fields(&model, strcmp(e->algo, "ffm") == 0 ? FIELDS : 0, 0, &err);
    if (rc == 0) rc = drps_optim_init(&optim, "adagrad", &err);
    if (rc < 0) die(e->name, &err);
    drps_server_init(server, &model, &optim);
}

/* Zeros in all rows: what they are does not change what moves. */
static void *make_rows(uint64_t bytes)
{
    const size_t piece = 64 << 20;
    void *rows, *pinned;
    must(use.ops->alloc(use.dev, bytes, &rows, use.why), "rows");
    must(use.ops->pin(use.dev, piece, &pinned, use.why), "pinned memory");
    memset(pinned, 0, piece);
    for (uint64_t at = 0; at < bytes; at += piece)
        must(use.ops->upload(use.dev, DRPS_DEVICE_COMPUTE, (char *)rows + at, pinned,
                             bytes - at < piece ? bytes - at : piece, use.why),
             "upload");
    must(use.ops->mark(use.dev, DRPS_DEVICE_COMPUTE, DRPS_DEVICE_EVENTS_STORE, use.why), "mark");
    must(use.ops->wait(use.dev, DRPS_DEVICE_EVENTS_STORE, use.why), "wait");
    use.ops->unpin(use.dev, pinned);
    return rows;
}

static void train(struct drps_server *server, struct drps_device_worker *worker, void *rows,
                  const struct batch *batches, int turns)
{
    struct drps_err err = DRPS_ERR_INIT;
    double loss;
    int rc = 0;
    for (int i = 0; i < turns * BATCHES && rc >= 0; i++) {
        const struct batch *b = &batches[i % BATCHES];
        server->rows = (struct drps_rows){
            .base = rows, .stride = server->row_bytes, .index = b->ids, .n = b->b.rows};
        rc = drps_device_worker_train(worker, (uint64_t)(i % BATCHES), &b->b, &err);
        if (rc == 0) rc = drps_device_worker_take(worker, DRPS_DEVICE_UNDER_WAY, &loss, &err);
    }
    while (rc >= 0 && (rc = drps_device_worker_take(worker, 0, &loss, &err)) == 1)
        ;
    if (rc < 0) die("training", &err);
}

static void print(const struct example *e, const struct drps_server *server,
                  const struct batch *batches, const struct drps_device_times *before,
                  const struct drps_device_times *after)
{
    static const char *const names[] = {"forward", "backward", "pieces", "finish", "gather"};
    for (int k = 0; k <= DRPS_DEVICE_GATHER; k++) {
        const uint64_t calls = after->calls[k] - before->calls[k];
        const double seconds = after->seconds[k] - before->seconds[k];
        double bytes = 0;
        if (!calls) continue;
        for (int i = 0; i < BATCHES; i++)
            bytes += must_move(&batches[i], server, (enum drps_device_kernel)k) / BATCHES;
        const double speed = seconds > 0 ? bytes * (double)calls / seconds : 0;
        printf("%s,%s,%llu,%.1f,%.1f,%.0f,%.2f\n", e->name, names[k], (unsigned long long)calls,
               1e6 * seconds / (double)calls, bytes * 1e-6, speed * 1e-9,
               about.bytes_per_s > 0 ? speed / about.bytes_per_s : 0);
    }
}

static void run(const struct example *e)
{
    struct drps_server server;
    struct drps_device_worker *worker;
    struct batch batches[BATCHES];
    struct drps_device_times before, after;
    struct drps_err err = DRPS_ERR_INIT;
    settle(e, &server);
    uint64_t rows = model_rows;
    while (rows * server.row_bytes > about.free_bytes / 2)
        rows /= 2;
    struct drps_plan_info info = {.batches = BATCHES, .max_batch_samples = batch_samples};
    for (int i = 0; i < BATCHES; i++) {
        make_batch(e, rows, (uint64_t)i + 1, &batches[i]);
        info.max_batch_nnz = batches[i].b.nnz;
        if (batches[i].b.rows > info.max_batch_rows) info.max_batch_rows = batches[i].b.rows;
    }
    void *memory = make_rows(rows * server.row_bytes);
    struct drps_device_worker_needs needs;
    drps_device_worker_needs(use.ops, &server.model, &server.optim, &info, &needs);
    const struct drps_device_worker_parts parts = {
        .use = &use, .server = &server, .info = &info, .keep_bytes = needs.keep_most_bytes};
    if (drps_device_worker_open(&parts, &worker, &err) < 0) die(e->name, &err);
    train(&server, worker, memory, batches, 2);
    must(use.ops->times(use.dev, &before, use.why), "times");
    train(&server, worker, memory, batches, TURNS);
    must(use.ops->times(use.dev, &after, use.why), "times");
    print(e, &server, batches, &before, &after);
    drps_device_worker_close(worker);
    use.ops->release(use.dev, memory);
    for (int i = 0; i < BATCHES; i++)
        drop_batch(&batches[i]);
}

int main(int argc, char **argv)
{
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_device_open(argc > 1 && *argv[1] ? argv[1] : NULL, &use, &err);
    if (argc > 2) batch_samples = strtoull(argv[2], NULL, 10);
    if (argc > 3) model_rows = strtoull(argv[3], NULL, 10);
    if (rc < 0) {
        fprintf(stderr, "bench_device: skipped: %s\n", err.text);
        return rc == DRPS_E_NOT_FOUND || rc == DRPS_E_CONFIG ? 77 : 1;
    }
    must(use.ops->about(use.dev, &about, use.why), "about");
    if (argc > 4) about.bytes_per_s = strtod(argv[4], NULL) * 1e9;
    must(use.ops->time(use.dev, use.why), "clock");
    fprintf(stderr, "%s%s: %.1f GB free, %.0f GB/s\n", about.name,
            use.ops->emulated ? " (no figure of it means anything)" : "",
            (double)about.free_bytes * 1e-9, about.bytes_per_s * 1e-9);
    printf("model,kernel,calls,us,MB,GB_per_s,share\n");
    for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
        run(&examples[i]);
    drps_device_close(&use);
    return 0;
}
