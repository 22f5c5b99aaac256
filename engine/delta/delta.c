/* Names of the new model come in the order of their keys, a batch at a time: looked up in the old
 * one, both rows read, each in the order in which they lie, and compared. */
#include "engine/delta/drps_delta.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_escape.h"
#include "engine/readout/drps_readout.h"

enum { NAMES_MOST = 1 << 20, NAME_BYTES = 64 /* of most names */ };

/* A name of the batch: its text lies among those of all names. */
struct batch_name {
    unsigned field;
    int is_text;
    size_t at, bytes;
};

/* A row of a model, and where it stands in the batch. */
struct place {
    uint32_t row, at;
};

struct side {
    struct drps_modeldir *md; /* own */
    struct place *places;     /* own, as are the next three: [cap] */
    uint32_t *ids, *where;    /* rows in order; where[at]: the place of name `at` in params */
    float *params;            /* [cap][dim] */
    size_t n;                 /* names that have a row here */
};

struct comparing {
    const struct drps_delta_options *o;
    struct side old, now;
    uint32_t dim;
    struct drps_readout readout; /* own: of the new model, for what names are called */
    struct drps_textfile file;
    struct drps_delta *out;

    /* The batch. */
    size_t n, cap;
    uint64_t *keys; /* own, as are the next four: [cap] */
    uint32_t *rows, *found;
    struct batch_name *names;
    char *text; /* of all names */
    size_t text_n, text_cap;
};

static int no_memory(const struct comparing *c, struct drps_err *err)
{
    return drps_err_set(err, -ENOMEM, "no memory to compare %s with %s", c->o->model, c->o->from);
}

/* ---- A batch ---- */

