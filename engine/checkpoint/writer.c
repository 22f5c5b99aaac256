/* A checkpoint is written in a staged folder: rows as they come (parts.c), then the manifest. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/checkpoint_internal.h"
#include "engine/checkpoint/held.h"
#include "engine/checkpoint/parts.h"

struct drps_checkpoint_writer {
    const struct drps_checkpoints *c;
    struct drps_stage stage;
    struct drps_parts_shape shape;
    struct drps_parts *parts; /* NULL: no row has come */
    char *before; /* own: the checkpoint that rows which do not come are of; NULL: none */
    char *store;  /* own: folder of a store that saves itself; NULL: none */
    uint64_t best_bytes;
    struct drps_checkpoint_held held;
};

/* ---- Beginning ---- */

int drps_checkpoint_begin(const struct drps_checkpoints *c, uint64_t number, uint64_t rows,
                          size_t row_bytes, struct drps_checkpoint_writer **w_out,
                          struct drps_err *err)
{
    *w_out = NULL;
    struct drps_checkpoint_writer *w = calloc(1, sizeof(*w));
    char *path = drps_checkpoint_name(c, number);
    int rc = w && path ? 0 : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    if (rc == 0) {
        *w = (struct drps_checkpoint_writer){.c = c};
        drps_parts_shape(rows, row_bytes, c->part_bytes, &w->shape);
        rc = drps_make_folder(c->io, c->root, err);
    }
    if (rc == 0) rc = drps_make_folder(c->io, c->dir, err);
    if (rc == 0) rc = drps_stage_begin(&w->stage, c->io, path, &drps_checkpoint_kind, 1, err);
    free(path);
    if (rc < 0) {
        drps_checkpoint_abort(w);
        return rc;
    }
    *w_out = w;
    return 0;
}

void drps_checkpoint_abort(struct drps_checkpoint_writer *w)
{
    if (!w) return;
    drps_parts_close(w->parts);
    drps_stage_abort(&w->stage);
    free(w->store);
    free(w->before);
    free(w);
}

/* ---- Rows ---- */

uint64_t drps_checkpoint_part_rows(const struct drps_checkpoints *c, uint64_t rows,
                                   size_t row_bytes)
{
    struct drps_parts_shape shape;
    drps_parts_shape(rows, row_bytes, c->part_bytes, &shape);
    return shape.part_rows;
}

int drps_checkpoint_take_rows(struct drps_checkpoint_writer *w, uint64_t number,
                              struct drps_err *err)
{
    w->before = drps_checkpoint_name(w->c, number);
    return w->before ? 0 : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
}

static int begin_parts(struct drps_checkpoint_writer *w, struct drps_err *err)
{
    w->stage.synced = DRPS_CHECKPOINT_ROWS;
    return drps_parts_begin(w->c->io, w->stage.dir, w->before, &w->shape, &w->parts, err);
}

int drps_checkpoint_add(void *writer, uint64_t first, size_t n, const void *rows,
                        struct drps_err *err)
{
    struct drps_checkpoint_writer *w = writer;
    int rc = w->parts ? 0 : begin_parts(w, err);
    return rc < 0 ? rc : drps_parts_add(w->parts, first, n, rows, err);
}

int drps_checkpoint_make_store(struct drps_checkpoint_writer *w, const char **dir_out,
                               struct drps_err *err)
{
    w->store = drps_path_join(w->stage.dir, DRPS_CHECKPOINT_STORE);
    *dir_out = w->store;
    if (!w->store) return drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    int rc = w->c->io->ops->mkdir(w->c->io->ctx, w->store, 0777);
    if (rc < 0)
        return drps_err_set(err, rc, "cannot create the folder %s: %s", w->store,
                            drps_err_name(rc));
    return 0;
}

/* ---- Files that other files are ---- */

static int copy_into(const struct drps_checkpoint_writer *w, const char *name, const char *from,
                     uint64_t *bytes_out, struct drps_err *err)
{
    char *to = drps_path_join(w->stage.dir, name);
    if (!to) return drps_err_set(err, -ENOMEM, "no memory to copy %s", from);
    uint64_t sum;
    int rc = drps_copy_file(w->c->io, from, to, bytes_out, &sum, err);
    free(to);
    return rc;
}

static int link_into(const struct drps_checkpoint_writer *w, const char *name, const char *from,
                     uint64_t *bytes_out, struct drps_err *err)
{
    struct stat st = {.st_size = 0};
    char *to = drps_path_join(w->stage.dir, name);
    int rc = to ? w->c->io->ops->link(w->c->io->ctx, from, to) : -ENOMEM;
    if (rc == 0 && stat(to, &st)) rc = -errno;
    *bytes_out = (uint64_t)st.st_size;
    if (rc < 0)
        rc = drps_err_set(err, rc, "cannot give %s a second name: %s", from, drps_err_name(rc));
    free(to);
    return rc;
}

