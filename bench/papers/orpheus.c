/*
 * Bytes of checkpoints: Xie et al., "Orpheus", Table 4, as far as bytes tell it.
 *
 *   bench_orpheus MODEL ROUNDS [SCRATCH]
 *
 * MODEL is mlr, tm or lstm: a matrix of the paper's size, whose updates are a round's vectors of
 * 34 or 40 workers, 100 samples each. Printed, as JSON: bytes that a worker writes in ROUNDS rounds
 * with a checkpoint of the matrix every 100 of them ("full"; with one after each it is a hundred
 * times that), and with a log of vectors after each, for the vectors that are logged: its own; its
 * own and 25 of each of the 4 workers that reach it; its own and 25 of each other's; all of
 * everybody's. The sizes are those that the library says a round has.
 *
 * With SCRATCH, a folder: the same for a matrix a hundredth as wide and high, written there, to
 * show that files have the bytes that are counted; it fails where they have not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_rng.h"
#include "engine/checkpoint/vectors/drps_vector_log.h"

enum {
    BATCH = 100,
    CHOSEN = 25,
    RECEIVED = 4,
    EVERY = 100,
    ALL = 1 << 20,
    SMALLER = 100,
    ROUNDS_MOST = 1 << 20
};

static const struct model {
    const char *name;
    uint32_t rows, dim, nnz, workers; /* nnz: of an x; rows: it is dense */
} models[] = {
    {"mlr", 20000, 325000, 100, 34},
    {"tm", 50000, 141000, 100, 34},
    {"lstm", 40000, 40000, 40000, 40},
};

/* Vectors that a worker applies in a round: batches of samples. */
static const struct applied {
    const char *name;
    uint32_t own, others; /* samples of its own, and of each other batch */
    uint32_t received;    /* batches; ALL: of all other workers */
} ways[] = {
    {"own", BATCH, 0, 0},
    {"multicast", BATCH, CHOSEN, RECEIVED},
    {"chosen", BATCH, CHOSEN, ALL},
    {"all", BATCH, BATCH, ALL},
};

static void die(const char *text)
{
    fprintf(stderr, "bench_orpheus: %s\n", text);
    exit(1);
}

static void *must(void *p)
{
    if (!p) die("out of memory");
    return p;
}

/* ---- Rounds ---- */

/* A round of which only the numbers are real: what is counted does not look at values. */
struct made {
    struct drps_vectors *batches;
    uint32_t *sources, *first, *ids;
    float *values;
    struct drps_vector_round round;
};

static uint32_t batches_of(const struct model *m, const struct applied *way)
{
    return 1 + (way->received == ALL ? m->workers - 1 : way->received);
}

/* A sample's features are spread over the rows, at another place each. */
static void number_samples(struct made *r, const struct model *m)
{
    for (uint32_t i = 0; i <= BATCH; i++)
        r->first[i] = i * m->nnz;
    for (uint32_t i = 0; i < BATCH; i++)
        for (uint32_t k = 0; k < m->nnz; k++) {
            const uint32_t step = m->rows / m->nnz;
            r->ids[i * m->nnz + k] = k * step + (step > 1 ? i * 7 % step : 0);
        }
}

/* `values`: room for the largest array of floats that is looked at; NULL: none is. */
static struct made make(const struct model *m, const struct applied *way, float *values)
{
    const uint32_t n = batches_of(m, way);
    struct made r = {.batches = must(calloc(n, sizeof(*r.batches))),
                     .sources = must(calloc(n, sizeof(*r.sources))),
                     .first = must(malloc((BATCH + 1) * sizeof(*r.first))),
                     .ids = must(malloc((size_t)BATCH * m->nnz * sizeof(*r.ids))),
                     .values = values};
    number_samples(&r, m);
    for (uint32_t b = 0; b < n; b++) {
        r.batches[b] = (struct drps_vectors){
            b ? way->others : way->own, m->dim, values, r.first, r.ids, values};
        r.sources[b] = b;
    }
    r.round = (struct drps_vector_round){.n = n, .batches = r.batches, .sources = r.sources};
    return r;
}

static void made_free(struct made *r)
{
    free(r->batches);
    free(r->sources);
    free(r->first);
    free(r->ids);
}

/* Rows that the round changes. */
static uint32_t changed(const struct made *r, const struct model *m)
{
    char *seen = must(calloc(m->rows, 1));
    uint32_t n = 0;
    for (uint32_t b = 0; b < r->round.n; b++)
        for (uint32_t e = 0; e < r->first[r->batches[b].n]; e++) {
            n += !seen[r->ids[e]];
            seen[r->ids[e]] = 1;
        }
    free(seen);
    return n;
}

/* ---- Counts ---- */

struct counts {
    uint64_t full, log, snapshots; /* bytes; full: of checkpoints every 100 rounds */
    uint64_t round;                /* bytes that are logged of one */
    int as_rows;
};

