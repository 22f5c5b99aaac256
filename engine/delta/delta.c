/* The new model's rows come in order, with their names; the old one's with the same numbers are
 * read beside them, a piece at a time. */
#include "engine/delta/drps_delta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_escape.h"
#include "engine/readout/drps_readout.h"

enum { PIECE_BYTES = 1 << 20 };
#define DELTA_HEAD "# drps-delta 1"

struct comparing {
    const struct drps_delta_options *o;
    struct drps_modeldir *old, *now; /* own */
    struct drps_readout readout;     /* own: of the new model */
    struct drps_textfile file;
    struct drps_delta *out;
    uint32_t dim;
    uint64_t first, n, cap; /* old rows first .. first + n - 1 are in params */
    float *params;          /* own: [cap][dim] */
    uint32_t *ids;          /* own: [cap] */
};

/* ---- Rows ---- */

/* Read a piece of the old rows, from `row` on. */
static int read_piece(struct comparing *c, uint64_t row, struct drps_err *err)
{
    const uint64_t left = c->o->same_rows - row;
    c->first = row;
    c->n = left < c->cap ? left : c->cap;
    for (uint64_t i = 0; i < c->n; i++)
        c->ids[i] = (uint32_t)(row + i);
    return drps_modeldir_gather(c->old, c->ids, (size_t)c->n, c->params, err);
}

/* Returns whether the row is as it was: 1, or 0; an error is negative. */
static int is_same(struct comparing *c, const struct drps_readout_row *row, struct drps_err *err)
{
    if (row->row >= c->o->same_rows) return 0;
    int rc = row->row >= c->first + c->n ? read_piece(c, row->row, err) : 0;
    if (rc < 0) return rc;
    const float *was = c->params + (row->row - c->first) * c->dim;
    return memcmp(was, row->params, c->dim * sizeof(*was)) == 0;
}

static int compare_row(void *ctx, const struct drps_readout_row *row, struct drps_err *err)
{
    struct comparing *c = ctx;
    int rc = is_same(c, row, err);
    if (rc) return rc < 0 ? rc : 0;
    *(row->row < c->o->same_rows ? &c->out->changed : &c->out->fresh) += 1;
    rc = drps_textfile_put_name(&c->file, DRPS_NAME_IN_TABS, row->name, row->name_bytes, err);
    if (rc == 0) rc = drps_textfile_put_floats(&c->file, row->params, c->dim, '\t', err);
    return rc == 0 ? drps_textfile_put(&c->file, "\n", 1, err) : rc;
}

/* ---- Both models ---- */

static int open_old(struct comparing *c, struct drps_err *err)
{
    int rc = drps_modeldir_open(c->o->io, c->o->from, 0, &c->old, err);
    if (rc == 0) rc = drps_modeldir_open_rows(c->old, drps_modeldir_memory_least(c->old), err);
    if (rc < 0) return rc;
    c->dim = drps_modeldir_info(c->old)->model.dim;
    c->cap = PIECE_BYTES / (c->dim * sizeof(*c->params)) + 1;
    c->params = drps_array_new(c->cap, c->dim * sizeof(*c->params));
    c->ids = drps_array_new(c->cap, sizeof(*c->ids));
    return c->params && c->ids ? 0
                               : drps_err_set(err, -ENOMEM, "no memory to compare %s with %s",
                                              c->o->model, c->o->from);
}

static int open_now(struct comparing *c, struct drps_err *err)
{
    const uint64_t other = drps_modeldir_memory_least(c->old) +
                           c->cap * (c->dim * sizeof(*c->params) + sizeof(*c->ids));
    int rc = drps_modeldir_open(c->o->io, c->o->model, 0, &c->now, err);
    return rc == 0 ? drps_readout_open_within(c->now, c->o->memory_bytes, other, &c->readout, err)
                   : rc;
}

/* Checks that both models have the rows that the caller says they have in common. */
static int check_alike(const struct comparing *c, struct drps_err *err)
{
    const struct drps_modeldir_info *a = drps_modeldir_info(c->old),
                                    *b = drps_modeldir_info(c->now);
    if (a->model.dim == b->model.dim && c->o->same_rows <= a->rows && c->o->same_rows <= b->rows)
        return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s and %s have other rows than their plans",
                        c->o->model, c->o->from);
}

static int write_model(struct comparing *c, const char *what, const char *path,
                       const struct drps_modeldir *md, struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(md);
    int rc = drps_textfile_print(&c->file, err, "# %s ", what);
    if (rc == 0) rc = drps_textfile_put_name(&c->file, DRPS_NAME_IN_TABS, path, strlen(path), err);
    return rc < 0 ? rc
                  : drps_textfile_print(&c->file, err, " content %016" PRIx64 " rows %" PRIu64 "\n",
                                        info->content, info->rows);
}

