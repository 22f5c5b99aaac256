/* An export from the model to the file: all rows once, in their order. */
#include "engine/export/drps_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/folder/drps_durable.h"
#include "base/folder/drps_escape.h"
#include "engine/export/kinds.h"

enum { FILES_BYTES = 2 << 20 }; /* buffers of two files */

static const struct export_kind *const kinds[] = {&export_text, &export_csv, &export_npy,
                                                  &export_onnx};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *const *drps_export_kinds(void)
{
    static const char *const names[] = {"text", "csv", "npy", "onnx", NULL};
    _Static_assert(sizeof(names) / sizeof(names[0]) == KINDS + 1, "a name for each");
    return names;
}

static int ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static const struct export_kind *choose(const struct drps_export_options *o)
{
    for (size_t i = 0; i < KINDS; i++)
        if (o->as ? strcmp(o->as, kinds[i]->name) == 0 : ends_with(o->output, kinds[i]->end))
            return kinds[i];
    return o->as ? NULL : &export_text;
}

static int open_files(struct exporter *e, const struct drps_io *io, const struct export_kind *kind,
                      struct drps_err *err)
{
    const struct drps_export_options *o = e->o;
    int rc = drps_textfile_check(o->output, o->model, NULL, 0, err);
    if (rc == 0) rc = drps_textfile_open(&e->out, io, o->output, o->replace, err);
    if (rc < 0 || !kind->has_names) return rc;
    if (strcmp(o->output, "-") == 0)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s has names in a file beside it: standard output is no place for two",
                            kind->name);
    if (asprintf(&e->names_path, "%s.names", o->output) < 0) {
        e->names_path = NULL;
        return drps_err_set(err, -ENOMEM, "no memory for the names of %s", o->output);
    }
    return drps_textfile_open(&e->names, io, e->names_path, o->replace, err);
}

static int remove_file(const struct drps_textfile *f, struct drps_err *err)
{
    const int rc = f->special ? 0 : f->io->ops->unlink(f->io->ctx, f->path);
    if (rc == 0 || rc == -ENOENT) return 0;
    return drps_err_set(err, rc, "cannot remove %s: %s", f->path, drps_err_name(rc));
}

/* Removes a file whose commit has failed: it may have its name all the same. With -EEXIST the name
 * is that of another file, which stays. */
static void take_back(const struct drps_textfile *f, int rc)
{
    struct drps_err ignored = DRPS_ERR_INIT;
    if (rc != -EEXIST) rc = remove_file(f, &ignored);
}

/* Names and numbers of two models must never stand side by side, even if the process is killed. So
 * an old file is removed first, and the new one is renamed last: where it exists, its names do,
 * too. */
static int commit_both(struct exporter *e, struct drps_err *err)
{
    int rc = drps_textfile_sync(&e->names, err);
    if (rc == 0) rc = drps_textfile_sync(&e->out, err);
    if (rc == 0 && e->o->replace) rc = remove_file(&e->out, err);
    if (rc == 0) rc = drps_sync_parent(e->out.io, e->o->output, err);
    if (rc < 0) return rc;
    rc = drps_textfile_commit(&e->names, err);
    if (rc < 0) {
        take_back(&e->names, rc);
        return rc;
    }
    rc = drps_textfile_commit(&e->out, err);
    if (rc == 0) return 0;
    take_back(&e->out, rc);
    take_back(&e->names, 0);
    return rc;
}

static int commit(struct exporter *e, struct drps_err *err)
{
    return e->names_path ? commit_both(e, err) : drps_textfile_commit(&e->out, err);
}

static int run(struct exporter *e, const struct drps_io *io, const struct export_kind *kind,
               struct drps_modeldir *md, struct drps_err *err)
{
    e->info = drps_modeldir_info(md);
    int rc = drps_readout_open_within(md, e->o->memory_bytes, FILES_BYTES, &e->r, err);
    if (rc == 0) rc = open_files(e, io, kind, err);
    if (rc < 0) return rc;
    e->rows = e->info->rows - e->r.samples_n;
    if (kind->begin) rc = kind->begin(e, err);
    if (rc == 0) rc = drps_readout_rows(&e->r, NULL, 0, kind->row, e, err);
    return rc == 0 ? commit(e, err) : rc;
}

int drps_export_run(const struct drps_io *io, const struct drps_export_options *options,
                    struct drps_export_result *result, struct drps_err *err)
{
    struct exporter e = {.o = options};
    struct drps_modeldir *md = NULL;
    memset(result, 0, sizeof(*result));
    if (!options->model || !options->output)
        return drps_err_set(err, DRPS_E_CONFIG, "give a model and a file to export it to");
    const struct export_kind *kind = choose(options);
    if (!kind)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "'%.100s' is no kind of an export: text, csv, npy, onnx", options->as);
    int rc = drps_modeldir_open(io, options->model, 0, &md, err);
    if (rc == 0) rc = run(&e, io, kind, md, err);
    if (rc == 0)
        *result = (struct drps_export_result){.rows = e.rows,
                                              .dim = e.info->model.dim,
                                              .as = kind->name,
                                              .hashed = e.info->hashing.bits > 0};
    drps_textfile_close(&e.out);
    drps_textfile_close(&e.names);
    drps_readout_close(&e.r);
    drps_modeldir_close(md);
    free(e.names_path);
    return rc;
}
