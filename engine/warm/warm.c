/* A warm start from its first file to its last: names are joined, earlier rows gathered, and the
 * rows of the part made of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "base/drps_size.h"
#include "engine/warm/join.h"
#include "engine/warm/old.h"
#include "engine/warm/pieces.h"
#include "engine/warm/state.h"

enum { GATHER_MOST = 65536 }; /* rows at a time */

struct drps_warm {
    struct drps_warm_options o;
    struct drps_plan *opened; /* own: the whole plan, where the caller has none; else NULL */
    const struct drps_plan *whole;
    struct warm_about now;
    struct warm_old old;
    int calibrated; /* 1: it is a model, with a calibration */
};

/* ---- Opening ---- */

/* The folder of a rank lies in that of the whole plan. */
static char *folder_of(const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    while (n && path[n - 1] != '/')
        n--;
    while (n > 1 && path[n - 1] == '/')
        n--;
    return n ? strndup(path, n) : strdup(".");
}

static int check_whole(const struct drps_warm *w, const char *dir, struct drps_err *err)
{
    if (strcmp(w->opened->info.id, w->o.part->info.ranks.whole) != 0)
        return drps_err_set(err, DRPS_E_CONFIG, "%s is not the plan that %s is a part of", dir,
                            w->o.part->dir);
    return drps_plan_read_file(w->opened, DRPS_FILE_NAMES, NULL, NULL, err);
}

static int open_whole(struct drps_warm *w, struct drps_err *err)
{
    w->whole = w->o.whole;
    if (w->whole) return 0;
    struct drps_err why = DRPS_ERR_INIT;
    char *dir = folder_of(w->o.part->dir);
    if (!dir) return drps_err_set(err, -ENOMEM, "no memory for a path");
    int rc = drps_plan_open(w->o.io, dir, &w->opened, &why);
    if (rc == 0) rc = check_whole(w, dir, &why);
    if (rc < 0)
        rc = drps_err_set(err, rc,
                          "%s: this rank needs " DRPS_FILE_MANIFEST " and " DRPS_FILE_NAMES
                          " of the whole plan in %s, to find rows of %s by name",
                          why.text, dir, w->o.from);
    w->whole = w->opened;
    free(dir);
    return rc;
}

int drps_warm_open(const struct drps_warm_options *o, struct drps_warm **w_out,
                   struct drps_err *err)
{
    *w_out = NULL;
    struct drps_warm *w = calloc(1, sizeof(*w));
    if (!w) return drps_err_set(err, -ENOMEM, "no memory to read %s", o->from);
    w->o = *o;
    int rc = open_whole(w, err);
    if (rc == 0) rc = drps_warm_about_plan(w->whole, &w->now, err);
    if (rc == 0) rc = drps_warm_old_open(&w->o, &w->now, &w->old, err);
    w->calibrated = w->old.md && drps_modeldir_info(w->old.md)->calibration.kind;
    if (rc == 0 && w->old.md && !w->o.no_state)
        rc = drps_warm_take_state(&w->o, &w->now, &w->old, err);
    if (rc < 0) {
        drps_warm_close(w);
        return rc;
    }
    *w_out = w;
    return 0;
}

void drps_warm_close(struct drps_warm *w)
{
    if (!w) return;
    drps_warm_old_close(&w->old);
    drps_warm_about_destroy(&w->now);
    drps_plan_close(w->opened);
    free(w);
}

uint64_t drps_warm_id(const struct drps_warm *w)
{
    return w->old.id ^ (w->o.no_state ? 2 : 0);
}

int drps_warm_is_calibrated(const struct drps_warm *w)
{
    return w->calibrated;
}

uint64_t drps_warm_space(uint64_t rows, uint64_t row_bytes)
{
    return rows * (2 * row_bytes + 4 * sizeof(struct drps_sort_record));
}

/* ---- Making ---- */

struct making {
    struct drps_warm *w;
    const struct drps_server *server;
    struct drps_extsort *pairs; /* (earlier row, row of the part) */
    struct warm_pieces *pieces;
    uint64_t rows;  /* of the part */
    uint64_t found; /* of the whole plan */
    int state;      /* the optimizer's state is taken over, too */

