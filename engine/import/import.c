/* An import from the other program's file to the model: a folder of parameters and names, as
 * training leaves it, of which the model is made. */
#include "engine/import/drps_import.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/drps_clock.h"
#include "base/drps_endian.h"
#include "base/drps_size.h"
#include "base/folder/drps_space.h"
#include "engine/import/source.h"
#include "engine/publish/drps_publish_stage.h"
#include "engine/publish/drps_trained.h"
#include "index/reader/input/drps_input.h"

enum { MIB = 1 << 20, SORT_LEAST = 4 * MIB, SORT_MOST = 256 * MIB, PROGRAM_BYTES = 24 * MIB };
enum { MEMORY_LEAST = PROGRAM_BYTES + 4 * SORT_LEAST };

static const struct import_source *const sources[] = {&import_liblinear, &import_vw,
                                                      &import_libffm};
enum { SOURCES = sizeof(sources) / sizeof(sources[0]) };

const char *const *drps_import_formats(void)
{
    static const char *const names[] = {"liblinear", "vw", "libffm", NULL};
    return names;
}

/* ---- Which format ---- */

/* Returns whether the first bytes [n] may be libffm's: the text "n 5", or counts that a model can
 * have. */
static int is_libffm(const char *head, size_t n)
{
    if (n < 13) return 0;
    const uint32_t fields = drps_get_u32(head + 4), factors = drps_get_u32(head + 8);
    return memcmp(head, "n ", 2) == 0 ||
           (fields && fields <= DRPS_FIELD_MAX && factors && factors <= DRPS_FACTORS_MAX);
}

/* Refuses a pipe: a file is read more than once, and not only from front to back. */
static int check_file(const char *path, struct drps_err *err)
{
    struct stat st;
    if (strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode)))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a pipe: a model of another program is read more than once, so "
                            "write it to a file first",
                            strcmp(path, "-") == 0 ? "standard input" : path);
    return 0;
}

/* Refuses a file whose first bytes [n] show that no model can be read from it. */
static int check_head(const char *path, const char *head, size_t n, struct drps_err *err)
{
    const struct drps_codec *codec = drps_codec_find((const uint8_t *)head, n);
    if (!n) return drps_err_set(err, DRPS_E_FORMAT, "%s is empty", path);
    if (!codec) return 0;
    return drps_err_set(err, DRPS_E_FORMAT, "%s is compressed (%s): unpack it first", path,
                        codec->name);
}

/* Refuses options for what the other program's file says itself. */
static int check_options(const struct drps_import_options *o, const struct import_source *source,
                         struct drps_err *err)
{
    const int is_vw = source == &import_vw;
    if (o->algo && !is_vw)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a model of %s, which has its own: leave out the algorithm",
                            o->input, source->name);
    if (o->labels && source == &import_liblinear)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s is a model of liblinear, which has its own: leave out the labels",
                            o->input);
    return 0;
}

static int find_source(const struct drps_io *io, const struct drps_import_options *o,
                       const struct import_source **out, struct drps_err *err)
{
    char head[16] = "";
    uint64_t size;
    int fd = -1, rc = check_file(o->input, err);
    if (rc == 0) rc = drps_io_open(io, o->input, O_RDONLY, &fd, err);
    if (rc == 0) rc = drps_io_size(io, fd, o->input, &size, err);
    if (rc == 0)
        rc = drps_io_read_at(io, fd, head, size < sizeof(head) ? (size_t)size : sizeof(head), 0,
                             o->input, err);
    drps_io_close(io, fd);
    if (rc == 0)
        rc = check_head(o->input, head, size < sizeof(head) ? (size_t)size : sizeof(head), err);
    if (rc < 0) return rc;
    *out = &import_libffm; /* the rest may be any bytes */
    if (strncmp(head, "solver_type", 11) == 0) *out = &import_liblinear;
    if (strncmp(head, "Version ", 8) == 0) *out = &import_vw;
    for (size_t i = 0; o->format && i < SOURCES; i++)
        if (strcmp(o->format, sources[i]->name) == 0) *out = sources[i];
    if (o->format || *out != &import_libffm ||
        is_libffm(head, size < sizeof(head) ? size : sizeof(head)))
        return 0;
    return drps_err_set(
        err, DRPS_E_FORMAT,
        "%s is no model of LIBLINEAR, which begins with solver_type, none of Vowpal "
        "Wabbit, which begins with Version, and none of libffm",
        o->input);
}