/* The file of that name that checkpoint `number` has. */
static int link_before(const struct drps_checkpoint_writer *w, const char *name, uint64_t number,
                       uint64_t *bytes_out, struct drps_err *err)
{
    char *dir = drps_checkpoint_name(w->c, number);
    char *from = dir ? drps_path_join(dir, name) : NULL;
    int rc = from ? link_into(w, name, from, bytes_out, err)
                  : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    free(dir);
    free(from);
    return rc;
}

int drps_checkpoint_add_best(struct drps_checkpoint_writer *w, const char *from,
                             struct drps_err *err)
{
    return copy_into(w, DRPS_CHECKPOINT_BEST, from, &w->best_bytes, err);
}

int drps_checkpoint_link_best(struct drps_checkpoint_writer *w, uint64_t number,
                              struct drps_err *err)
{
    return link_before(w, DRPS_CHECKPOINT_BEST, number, &w->best_bytes, err);
}

int drps_checkpoint_add_names(struct drps_checkpoint_writer *w, const char *from, uint64_t before,
                              struct drps_err *err)
{
    uint64_t bytes;
    if (link_into(w, DRPS_CHECKPOINT_NAMES, from, &bytes, NULL) == 0) return 0;
    if (before && link_before(w, DRPS_CHECKPOINT_NAMES, before, &bytes, NULL) == 0) return 0;
    return copy_into(w, DRPS_CHECKPOINT_NAMES, from, &bytes, err);
}

int drps_checkpoint_add_held(struct drps_checkpoint_writer *w,
                             const struct drps_checkpoint_held *held, const void *rows,
                             struct drps_err *err)
{
    char *path = drps_path_join(w->stage.dir, DRPS_CHECKPOINT_HELD);
    int rc = path ? drps_held_write(w->c->io, path, held, rows, err)
                  : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    free(path);
    w->held = *held;
    return rc;
}

/* ---- The end ---- */

static int describe_files(const struct drps_checkpoint_writer *w, json_t *manifest,
                          struct drps_err *err)
{
    json_t *files =
        json_pack("{s:I, s:I, s:I, s:I, s:b}", "rows", (json_int_t)w->shape.rows, "row_bytes",
                  (json_int_t)w->shape.row_bytes, "record_rows", (json_int_t)w->shape.record_rows,
                  "part_rows", (json_int_t)w->shape.part_rows, "store", w->store != NULL);
    int rc = files ? 0 : -1;
    if (rc == 0 && w->held.slots)
        rc = json_object_set_new(files, "held",
                                 json_pack("{s:I, s:I}", "slots", (json_int_t)w->held.slots,
                                           "row_bytes", (json_int_t)w->held.row_bytes));
    if (rc == 0) rc = json_object_set_new(manifest, "kind", json_string(DRPS_CHECKPOINT_KIND));
    if (rc == 0)
        rc = json_object_set_new(manifest, "version", json_integer(DRPS_CHECKPOINT_VERSION));
    if (rc == 0)
        rc = json_object_set_new(manifest, "best_bytes", json_integer((json_int_t)w->best_bytes));
    if (rc == 0) rc = json_object_set(manifest, "files", files);
    json_decref(files);
    return rc == 0 ? 0 : drps_err_set(err, -ENOMEM, "no memory for " DRPS_CHECKPOINT_MANIFEST);
}

static int write_manifest(struct drps_checkpoint_writer *w, json_t *manifest, struct drps_err *err)
{
    char *path = drps_path_join(w->stage.dir, DRPS_CHECKPOINT_MANIFEST);
    if (!path) return drps_err_set(err, -ENOMEM, "no memory for " DRPS_CHECKPOINT_MANIFEST);
    int rc = describe_files(w, manifest, err);
    if (rc == 0) rc = drps_manifest_write(w->c->io, path, manifest, err);
    free(path);
    return rc;
}

static int finish_rows(struct drps_checkpoint_writer *w, uint64_t *bytes_out, struct drps_err *err)
{
    int rc = w->parts ? 0 : begin_parts(w, err); /* all are those of the checkpoint before */
    return rc < 0 ? rc : drps_parts_finish(w->parts, bytes_out, err);
}

/* Bytes of what a store has written of itself; its other file is one that it had already. */
static uint64_t store_bytes(const struct drps_checkpoint_writer *w)
{
    struct stat st = {.st_size = 0};
    char *path = w->store ? drps_path_join(w->store, "relay.rec") : NULL;
    if (path && stat(path, &st)) st.st_size = 0;
    free(path);
    return (uint64_t)st.st_size;
}

int drps_checkpoint_commit(struct drps_checkpoint_writer *w, json_t *manifest, uint64_t *bytes_out,
                           struct drps_err *err)
{
    int rc = 0;
    *bytes_out = store_bytes(w);
    if (!w->store)
        rc = finish_rows(w, bytes_out, err);
    else if (w->parts)
        rc = drps_err_set(err, -EINVAL, "a checkpoint got rows and a store");
    if (rc == 0) rc = write_manifest(w, manifest, err);
    if (rc == 0) rc = drps_stage_commit(&w->stage, err);
    drps_checkpoint_abort(w);
    return rc;
}
