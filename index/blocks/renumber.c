/*
 * Batches, row lists and names are written once more with new numbers of rows (drps_renumber.h):
 * several threads renumber batches and write them in turn, and one renumbers the names beside
 * them.
 */
#include "index/blocks/drps_renumber.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/record/drps_recfile.h"
#include "index/batches/drps_encoder.h"
#include "index/plan/drps_batch.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_names_writer.h"
#include "index/plan/drps_steps.h"

enum {
    BUFFER_BYTES = 4 << 20,
    SHARED_NNZ = 1 << 12,   /* smaller batches take less time than passing the turn */
    SHARED_BYTES = 16 << 20 /* of the memory that the second worker takes */
};

/* Batches are written one after another, by whoever has renumbered the next one. */
struct renumbering {
    const struct drps_io *io; /* borrowed, like the next three */
    const char *from;
    const uint32_t *new_id;
    uint32_t rows;
    uint64_t steps;
    uint32_t
        common; /* so many rows, which keep their numbers, are in every batch, and no entry's */
    size_t plain_bytes; /* of the largest body */
    struct drps_recwriter *rows_out, *data_out;
    unsigned workers; /* 1 or 2, which take turns */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t turn; /* the step to be written next; with `lock`, like the next one */
    int failed;
};

struct worker {
    struct renumbering *m;
    uint64_t first;               /* its steps: this one and every m->workers-th */
    struct steps *lists, *bodies; /* own: of the old numbers */
    struct encoded out;           /* of the batch in hand */
    struct batch_encoder encoder; /* which has its memory */
    uint32_t *rows;               /* [nnz] new numbers of its entries */
    size_t rows_cap;
    void *plain; /* [plain_bytes] a body */
    int rc;
    struct drps_err err;
};

/* Encode the batch whose rows were old [b->rows] with its new ones. */
static int renumber_body(struct worker *w, const uint32_t *old, const struct drps_batch *b,
                         struct drps_err *err)
{
    const uint32_t *new_id = w->m->new_id;
    if (drps_array_reserve(&w->rows, &w->rows_cap, b->nnz, sizeof(*w->rows)))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu entries", b->nnz);
    for (size_t j = 0; j < b->nnz; j++)
        w->rows[j] = new_id[old[b->local32 ? b->local32[j] : b->local16[j]]];
    return drps_batch_encoder_encode(&w->encoder, b, w->rows, b->samples ? w->m->common : 0,
                                     &w->out, err);
}