static int by_row(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Read the rows of the batch's names on one side, in the order in which they lie. */
static int read_side(struct comparing *c, struct side *s, const uint32_t *rows,
                     struct drps_err *err)
{
    s->n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (rows[i] != DRPS_NO_ROW) s->places[s->n++] = (struct place){rows[i], (uint32_t)i};
    qsort(s->places, s->n, sizeof(*s->places), by_row);
    for (size_t i = 0; i < s->n; i++) {
        s->ids[i] = s->places[i].row;
        s->where[s->places[i].at] = (uint32_t)i;
        if (i && s->ids[i] == s->ids[i - 1])
            return drps_err_set(err, DRPS_E_CORRUPT, "%s: two names have row %u",
                                s == &c->old ? c->o->from : c->o->model, s->ids[i]);
    }
    return s->n ? drps_modeldir_gather(s->md, s->ids, s->n, s->params, err) : 0;
}

static const float *params_of(const struct comparing *c, const struct side *s, size_t at)
{
    return s->params + (size_t)s->where[at] * c->dim;
}

static int write_line(struct comparing *c, const char *name, size_t n, const float *params,
                      struct drps_err *err)
{
    int rc = drps_textfile_put_name(&c->file, DRPS_NAME_IN_TABS, name, n, err);
    return rc == 0 ? drps_textfile_put_floats(&c->file, params, c->dim, '\t', err) : rc;
}

/* Write the line of name `at` of the batch, if it is new, or if its row differs. */
static int write_changed(struct comparing *c, size_t at, struct drps_err *err)
{
    const struct batch_name *name = &c->names[at];
    const float *now = params_of(c, &c->now, at);
    const int is_new = c->found[at] == DRPS_NO_ROW;
    const char *text;
    size_t n;
    if (!is_new && memcmp(now, params_of(c, &c->old, at), c->dim * sizeof(*now)) == 0) return 0;
    *(is_new ? &c->out->fresh : &c->out->changed) += 1;
    int rc =
        drps_readout_name(&c->readout, c->keys[at], name->field,
                          name->is_text ? c->text + name->at : NULL, name->bytes, &text, &n, err);
    return rc == 0 ? write_line(c, text, n, now, err) : rc;
}

static int compare_batch(struct comparing *c, struct drps_err *err)
{
    int rc = drps_io_stopped(c->o->io, err);
    if (rc == 0) rc = drps_modeldir_lookup(c->old.md, c->keys, c->n, c->found, err);
    if (rc == 0) rc = read_side(c, &c->now, c->rows, err);
    if (rc == 0) rc = read_side(c, &c->old, c->found, err);
    for (size_t i = 0; i < c->n && rc == 0; i++)
        rc = write_changed(c, i, err);
    c->n = c->text_n = 0;
    return rc;
}

static int add_name(void *ctx, uint64_t key, uint32_t row, unsigned field, const char *text,
                    size_t bytes, struct drps_err *err)
{
    struct comparing *c = ctx;
    const int full = c->n == c->cap || (c->n && c->text_n + bytes > c->cap * NAME_BYTES);
    if (drps_readout_is_sample(&c->readout, row)) return 0; /* of other samples in either */
    int rc = full ? compare_batch(c, err) : 0;
    if (rc < 0) return rc;
    if (drps_array_reserve(&c->text, &c->text_cap, c->text_n + bytes, 1)) return no_memory(c, err);
    if (bytes) memcpy(c->text + c->text_n, text, bytes);
    c->names[c->n] = (struct batch_name){
        .field = field, .is_text = text != NULL, .at = c->text_n, .bytes = bytes};
    c->keys[c->n] = key;
    c->rows[c->n++] = row;
    c->text_n += bytes;
    return 0;
}

/* Row 0 of both, which has no name. */
static int compare_intercepts(struct comparing *c, struct drps_err *err)
{
    static const uint32_t row = 0;
    float *before = c->old.params, *now = c->now.params;
    const int is_new = !drps_modeldir_info(c->old.md)->model.has_bias;
    if (!drps_modeldir_info(c->now.md)->model.has_bias) return 0;
    int rc = drps_modeldir_gather(c->now.md, &row, 1, now, err);
    if (rc == 0 && !is_new) rc = drps_modeldir_gather(c->old.md, &row, 1, before, err);
    if (rc < 0 || (!is_new && memcmp(now, before, c->dim * sizeof(*now)) == 0)) return rc;
    *(is_new ? &c->out->fresh : &c->out->changed) += 1;
    return write_line(c, DRPS_READOUT_INTERCEPT, strlen(DRPS_READOUT_INTERCEPT), now, err);
}

/* ---- Both models ---- */

static int open_side(struct side *s, const struct drps_io *io, const char *path,
                     uint64_t memory_bytes, struct drps_err *err)
{
    int rc = drps_modeldir_open(io, path, 0, &s->md, err);
    if (rc < 0) return rc;
    const uint64_t least = drps_modeldir_memory_least(s->md);
    return drps_modeldir_open_rows(s->md, memory_bytes > least ? memory_bytes : least, err);
}

/* The same feature must have the same key and the same numbers. */
static int check_alike(const struct comparing *c, struct drps_err *err)
{
    const struct drps_modeldir_info *a = drps_modeldir_info(c->old.md);
    const struct drps_modeldir_info *b = drps_modeldir_info(c->now.md);
    int same = a->model.algo == b->model.algo && a->model.dim == b->model.dim &&
               a->string_names == b->string_names && a->fields_n == b->fields_n &&
               (!a->string_names || a->hash_seed == b->hash_seed);
    for (size_t i = 0; same && i < a->fields_n; i++)
        same = strcmp(a->fields[i], b->fields[i]) == 0;
    if (same) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s and %s name features in other ways, or have other rows, so that a "
                        "delta cannot be written: plans that go on from each other are alike",
                        c->o->model, c->o->from);
}

static int make_room(struct comparing *c, uint64_t memory_bytes, struct drps_err *err)
{
    const size_t of_side =
        sizeof(struct place) + 2 * sizeof(uint32_t) + (size_t)c->dim * sizeof(float);
    const size_t each =
        2 * of_side + sizeof(*c->keys) + 2 * sizeof(uint32_t) + sizeof(*c->names) + NAME_BYTES;
    const uint64_t fit = memory_bytes / each;
    int has = 1;
    c->cap = fit > NAMES_MOST ? NAMES_MOST : fit < 1 ? 1 : (size_t)fit;
    for (int i = 0; i < 2; i++) {
        struct side *s = i ? &c->now : &c->old;
        s->places = drps_array_new(c->cap, sizeof(*s->places));
        s->ids = drps_array_new(c->cap, sizeof(*s->ids));
        s->where = drps_array_new(c->cap, sizeof(*s->where));
        s->params = drps_array_new(c->cap, (size_t)c->dim * sizeof(*s->params));
        has &= s->places && s->ids && s->where && s->params;
    }
    c->keys = drps_array_new(c->cap, sizeof(*c->keys));
    c->rows = drps_array_new(c->cap, sizeof(*c->rows));
    c->found = drps_array_new(c->cap, sizeof(*c->found));
    c->names = drps_array_new(c->cap, sizeof(*c->names));
    return has && c->keys && c->rows && c->found && c->names ? 0 : no_memory(c, err);
}