static struct counts count(const struct model *m, const struct applied *way, uint64_t rounds)
{
    const struct drps_matrix_shape shape = {m->rows, (size_t)m->dim * 4, m->dim};
    const uint64_t matrix = shape.rows * shape.row_bytes;
    struct made r = make(m, way, NULL);
    const uint64_t vectors = drps_vector_log_bytes(&shape, &r.round);
    const uint64_t rows = drps_vector_log_rows_bytes(&shape, changed(&r, m));
    struct counts c = {.full = rounds / EVERY * matrix, .as_rows = rows <= vectors};
    uint64_t since = 0;
    c.round = 64 + ((c.as_rows ? rows : vectors) + 7) / 8 * 8;
    for (uint64_t i = 0; i < rounds; i++) {
        c.log += c.round;
        since += c.round;
        if (since < matrix) continue;
        c.snapshots += matrix;
        since = 0;
    }
    made_free(&r);
    return c;
}

/* ---- The same, written ---- */

static uint64_t file_bytes(const struct drps_checkpoints *c, uint64_t number)
{
    char path[4096];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/%llu/vectors.log", c->dir, (unsigned long long)number);
    return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static void check_written(struct model m, const struct applied *way, const char *scratch,
                          uint64_t rounds)
{
    const int dense = m.nnz == m.rows;
    m.rows /= SMALLER;
    m.dim /= SMALLER;
    m.nnz = dense ? m.rows : 5;
    const struct drps_matrix_shape shape = {m.rows, (size_t)m.dim * 4, m.dim};
    const size_t floats = (size_t)BATCH * (m.dim > m.nnz ? m.dim : m.nnz);
    float *matrix = must(calloc(shape.rows, shape.row_bytes));
    float *values = must(calloc(floats, sizeof(float)));
    struct made r = make(&m, way, values);
    struct drps_checkpoints c;
    struct drps_vector_log *log;
    struct drps_vector_log_stats s;
    const struct drps_vector_log_options o = {0};
    struct drps_err err = DRPS_ERR_INIT;
    uint64_t number = 1, in_files = 0;
    json_t *manifest = must(json_object());
    if (drps_checkpoints_init(&c, drps_io_os(), scratch, 0, &err) < 0) die(err.text);
    if (drps_vector_log_begin(&c, &shape, &o, 0, matrix, manifest, &log, &err) < 0) die(err.text);
    for (uint64_t i = 1; i <= rounds; i++) {
        r.round.number = i;
        if (drps_vector_log_add(log, &r.round, matrix, 0, &err) < 0 ||
            drps_vector_log_sync(log, &err) < 0)
            die(err.text);
        if (!drps_vector_log_due(log)) continue;
        in_files += file_bytes(&c, number++);
        if (drps_vector_log_snapshot(log, matrix, manifest, &err) < 0) die(err.text);
    }
    in_files += file_bytes(&c, number);
    drps_vector_log_stats(log, &s);
    const struct counts want = count(&m, way, rounds);
    const uint64_t begins = 88 * (number - (file_bytes(&c, number) == 0));
    if (s.log_bytes != want.log || in_files != want.log + begins ||
        (s.snapshots - 1) * shape.rows * shape.row_bytes != want.snapshots)
        die("files have other bytes than are counted");
    drps_vector_log_close(log);
    if (drps_checkpoints_keep(&c, UINT64_MAX, UINT64_MAX, 0, &err) < 0) die(err.text);
    drps_checkpoints_destroy(&c);
    json_decref(manifest);
    made_free(&r);
    free(matrix);
    free(values);
}

/* ---- Main ---- */

static const struct model *model_of(const char *name)
{
    for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
        if (!strcmp(models[i].name, name)) return &models[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct model *m = argc > 2 ? model_of(argv[1]) : NULL;
    const unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (!m || argc > 4 || rounds < 1 || rounds > ROUNDS_MOST) {
        fprintf(stderr, "Usage: bench_orpheus mlr|tm|lstm ROUNDS [SCRATCH]\n");
        return 2;
    }
    printf("{\"matrix\": %llu", (unsigned long long)m->rows * m->dim * 4);
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        const struct counts c = count(m, &ways[i], rounds);
        printf(", \"%s\": {\"full\": %llu, \"log\": %llu, \"snapshots\": %llu, \"round\": %llu, "
               "\"as\": \"%s\"}",
               ways[i].name, (unsigned long long)c.full, (unsigned long long)c.log,
               (unsigned long long)c.snapshots, (unsigned long long)c.round,
               c.as_rows ? "rows" : "vectors");
        if (argc > 3) check_written(*m, &ways[i], argv[3], rounds < 30 ? rounds : 30);
    }
    printf("}\n");
    return 0;
}