static int write_all(struct comparing *c, struct drps_err *err)
{
    int rc = drps_textfile_print(&c->file, err, DELTA_HEAD "\n");
    if (rc == 0) rc = write_model(c, "model", c->o->model, c->now, err);
    if (rc == 0) rc = write_model(c, "base", c->o->from, c->old, err);
    if (rc == 0) rc = drps_textfile_print(&c->file, err, "# dim %u\n", c->dim);
    if (rc == 0) rc = drps_readout_rows(&c->readout, NULL, 0, compare_row, c, err);
    if (rc == 0)
        rc = drps_textfile_print(&c->file, err, "# end: changed %" PRIu64 ", new %" PRIu64 "\n",
                                 c->out->changed, c->out->fresh);
    if (rc == 0) rc = drps_textfile_commit(&c->file, err);
    c->out->bytes = c->file.written;
    return rc;
}

int drps_delta_write(const struct drps_delta_options *o, struct drps_delta *out,
                     struct drps_err *err)
{
    struct comparing c = {.o = o, .out = out};
    *out = (struct drps_delta){0};
    int rc = drps_textfile_open(&c.file, o->io, o->path, o->replace, err);
    if (rc == 0) rc = open_old(&c, err);
    if (rc == 0) rc = open_now(&c, err);
    if (rc == 0) rc = check_alike(&c, err);
    if (rc == 0) rc = write_all(&c, err);
    drps_textfile_close(&c.file);
    drps_readout_close(&c.readout);
    drps_modeldir_close(c.old);
    drps_modeldir_close(c.now);
    free(c.params);
    free(c.ids);
    return rc;
}

/* ---- Before training ---- */

/* Returns whether the path leads to the model's folder. */
static int is_model(const char *path, const char *model)
{
    struct stat a, b;
    if (strcmp(path, model) == 0) return 1;
    return stat(path, &a) == 0 && stat(model, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Returns whether the path is a name of the model, finished or not, or of its checkpoints. */
static int is_of_model(const char *path, const char *model)
{
    static const char *const endings[] = {"", ".partial", ".trained", ".checkpoint"};
    const size_t n = strlen(model);
    if (strncmp(path, model, n) != 0) return 0;
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (strcmp(path + n, endings[i]) == 0) return 1;
    return 0;
}

/* Refuses a path that training reads or writes. */
static int check_place(const struct drps_delta_options *o, struct drps_err *err)
{
    if (is_of_model(o->path, o->model))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a name of the model or of what it is made of: give the delta "
                            "another name",
                            o->path);
    int rc = drps_textfile_check(o->path, o->model, &o->from, 1, err);
    if (rc == 0) rc = drps_textfile_check(o->path, o->from, &o->from, 1, err);
    return rc == 0 ? drps_textfile_check(o->path, o->plan, &o->plan, 1, err) : rc;
}

int drps_delta_is_one(const struct drps_io *io, const char *path)
{
    char head[sizeof(DELTA_HEAD) - 1];
    const int fd = io->ops->open(io->ctx, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    const int is = drps_io_read_at(io, fd, head, sizeof(head), 0, path, NULL) == 0 &&
                   memcmp(head, DELTA_HEAD, sizeof(head)) == 0;
    (void)io->ops->close(io->ctx, fd); /* nothing was written */
    return is;
}

/* Finds how many rows of `from` have the same numbers in the plan. */
static int find_same_rows(const struct drps_delta_options *o, const struct drps_plan_info *plan,
                          uint64_t *rows_out, struct drps_err *err)
{
    struct drps_modeldir *md = NULL;
    int rc = drps_modeldir_open(o->io, o->from, 0, &md, err);
    if (rc < 0)
        return drps_err_context(err, "a delta is what has changed since a model, which %s is not",
                                o->from);
    char id[DRPS_PLAN_ID_BYTES];
    memcpy(id, drps_modeldir_info(md)->plan_id, sizeof(id));
    drps_modeldir_close(md);
    *rows_out = strcmp(plan->id, id) == 0     ? plan->rows
                : strcmp(plan->base, id) == 0 ? plan->base_rows
                                              : 0;
    if (*rows_out) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "a delta is what has changed in rows that have kept their numbers: %s is "
                        "of plan %s, and this plan is another one and does not go on from it",
                        o->from, id);
}

int drps_delta_check(struct drps_delta_options *o, const struct drps_plan_info *plan,
                     struct drps_err *err)
{
    struct stat st;
    if (!o->from)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a delta is what has changed since an earlier model: name one to begin "
                            "with");
    if (is_model(o->from, o->model))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%s would be replaced by what it is to be compared with: give the model "
            "another name, or leave out the delta",
            o->from);
    int rc = check_place(o, err);
    if (rc == 0) rc = find_same_rows(o, plan, &o->same_rows, err);
    if (rc < 0 || o->replace || stat(o->path, &st) < 0 || !S_ISREG(st.st_mode)) return rc;
    return drps_err_set(err, -EEXIST, "%s exists already: choose another name, or have it replaced",
                        o->path);
}