static int write_model(struct comparing *c, const char *what, const char *path,
                       const struct side *s, struct drps_err *err)
{
    const struct drps_modeldir_info *info = drps_modeldir_info(s->md);
    int rc = drps_textfile_print(&c->file, err, "# %s ", what);
    if (rc == 0) rc = drps_textfile_put_name(&c->file, DRPS_NAME_IN_TABS, path, strlen(path), err);
    return rc < 0 ? rc
                  : drps_textfile_print(&c->file, err, " content %016" PRIx64 " rows %" PRIu64 "\n",
                                        info->content, info->rows);
}

static int write_all(struct comparing *c, struct drps_err *err)
{
    int rc = drps_textfile_print(&c->file, err, "# drps-delta 1\n");
    if (rc == 0) rc = write_model(c, "model", c->o->model, &c->now, err);
    if (rc == 0) rc = write_model(c, "base", c->o->from, &c->old, err);
    if (rc == 0) rc = drps_textfile_print(&c->file, err, "# dim %u\n", c->dim);
    if (rc == 0) rc = compare_intercepts(c, err);
    if (rc == 0) rc = drps_modeldir_scan_names(c->now.md, add_name, c, err);
    if (rc == 0 && c->n) rc = compare_batch(c, err);
    if (rc == 0)
        rc = drps_textfile_print(&c->file, err, "# end: changed %" PRIu64 ", new %" PRIu64 "\n",
                                 c->out->changed, c->out->fresh);
    if (rc == 0) rc = drps_textfile_commit(&c->file, err);
    c->out->bytes = c->file.written;
    return rc;
}

static void close_side(struct side *s)
{
    drps_modeldir_close(s->md);
    free(s->places);
    free(s->ids);
    free(s->where);
    free(s->params);
}

int drps_delta_write(const struct drps_delta_options *o, struct drps_delta *out,
                     struct drps_err *err)
{
    struct comparing c = {.o = o, .out = out};
    *out = (struct drps_delta){0};
    int rc = drps_textfile_open(&c.file, o->io, o->path, o->replace, err);
    if (rc == 0) rc = open_side(&c.old, o->io, o->from, o->memory_bytes / 4, err);
    if (rc == 0) rc = open_side(&c.now, o->io, o->model, o->memory_bytes / 4, err);
    if (rc == 0) rc = check_alike(&c, err);
    if (rc == 0) rc = drps_readout_open(c.now.md, DRPS_READOUT_NAMES_LEAST, &c.readout, err);
    if (rc == 0) c.dim = drps_modeldir_info(c.now.md)->model.dim;
    if (rc == 0) rc = make_room(&c, o->memory_bytes / 2, err);
    if (rc == 0) rc = write_all(&c, err);
    drps_textfile_close(&c.file);
    drps_readout_close(&c.readout);
    close_side(&c.old);
    close_side(&c.now);
    free(c.keys);
    free(c.rows);
    free(c.found);
    free(c.names);
    free(c.text);
    return rc;
}

/* ---- Before training ---- */

int drps_delta_check(const struct drps_delta_options *o, struct drps_err *err)
{
    struct drps_modeldir *md;
    struct stat st, model;
    if (!o->from)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a delta is what has changed since an earlier model: name one to begin "
                            "with");
    if (strcmp(o->from, o->model) == 0 || (stat(o->from, &st) == 0 && stat(o->model, &model) == 0 &&
                                           st.st_dev == model.st_dev && st.st_ino == model.st_ino))
        return drps_err_set(
            err, DRPS_E_CONFIG,
            "%s would be replaced by what it is to be compared with: give the model "
            "another name, or leave out the delta",
            o->from);
    int rc = drps_textfile_check(o->path, o->model, &o->from, 1, err);
    if (rc < 0) return rc;
    rc = drps_modeldir_open(o->io, o->from, 0, &md, err);
    drps_modeldir_close(md);
    if (rc < 0)
        return drps_err_context(err, "a delta is what has changed since a model, which %s is not",
                                o->from);
    if (o->replace || stat(o->path, &st) < 0 || !S_ISREG(st.st_mode)) return 0;
    return drps_err_set(err, -EEXIST, "%s exists already: choose another name, or have it replaced",
                        o->path);
}