    /* Rows on their way. */
    size_t cap, n;
    uint32_t *ids, *to; /* own: [cap] of the earlier run, of the part */
    char *gathered;     /* own: [cap][row_bytes of the earlier run] */
    char *row;          /* own: of the part */
};

static int take_pair(void *ctx, uint32_t old_row, uint32_t row, struct drps_err *err)
{
    struct making *m = ctx;
    const uint64_t at = row - m->server->first_row;
    m->found++;
    if (row < m->server->first_row || at >= m->rows) return 0;
    drps_warm_pieces_expect(m->pieces, (uint32_t)at);
    const struct drps_sort_record r = {.hi = old_row, .lo = at};
    return drps_extsort_add(m->pairs, &r, err);
}

/* Parameters are as they were; the state is, too, where it is of the same optimizer. */
static const void *make_row(const struct making *m, const char *gathered, uint32_t to)
{
    const struct drps_server *s = m->server;
    const struct drps_model *model = &s->model;
    if (m->state) return gathered;
    memcpy(m->row, gathered, model->dim * sizeof(float));
    drps_optim_init_row(&s->optim, model->dim, s->first_row + to < drps_model_common_rows(model),
                        (float *)(void *)m->row);
    return m->row;
}

static int gather(struct making *m, struct drps_err *err)
{
    struct warm_old *old = &m->w->old;
    int rc = m->n ? drps_warm_old_read(old, m->ids, m->n, m->gathered, err) : 0;
    for (size_t i = 0; i < m->n && rc == 0; i++)
        rc = drps_warm_pieces_add(m->pieces, m->to[i],
                                  make_row(m, m->gathered + i * old->row_bytes, m->to[i]), err);
    m->n = 0;
    return rc;
}

/* A row may be asked for once. */
static int add_pair(struct making *m, const struct drps_sort_record *r, uint64_t *next,
                    struct drps_err *err)
{
    if (r->hi < *next)
        return drps_err_set(err, DRPS_E_CORRUPT, "%s/" DRPS_FILE_NAMES " names row %llu twice",
                            m->w->old.names_dir, (unsigned long long)r->hi);
    *next = r->hi + 1;
    m->ids[m->n] = (uint32_t)r->hi;
    m->to[m->n++] = (uint32_t)r->lo;
    return m->n == m->cap ? gather(m, err) : 0;
}

static int gather_all(struct making *m, struct drps_err *err)
{
    const struct drps_sort_record *r;
    uint64_t next = 0;
    int rc = drps_extsort_finish(m->pairs, err);
    if (rc == 0) rc = drps_warm_pieces_begin(m->pieces, err);
    while (rc == 0 && (rc = drps_extsort_next(m->pairs, &r, err)) > 0)
        rc = add_pair(m, r, &next, err);
    return rc == 0 ? gather(m, err) : rc;
}

static int make_room(struct making *m, uint64_t memory_bytes, struct drps_err *err)
{
    const size_t each = m->w->old.row_bytes + 2 * sizeof(uint32_t);
    m->cap = (size_t)(memory_bytes / each);
    if (m->cap > GATHER_MOST) m->cap = GATHER_MOST;
    if (!m->cap) m->cap = 1;
    m->ids = drps_array_new(m->cap, sizeof(*m->ids));
    m->to = drps_array_new(m->cap, sizeof(*m->to));
    m->gathered = drps_array_new(m->cap, m->w->old.row_bytes);
    m->row = drps_array_new(1, m->server->row_bytes);
    return m->ids && m->to && m->gathered && m->row
               ? 0
               : drps_err_set(err, -ENOMEM, "no memory to gather rows");
}

static void free_room(struct making *m)
{
    free(m->ids);
    free(m->to);
    free(m->gathered);
    free(m->row);
    m->ids = m->to = NULL;
    m->gathered = m->row = NULL;
}