static int renumber_batch(struct worker *w, uint64_t s, struct drps_err *err)
{
    const uint32_t *old;
    const void *record;
    size_t n, bytes;
    struct drps_batch b;

    int rc = drps_steps_rows(w->lists, s, w->m->rows, &old, &n, err);
    if (rc == 0) rc = drps_steps_record(w->bodies, s, &record, &bytes, err);
    if (rc < 0) return rc;
    w->encoder.ways = (struct encoder_ways){.dense = drps_batch_is_matrix(record, bytes),
                                            .levels = drps_batch_has_levels(record, bytes)};
    rc = drps_batch_unpack(record, bytes, w->plain, w->m->plain_bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode_unpacked(w->plain, bytes, &b, err);
    if (rc == 0 && b.rows != n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows with a list of %zu", b.rows, n);
    if (rc < 0) return drps_steps_fault(w->bodies, s, err);
    return renumber_body(w, old, &b, err);
}

static void pass_turn(struct renumbering *m, uint64_t turn, int failed)
{
    pthread_mutex_lock(&m->lock);
    m->turn = turn;
    m->failed |= failed;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* Waits for step s to be the next to write. 1: never, as the other has failed. */
static int await_turn(struct renumbering *m, uint64_t s)
{
    pthread_mutex_lock(&m->lock);
    while (m->turn != s && !m->failed)
        pthread_cond_wait(&m->changed, &m->lock);
    const int failed = m->failed;
    pthread_mutex_unlock(&m->lock);
    return failed;
}

static int write_batch(struct worker *w, uint64_t s, struct drps_err *err)
{
    struct renumbering *m = w->m;
    if (await_turn(m, s)) return 1;
    int rc = drps_recwriter_add(m->rows_out, &w->out.list, 1, err);
    if (rc == 0) rc = drps_recwriter_add(m->data_out, w->out.body.pieces, w->out.body.n, err);
    if (rc == 0) pass_turn(m, s + 1, 0);
    return rc;
}

static void worker_free(struct worker *w)
{
    drps_steps_close(w->lists);
    drps_steps_close(w->bodies);
    free(w->rows);
    free(w->plain);
    drps_batch_encoder_end(&w->encoder);
}

static void *renumber_steps(void *arg)
{
    struct worker *w = arg;
    struct renumbering *m = w->m;
    w->plain = drps_array_new(m->plain_bytes, 1);
    int rc = w->plain ? 0 : drps_err_set(&w->err, -ENOMEM, "no memory for a batch");
    if (rc == 0)
        rc = drps_steps_open(m->io, m->from, DRPS_FILE_ROWS, DRPS_KIND_ROWS, m->steps, BUFFER_BYTES,
                             &w->lists, &w->err);
    if (rc == 0)
        rc = drps_steps_open(m->io, m->from, DRPS_FILE_DATA, DRPS_KIND_DATA, m->steps, BUFFER_BYTES,
                             &w->bodies, &w->err);
    for (uint64_t s = w->first; s < m->steps && rc == 0; s += m->workers) {
        rc = renumber_batch(w, s, &w->err);
        if (rc == 0) rc = write_batch(w, s, &w->err);
    }
    if (rc < 0) pass_turn(m, m->steps, 1);
    worker_free(w);
    w->rc = rc < 0 ? rc : 0;
    return NULL;
}

/* Two workers, if batches are worth it and their memory is little. */
static int share_steps(struct renumbering *m, int shared, struct drps_err *err)
{
    struct worker worker[2];
    pthread_t thread;
    for (unsigned i = 0; i < 2; i++)
        worker[i] = (struct worker){.m = m, .first = i, .err = DRPS_ERR_INIT};
    (void)pthread_mutex_init(&m->lock, NULL); /* neither fails with default attributes */
    (void)pthread_cond_init(&m->changed, NULL);
    m->workers = shared ? 2 : 1; /* before the thread, which reads it */
    if (shared && pthread_create(&thread, NULL, renumber_steps, &worker[1])) m->workers = 1;
    (void)renumber_steps(&worker[0]);
    if (m->workers == 2) (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    for (unsigned i = 0; i < 2; i++)
        if (worker[i].rc < 0) return drps_err_set(err, worker[i].rc, "%s", worker[i].err.text);
    return 0;
}

/* Whether several threads share the steps: the memory for the largest batch decides
 * (drps_renumber.h). */
static int is_shared(const struct drps_plan_info *info)
{
    const uint64_t entry = sizeof(uint32_t) + ENCODER_ENTRY_BYTES + ENCODER_VALUE_BYTES +
                           (info->field_count ? ENCODER_FIELD_BYTES : 0);
    const uint64_t bytes = info->max_batch_nnz * entry + info->max_batch_rows * sizeof(uint32_t) +
                           2 * info->max_body_bytes;
    return info->max_batch_nnz >= SHARED_NNZ && bytes <= SHARED_BYTES;
}

static int open_writer(const struct drps_io *io, const char *dir, const char *name, uint32_t kind,
                       struct drps_recwriter **w_out, struct drps_err *err)
{
    char *path = drps_path_join(dir, name);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for %s", name);
    int rc = drps_recwriter_open(io, path, kind, w_out, err);
    free(path);
    return rc;
}

static int renumber_batches(struct renumbering *m, const char *to, int shared, struct drps_err *err)
{
    int rc = open_writer(m->io, to, DRPS_FILE_ROWS, DRPS_KIND_ROWS, &m->rows_out, err);
    if (rc == 0) rc = open_writer(m->io, to, DRPS_FILE_DATA, DRPS_KIND_DATA, &m->data_out, err);
    if (rc == 0) rc = share_steps(m, shared, err);
    if (rc == 0) rc = drps_recwriter_finish(m->rows_out, err);
    if (rc == 0) rc = drps_recwriter_finish(m->data_out, err);
    drps_recwriter_close(m->rows_out);
    drps_recwriter_close(m->data_out);
    return rc;
}

/* Names and batches share nothing but `new_id`: each has a thread. */
struct naming {
    const struct drps_io *io; /* borrowed, like all others */
    const char *from, *to;
    int strings;
    const uint32_t *new_id;
    uint32_t rows;
    struct names_writer *out;
    int rc;
    struct drps_err err;
};

static int renumber_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                         size_t bytes, struct drps_err *err)
{
    const struct naming *n = ctx;
    if (row >= n->rows)
        return drps_err_set(err, DRPS_E_CORRUPT,
                            DRPS_FILE_NAMES " names row %" PRIu32 " of %" PRIu32 " rows", row,
                            n->rows);
    return drps_names_writer_add(n->out, key, n->new_id[row], field, text, bytes, err);
}

static void *renumber_names(void *arg)
{
    struct naming *n = arg;
    struct drps_names *names = NULL;
    n->rc = drps_names_open(n->io, n->from, &names, &n->err);
    if (n->rc == 0) n->rc = drps_names_writer_open(n->io, n->to, n->strings, &n->out, &n->err);
    if (n->rc == 0) n->rc = drps_names_scan(names, renumber_name, n, &n->err);
    if (n->rc == 0) n->rc = drps_names_writer_finish(n->out, &n->err);
    drps_names_writer_close(n->out);
    drps_names_close(names);
    return NULL;
}

int drps_renumber_rows(const struct drps_io *io, const char *from, const char *to,
                       const struct drps_plan_info *info, const uint32_t *new_id,
                       struct drps_err *err)
{
    return drps_renumber_some(io, from, to, info, info->batches + info->eval_batches, 1, new_id,
                              err);
}

int drps_renumber_some(const struct drps_io *io, const char *from, const char *to,
                       const struct drps_plan_info *info, uint64_t steps, int names,
                       const uint32_t *new_id, struct drps_err *err)
{
    struct renumbering m = {.io = io,
                            .from = from,
                            .new_id = new_id,
                            .rows = (uint32_t)info->rows,
                            .steps = steps,
                            .common = drps_plan_common_rows(info),
                            .plain_bytes = (size_t)info->max_body_bytes};
    struct naming n = {.io = io,
                       .from = from,
                       .to = to,
                       .strings = info->string_names,
                       .new_id = new_id,
                       .rows = m.rows,
                       .err = DRPS_ERR_INIT};
    pthread_t thread;
    const int beside = names && pthread_create(&thread, NULL, renumber_names, &n) == 0;
    int rc = renumber_batches(&m, to, is_shared(info), err);
    if (names && !beside)
        (void)renumber_names(&n);
    else if (beside)
        (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    return rc < 0 || n.rc == 0 ? rc : drps_err_set(err, n.rc, "%s", n.err.text);
}
