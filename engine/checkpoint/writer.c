/* A checkpoint is written in a staged folder: rows as they come, then the manifest. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/drps_alloc.h"
#include "base/folder/drps_durable.h"
#include "base/folder/drps_manifest.h"
#include "engine/checkpoint/checkpoint_internal.h"

enum {
    RECORD_BYTES = 64 << 10, /* of rows in a record, at least */
    RECORDS_MOST = 1 << 16,
};

struct drps_checkpoint_writer {
    const struct drps_checkpoints *c;
    struct drps_stage stage;
    struct drps_recwriter *rows; /* NULL: none has come */
    char *store;                 /* own: folder of a store that saves itself; NULL: none */
    char *record;                /* own: [record_rows][row_bytes] */
    uint64_t record_rows, used;
    uint64_t all_rows, next; /* the first row that has not come */
    size_t row_bytes;
    uint64_t best_bytes;
};

uint64_t drps_checkpoint_record_rows(uint64_t rows, size_t row_bytes)
{
    const uint64_t least = (RECORD_BYTES + row_bytes - 1) / row_bytes;
    const uint64_t few = rows / RECORDS_MOST + 1;
    const uint64_t n = least > few ? least : few;
    return n < rows ? n : rows + !rows;
}

/* ---- Beginning ---- */

static int open_rows(struct drps_checkpoint_writer *w, struct drps_err *err)
{
    char *path = drps_path_join(w->stage.dir, DRPS_CHECKPOINT_ROWS);
    w->record = drps_array_new(w->record_rows, w->row_bytes);
    int rc = path && w->record
                 ? drps_recwriter_open(w->c->io, path, DRPS_KIND_CHECKPOINT_ROWS, &w->rows, err)
                 : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    free(path);
    return rc;
}

int drps_checkpoint_begin(const struct drps_checkpoints *c, uint64_t number, uint64_t rows,
                          size_t row_bytes, struct drps_checkpoint_writer **w_out,
                          struct drps_err *err)
{
    *w_out = NULL;
    struct drps_checkpoint_writer *w = calloc(1, sizeof(*w));
    char *path = drps_checkpoint_name(c, number);
    int rc = w && path ? 0 : drps_err_set(err, -ENOMEM, "no memory to write a checkpoint");
    if (rc == 0) {
        *w = (struct drps_checkpoint_writer){.c = c, .all_rows = rows, .row_bytes = row_bytes};
        w->record_rows = drps_checkpoint_record_rows(rows, row_bytes);
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
    drps_recwriter_close(w->rows);
    drps_stage_abort(&w->stage);
    free(w->store);
    free(w->record);
    free(w);
}

/* ---- Rows ---- */

static int write_record(struct drps_checkpoint_writer *w, struct drps_err *err)
{
    const struct drps_piece piece = {w->record, (size_t)w->used * w->row_bytes};
    w->used = 0;
    return drps_recwriter_add(w->rows, &piece, 1, err);
}

int drps_checkpoint_add(void *writer, uint64_t first, size_t n, const void *rows,
                        struct drps_err *err)
{
    struct drps_checkpoint_writer *w = writer;
    const char *at = rows;
    int rc = w->rows ? 0 : open_rows(w, err);
    if (rc < 0) return rc;
    if (first != w->next || n > w->all_rows - w->next)
        return drps_err_set(err, -EINVAL, "rows %llu to %llu of a checkpoint, %llu of %llu came",
                            (unsigned long long)first, (unsigned long long)(first + n),
                            (unsigned long long)w->next, (unsigned long long)w->all_rows);
    w->next += n;
    while (n && rc == 0) {
        const uint64_t room = w->record_rows - w->used;
        const size_t now = n < room ? n : (size_t)room;
        memcpy(w->record + (size_t)w->used * w->row_bytes, at, now * w->row_bytes);
        w->used += now;
        at += now * w->row_bytes;
        n -= now;
        if (w->used == w->record_rows) rc = write_record(w, err);
    }
    return rc;
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

/* ---- The end ---- */

static int describe_files(const struct drps_checkpoint_writer *w, json_t *manifest,
                          struct drps_err *err)
{
    const uint64_t records = w->rows ? drps_recwriter_count(w->rows) : 0;
    json_t *files =
        json_pack("{s:I, s:I, s:I, s:I, s:b}", "rows", (json_int_t)w->all_rows, "row_bytes",
                  (json_int_t)w->row_bytes, "record_rows", (json_int_t)w->record_rows, "records",
                  (json_int_t)records, "store", w->store != NULL);
    int rc = files ? 0 : -1;
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

/* Everything of it is there: a store, or all rows. */
static int check_whole(const struct drps_checkpoint_writer *w, struct drps_err *err)
{
    if (w->store ? !w->rows : w->next == w->all_rows) return 0;
    return drps_err_set(err, -EINVAL, "a checkpoint of %llu rows got %llu%s",
                        (unsigned long long)w->all_rows, (unsigned long long)w->next,
                        w->store ? " and a store" : "");
}

static int finish_rows(struct drps_checkpoint_writer *w, uint64_t *bytes_out, struct drps_err *err)
{
    if (!w->rows) return 0;
    int rc = w->used ? write_record(w, err) : 0;
    if (rc == 0) rc = drps_recwriter_finish(w->rows, err);
    if (rc == 0) *bytes_out = drps_recwriter_bytes(w->rows);
    return rc;
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
    int rc = check_whole(w, err);
    *bytes_out = store_bytes(w);
    if (rc == 0) rc = finish_rows(w, bytes_out, err);
    if (rc == 0) rc = write_manifest(w, manifest, err);
    drps_recwriter_close(w->rows);
    w->rows = NULL;
    if (rc == 0) rc = drps_stage_commit(&w->stage, err);
    drps_checkpoint_abort(w);
    return rc;
}
