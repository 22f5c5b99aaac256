/*
 * What is trained before it is a model: a folder from which a model can be made at any time, on any
 * disk, without the plan.
 *
 *   params.bin    the parameters of all rows: engine/publish/drps_params.h
 *   names.rec     the plan's dictionary
 *   trained.json  what model.json will say (engine/publish/drps_modeldir.h), of kind "drps-trained"
 *
 * While a job trains, the folder is MODEL.partial/trained: everything that is large has its room
 * there from the start. drps_trained_keep() completes it, syncs it and renames it to MODEL.trained:
 * from then on nothing that happens to the job can lose it. Shared inside engine/.
 */
#ifndef DRPS_ENGINE_PUBLISH_TRAINED_H
#define DRPS_ENGINE_PUBLISH_TRAINED_H

#include <stdint.h>

#include "base/drps_io.h"
#include "engine/publish/drps_model_files.h"
#include "engine/publish/drps_params.h"
#include "index/plan/drps_plan.h"

#define DRPS_TRAINED_KIND "drps-trained"
enum { DRPS_TRAINED_VERSION = 1, DRPS_TRAINED_NAMES_MOST = 1000 };

/* Every file that such a folder may hold, the manifest first; then NULL. */
extern const char *const drps_trained_files[];

/* The folder of a job under way. */
struct drps_trained {
    const struct drps_io *io; /* borrowed; NULL: there is none */
    char *dir;                /* own */
    uint64_t rows;
    uint32_t dim;
    int pair;     /* there are two files, so that what is whole stays until another one is */
    int complete; /* parameters of some epoch are whole on disk: */
    int aside;    /* in the second file */
    int kept;     /* dir is the name that the folder keeps */
    uint64_t content;
    uint64_t names_bytes, names_sum;
};

/* What the folder is made of. */
struct drps_trained_parts {
    const struct drps_plan *plan; /* whose names.rec is copied, and compared; borrowed. NULL: the
                                     caller writes it to t->dir: drps_trained_take_names() */
    uint64_t rows;
    uint32_t dim;
    int pair;
    uint64_t manifest_bytes; /* room for trained.json */
};

/* Make `dir` and set all room aside. */
DRPS_MUST_CHECK
int drps_trained_begin(struct drps_trained *t, const struct drps_io *io, const char *dir,
                       const struct drps_trained_parts *parts, struct drps_err *err);
/* The dictionary in the folder is whole: learn its size and checksum. */
DRPS_MUST_CHECK
int drps_trained_take_names(struct drps_trained *t, struct drps_err *err);
void drps_trained_end(struct drps_trained *t); /* zeroed too; removes nothing */

/* A writer of the file that holds nothing yet, or may be lost. */
DRPS_MUST_CHECK
int drps_trained_write(const struct drps_trained *t, size_t row_bytes, struct drps_params **w_out,
                       struct drps_err *err);
/* The file whose parameters count, in a new string (free() it); NULL when memory is gone. There is
 * one: t->complete. */
char *drps_trained_params_path(const struct drps_trained *t);
/* Have the parameters that an earlier run has saved in the file `from` count, whose XXH3 must be
 * `content`. Nothing counts yet. */
DRPS_MUST_CHECK
int drps_trained_restore(struct drps_trained *t, const char *from, uint64_t content,
                         struct drps_err *err);
/* What was written to it is what counts from now on. */
void drps_trained_accept(struct drps_trained *t, uint64_t content);

/*
 * Complete the folder with `manifest` (a json_t object; what only the folder knows is put into it)
 * and rename it to `path`, or where that is taken to `path`.2, .3, ...: t->dir is the name. On a
 * failure it is where it was. path NULL: it stays there, and goes with the stage.
 */
DRPS_MUST_CHECK
int drps_trained_keep(struct drps_trained *t, void *manifest, const char *path,
                      struct drps_err *err);

/* Read a folder that was kept: *manifest_out is a json_t object, own, without "files"; *about has
 * what else a model needs. DRPS_E_NOT_FOUND: the folder holds no such thing. */
struct drps_trained_about {
    uint64_t rows, content;
    uint32_t dim;
    uint64_t names_bytes, names_sum;
};
DRPS_MUST_CHECK
int drps_trained_open(const struct drps_io *io, const char *dir, struct drps_trained_about *about,
                      void **manifest_out, struct drps_err *err);

/* Remove a folder that was kept: the files that it may hold, and itself if it holds no others. */
DRPS_MUST_CHECK
int drps_trained_remove(const struct drps_io *io, const char *dir, struct drps_err *err);

/* Remove those of the folders `path`, `path`.2, .3, ... that hold the parameters `content`, which a
 * model has, and what a killed drps_trained_remove() has left of one. Others stay. */
DRPS_MUST_CHECK
int drps_trained_remove_same(const struct drps_io *io, const char *path, uint64_t content,
                             struct drps_err *err);

#endif
