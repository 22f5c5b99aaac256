#include "index/renumber.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_recfile.h"
#include "index/bodies.h"
#include "index/drps_batch.h"
#include "index/drps_names.h"
#include "index/extsort.h"
#include "index/names.h"
#include "index/steps.h"

enum { BUFFER_BYTES = 4 << 20 };

struct renumbering {
    const uint32_t *place;
    uint32_t rows;
    struct steps *lists, *bodies;               /* of the old numbers */
    struct drps_recwriter *rows_out, *data_out; /* of the new ones */
    uint64_t *keyed, *aux;                      /* [n] new number << 32 | old rank, of one batch */
    uint32_t *rank;                             /* [n] old rank to new rank */
    uint32_t *sorted;                           /* [n] new numbers */
    uint32_t *local;                            /* [nnz] */
    void *plain;                                /* [plain_bytes] a body */
    size_t plain_bytes;                         /* of the largest */
    struct bodies writer;
    unsigned char *list;
    size_t keyed_cap, aux_cap, rank_cap, sorted_cap, local_cap, list_cap;
};

static int reserve(struct renumbering *m, size_t n)
{
    return drps_array_reserve(&m->keyed, &m->keyed_cap, n, sizeof(*m->keyed)) ||
           drps_array_reserve(&m->aux, &m->aux_cap, n, sizeof(*m->aux)) ||
           drps_array_reserve(&m->rank, &m->rank_cap, n, sizeof(*m->rank)) ||
           drps_array_reserve(&m->sorted, &m->sorted_cap, n, sizeof(*m->sorted)) ||
           drps_array_reserve(&m->list, &m->list_cap, drps_list_encode_dense_bound(n), 1);
}

/* The batch's rows under their new numbers: sorted, and the new rank of each old one. */
static int renumber_rows(struct renumbering *m, const uint32_t *old, size_t n, struct drps_err *err)
{
    if (reserve(m, n)) return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu rows", n);
    for (size_t i = 0; i < n; i++)
        m->keyed[i] = (uint64_t)m->place[old[i]] << 32 | i;
    sort_keyed(m->keyed, m->aux, n);
    for (size_t i = 0; i < n; i++) {
        m->sorted[i] = (uint32_t)(m->keyed[i] >> 32);
        m->rank[(uint32_t)m->keyed[i]] = (uint32_t)i;
    }
    const struct drps_piece list = {m->list, drps_list_encode_dense(m->sorted, n, m->list)};
    return drps_recwriter_add(m->rows_out, &list, 1, err);
}

static int renumber_body(struct renumbering *m, const struct drps_batch *b, struct drps_err *err)
{
    if (drps_array_reserve(&m->local, &m->local_cap, b->nnz, sizeof(*m->local)))
        return drps_err_set(err, -ENOMEM, "no memory for a batch of %zu entries", b->nnz);
    for (size_t j = 0; j < b->nnz; j++)
        m->local[j] = m->rank[b->local32 ? b->local32[j] : b->local16[j]];
    return bodies_write(&m->writer, m->data_out, b, m->local, err);
}

static int renumber_batch(struct renumbering *m, uint64_t s, struct drps_err *err)
{
    const uint32_t *old;
    const void *record;
    size_t n, bytes;
    struct drps_batch b;

    int rc = steps_rows(m->lists, s, m->rows, &old, &n, err);
    if (rc == 0) rc = renumber_rows(m, old, n, err);
    if (rc == 0) rc = steps_record(m->bodies, s, &record, &bytes, err);
    if (rc < 0) return rc;
    rc = drps_batch_unpack(record, bytes, m->plain, m->plain_bytes, &bytes, err);
    if (rc == 0) rc = drps_batch_decode(m->plain, bytes, &b, err);
    if (rc == 0 && b.rows != n)
        rc = drps_err_set(err, DRPS_E_CORRUPT, "a batch of %zu rows with a list of %zu", b.rows, n);
    if (rc < 0) return steps_fault(m->bodies, s, err);
    return renumber_body(m, &b, err);
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

static int renumber_batches(const struct drps_io *io, const char *from, const char *to,
                            uint64_t steps, struct renumbering *m, struct drps_err *err)
{
    int rc = steps_open(io, from, "rows.rec", DRPS_KIND_ROWS, steps, BUFFER_BYTES, &m->lists, err);
    if (rc == 0)
        rc = steps_open(io, from, "data.rec", DRPS_KIND_DATA, steps, BUFFER_BYTES, &m->bodies, err);
    if (rc == 0) rc = open_writer(io, to, "rows.rec", DRPS_KIND_ROWS, &m->rows_out, err);
    if (rc == 0) rc = open_writer(io, to, "data.rec", DRPS_KIND_DATA, &m->data_out, err);
    for (uint64_t s = 0; s < steps && rc == 0; s++)
        rc = renumber_batch(m, s, err);
    if (rc == 0) rc = drps_recwriter_finish(m->rows_out, err);
    if (rc == 0) rc = drps_recwriter_finish(m->data_out, err);
    drps_recwriter_close(m->rows_out);
    drps_recwriter_close(m->data_out);
    steps_close(m->lists);
    steps_close(m->bodies);
    free(m->keyed);
    free(m->aux);
    free(m->rank);
    free(m->sorted);
    free(m->local);
    free(m->plain);
    bodies_end(&m->writer);
    free(m->list);
    return rc;
}

/* Names and batches share nothing but `place`: each has a thread. */
struct naming {
    const struct drps_io *io; /* borrowed, like all others */
    const char *from, *to;
    int strings;
    const uint32_t *place;
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
                            "names.rec names row %" PRIu32 " of %" PRIu32 " rows", row, n->rows);
    return names_writer_add(n->out, key, n->place[row], field, text, bytes, err);
}

static void *renumber_names(void *arg)
{
    struct naming *n = arg;
    struct drps_names *names = NULL;
    n->rc = drps_names_open(n->io, n->from, &names, &n->err);
    if (n->rc == 0) n->rc = names_writer_open(n->io, n->to, n->strings, &n->out, &n->err);
    if (n->rc == 0) n->rc = drps_names_scan(names, renumber_name, n, &n->err);
    if (n->rc == 0) n->rc = names_writer_finish(n->out, &n->err);
    names_writer_close(n->out);
    drps_names_close(names);
    return NULL;
}

int renumber(const struct drps_io *io, const char *from, const char *to,
             const struct drps_plan_info *info, const uint32_t *place, struct drps_err *err)
{
    struct renumbering m = {.place = place, .rows = (uint32_t)info->rows};
    m.plain_bytes = (size_t)info->max_body_bytes;
    m.plain = drps_array_new(m.plain_bytes, 1);
    if (!m.plain) return drps_err_set(err, -ENOMEM, "no memory for a batch");
    struct naming n = {.io = io,
                       .from = from,
                       .to = to,
                       .strings = info->string_names,
                       .place = place,
                       .rows = m.rows,
                       .err = DRPS_ERR_INIT};
    pthread_t thread;
    const int alone = pthread_create(&thread, NULL, renumber_names, &n) != 0;
    int rc = renumber_batches(io, from, to, info->batches + info->eval_batches, &m, err);
    if (alone)
        (void)renumber_names(&n);
    else
        (void)pthread_join(thread, NULL); /* cannot fail for a thread of ours */
    return rc < 0 || n.rc == 0 ? rc : drps_err_set(err, n.rc, "%s", n.err.text);
}