/* ---- The folder ---- */

struct folder {
    struct drps_stage stage;
    struct drps_trained trained;
    char *scratch; /* own: where a sort has its runs */
    char *store;   /* own: the folder above it */
};

static int make_folder(struct import *m, struct folder *f, const struct drps_kv_ops *kv,
                       struct drps_err *err)
{
    const struct drps_modeldir_info *info = &m->info;
    const uint64_t bytes = info->rows * info->model.dim * sizeof(float);
    const struct drps_trained_parts parts = {
        .rows = info->rows, .dim = info->model.dim, .manifest_bytes = MIB};
    char *dir = drps_path_join(f->stage.dir, DRPS_MODEL_TRAINED);
    f->store = drps_path_join(f->stage.dir, DRPS_MODEL_STORE);
    f->scratch = f->store ? drps_path_join(f->store, DRPS_MODEL_BEGIN) : NULL;
    int rc = dir && f->scratch ? 0 : drps_err_set(err, -ENOMEM, "no memory to import a model");
    if (rc == 0)
        rc = drps_space_check(f->stage.dir, "the model needs", bytes + kv->bulk_bytes(bytes), 0,
                              err);
    if (rc == 0) rc = drps_trained_begin(&f->trained, &m->io, dir, &parts, err);
    for (const char *path = f->store; rc == 0 && path; path = path == f->store ? f->scratch : NULL)
        if ((rc = m->io.ops->mkdir(m->io.ctx, path, 0777)) < 0)
            rc = drps_err_set(err, rc, "cannot make the folder %s: %s", path, drps_err_name(rc));
    m->scratch = f->scratch;
    free(dir);
    return rc;
}

static int fill_rows(struct import *m, const struct import_source *source, struct drps_trained *t,
                     struct drps_err *err)
{
    struct drps_params_found found = {0};
    int rc = drps_trained_write(t, m->info.model.dim * sizeof(float), &m->params, err);
    if (rc == 0) rc = source->rows(m, err);
    if (rc == 0) rc = drps_params_finish(m->params, &found, err);
    drps_params_close(m->params);
    if (rc < 0) return rc;
    if (found.bad)
        return drps_err_set(err, DRPS_E_FORMAT, "%s has %llu numbers that are not finite",
                            m->o->input, (unsigned long long)found.bad);
    m->info.content = found.content;
    drps_trained_accept(t, found.content);
    return 0;
}

static int fill_names(struct import *m, const struct import_source *source, struct drps_trained *t,
                      struct drps_err *err)
{
    int rc = drps_names_writer_open(&m->io, t->dir, m->info.string_names, &m->names, err);
    if (rc == 0) rc = source->names(m, err);
    if (rc == 0) rc = drps_names_writer_finish(m->names, err);
    drps_names_writer_close(m->names);
    return rc == 0 ? drps_trained_take_names(t, err) : rc;
}

/* Completes the folder without giving it a name: an import that is killed can be repeated, as the
 * file is still there. */
static int complete(struct import *m, const struct import_source *source, struct folder *f,
                    struct drps_err *err)
{
    json_t *training = json_pack("{s:s}", "imported", source->name);
    m->info.block_rows = drps_modeldir_block_rows(m->info.model.dim);
    json_t *manifest = training ? drps_modeldir_describe(&m->info, training) : NULL;
    int rc = manifest ? drps_trained_keep(&f->trained, manifest, NULL, err)
                      : drps_err_set(err, -ENOMEM, "no memory to describe what was imported");
    json_decref(manifest);
    json_decref(training);
    return rc;
}