/* All rows into a checkpoint of the part, which nobody else has. */
static int write_rows(struct making *m, const struct drps_checkpoints *place,
                      struct drps_checkpoint **cp_out, struct drps_err *err)
{
    struct drps_checkpoint_writer *out;
    uint64_t bytes;
    json_t *nothing = json_object();
    int rc = nothing ? 0 : drps_err_set(err, -ENOMEM, "no memory to write rows");
    if (rc == 0) rc = drps_checkpoint_begin(place, 1, m->rows, m->server->row_bytes, &out, err);
    if (rc < 0) {
        json_decref(nothing);
        return rc;
    }
    rc = drps_warm_pieces_end(m->pieces, drps_checkpoint_add, out, err);
    if (rc == 0)
        rc = drps_checkpoint_commit(out, nothing, &bytes, err);
    else
        drps_checkpoint_abort(out);
    json_decref(nothing);
    return rc == 0 ? drps_checkpoint_open(place, 1, cp_out, err) : rc;
}

/* Who has how much of the memory while rows are gathered. */
struct share {
    uint64_t old, sort, gather, pieces;
};

static int share_out(const struct making *m, uint64_t memory_bytes, struct share *out,
                     struct drps_err *err)
{
    const uint64_t least = drps_warm_old_least(&m->w->old), quarter = memory_bytes / 4;
    char has[32], need[32];
    out->old = least > quarter ? least : quarter;
    if (out->old > memory_bytes / 2)
        return drps_err_set(
            err, DRPS_E_MEMORY_BUDGET,
            "the memory limit leaves %s to begin with the rows of %s: about %s are needed",
            drps_size_format(memory_bytes, has, sizeof(has)), m->w->o.from,
            drps_size_format(2 * least, need, sizeof(need)));
    out->sort = (memory_bytes - out->old) / 3;
    out->gather = out->sort / 2;
    out->pieces = memory_bytes - out->old - out->sort - out->gather;
    return 0;
}

static int take_over(struct making *m, const char *dir, uint64_t memory_bytes, struct drps_err *err)
{
    struct drps_warm *w = m->w;
    struct share share = {0};
    int rc = share_out(m, memory_bytes, &share, err);
    if (rc < 0) return rc;
    const struct warm_pieces_options pieces = {.io = w->o.io,
                                               .dir = dir,
                                               .server = m->server,
                                               .rows = m->rows,
                                               .memory_bytes = share.pieces};
    const struct warm_join join = {.io = w->o.io,
                                   .dir = dir,
                                   .old = &w->old,
                                   .now = &w->now,
                                   .names_dir = w->whole->dir,
                                   .memory_bytes = share.sort};
    rc = drps_warm_pieces_new(&pieces, &m->pieces, err);
    if (rc == 0) rc = drps_extsort_open(w->o.io, dir, "pairs", share.sort, &m->pairs, err);
    if (rc == 0) rc = drps_warm_join(&join, take_pair, m, err);
    if (rc == 0) rc = drps_warm_old_begin(&w->old, share.old, err);
    if (rc == 0) rc = make_room(m, share.gather, err);
    if (rc == 0) rc = gather_all(m, err);
    drps_extsort_close(m->pairs);
    free_room(m);
    return rc;
}

int drps_warm_make(struct drps_warm *w, const struct drps_server *server, const char *dir,
                   uint64_t memory_bytes, struct drps_checkpoint **cp_out,
                   struct drps_warm_found *out, struct drps_err *err)
{
    struct drps_checkpoints place;
    struct making m = {.w = w, .server = server, .rows = drps_plan_own_rows(&w->o.part->info).rows};
    m.state = !w->old.md && !w->o.no_state && w->old.optim.kind == server->optim.kind &&
              drps_optim_states(&server->optim) &&
              !drps_optim_is_newton(server->optim.kind); /* which begins at the parameters */
    *cp_out = NULL;
    *out = (struct drps_warm_found){0};
    int rc = w->o.io->ops->mkdir(w->o.io->ctx, dir, 0777);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", dir, drps_err_name(rc));
    rc = drps_checkpoints_init(&place, w->o.io, dir, 0, err);
    if (rc < 0) return rc;
    rc = take_over(&m, dir, memory_bytes, err);
    const uint64_t earlier = w->old.about.rows;
    drps_warm_old_close(&w->old); /* its memory is for the rows now */
    if (rc == 0) rc = write_rows(&m, &place, cp_out, err);
    drps_warm_pieces_free(m.pieces);
    drps_checkpoints_destroy(&place);
    *out = (struct drps_warm_found){.rows = m.found,
                                    .all = w->whole->info.rows,
                                    .left = earlier > m.found ? earlier - m.found : 0,
                                    .state = m.state};
    return rc;
}