static int fill(struct import *m, const struct import_source *source, struct folder *f,
                const struct drps_kv_ops *kv, struct drps_publish_result *result,
                struct drps_err *err)
{
    const struct drps_publish_options options = {.log = m->o->log};
    int rc = make_folder(m, f, kv, err);
    if (rc == 0) rc = fill_rows(m, source, &f->trained, err);
    if (rc == 0) rc = fill_names(m, source, &f->trained, err);
    if (rc == 0) rc = drps_io_remove_tree(&m->io, f->store, err);
    if (rc == 0) rc = complete(m, source, f, err);
    if (rc == 0)
        rc = drps_publish_stage(&f->stage, f->trained.dir, kv, SORT_LEAST * 4, &options, result,
                                err);
    return rc;
}

static int run(struct import *m, const struct import_source *source,
               struct drps_publish_result *result, struct drps_err *err)
{
    struct folder f = {.trained = {.io = NULL}};
    const struct drps_kv_ops *kv;
    const float usual[2] = {-1, 1}, *labels = m->o->labels ? m->o->labels : usual;
    m->info.label_negative = labels[0];
    m->info.label_positive = labels[1];
    int rc = drps_publish_engine(m->o->model_store, &kv, err);
    if (rc == 0) rc = source->look(m, err);
    if (rc < 0) return rc;
    rc = drps_stage_begin(&f.stage, &m->io, m->o->model_path, &drps_modeldir_kind, m->o->replace,
                          err);
    if (rc < 0) return rc;
    rc = fill(m, source, &f, kv, result, err);
    drps_stage_abort(&f.stage); /* nothing to do once committed */
    drps_trained_end(&f.trained);
    free(f.scratch);
    free(f.store);
    return rc;
}

static uint64_t sort_memory(uint64_t memory_bytes)
{
    const uint64_t all = memory_bytes ? memory_bytes : drps_memory_available() / 2;
    const uint64_t left = all > PROGRAM_BYTES ? all - PROGRAM_BYTES : 0;
    return left < SORT_LEAST ? SORT_LEAST : left < SORT_MOST ? left : SORT_MOST;
}

static int check_memory(uint64_t memory_bytes, struct drps_err *err)
{
    if (!memory_bytes || memory_bytes >= MEMORY_LEAST) return 0;
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "a model is imported within at least %d MiB: raise the memory limit",
                        MEMORY_LEAST / MIB);
}

int drps_import_run(const struct drps_io *io, const struct drps_import_options *options,
                    struct drps_import_result *result, struct drps_err *err)
{
    const uint64_t start = drps_clock_ns();
    struct import m = {.o = options, .io = *io, .sort_bytes = sort_memory(options->memory_bytes)};
    struct drps_publish_result published = {0};
    const struct import_source *source = NULL;
    memset(result, 0, sizeof(*result));
    if (!options->input || !options->model_path)
        return drps_err_set(err, DRPS_E_CONFIG, "give a file to import and a name for the model");
    if (options->labels && !(isfinite(options->labels[0]) && isfinite(options->labels[1])))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a label does not fit a float: give two finite numbers");
    int rc = check_memory(options->memory_bytes, err);
    if (rc == 0) rc = find_source(io, options, &source, err);
    if (rc == 0) rc = check_options(options, source, err);
    if (rc == 0) rc = run(&m, source, &published, err);
    if (rc == 0)
        *result = (struct drps_import_result){.format = source->name,
                                              .algo = drps_algo_name(m.info.model.algo),
                                              .rows = published.rows,
                                              .model_bytes = published.model_bytes,
                                              .content = published.content,
                                              .seconds = drps_seconds_since(start)};
    if (source && source->end) source->end(&m);
    drps_classes_free(m.classes);
    free(m.own);
    return rc;
}
