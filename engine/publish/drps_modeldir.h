/*
 * The model: what drps-train leaves and drps-predict reads.
 *
 *   model.json   what the model is and how it was made; ends with a checksum of itself
 *   names.rec    dictionary: feature keys (and strings) to rows, copied from the plan
 *   rows/        key-value database: value b holds the parameters of block b
 *
 * Block b has rows b * block_rows to (b + 1) * block_rows - 1, the last one those that are left. A
 * row's parameters are dim float32, without the optimizer's state.
 */
#ifndef DRPS_ENGINE_PUBLISH_MODELDIR_H
#define DRPS_ENGINE_PUBLISH_MODELDIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/folder/drps_findings.h"
#include "engine/calibrate/drps_calibration.h"
#include "engine/model/drps_model.h"
#include "engine/publish/drps_model_files.h"
#include "index/plan/drps_names.h"
#include "index/plan/drps_plan.h"
#include "storage/kv/drps_kv.h"

enum { DRPS_MODELDIR_VERSION = 1, DRPS_MODELDIR_BLOCK_BYTES = 16 * 1024 };

/* The folder of a model, for drps_stage_begin(); while training it also holds the rows. */
extern const struct drps_stage_kind drps_modeldir_kind;

#define DRPS_MODEL_IMPORTED "imported" /* the plan of a model of another program */

/* What prediction needs to know. */
struct drps_modeldir_info {
    char plan_id[17]; /* or DRPS_MODEL_IMPORTED */
    struct drps_model model;
    char format[DRPS_PLAN_NAME_BYTES]; /* of the training data: the default for new data */
    char store[DRPS_PLAN_NAME_BYTES];  /* engine of rows/ */
    int classification;
    float label_negative,
        label_positive; /* the data's two labels, -1 and +1 in training (classification) */
    double label_mean;
    const struct drps_classes *classes; /* of labels; when reading the model's, when writing
                                           borrowed; NULL: labels are no names */
    uint64_t hash_seed;
    struct drps_hashing hashing; /* as in the plan */
    int string_names;
    struct drps_plan_sequences sequences; /* as in the plan, but that lines may be as long as any */
    uint64_t rows, block_rows;
    /* XXH3 over the parameters of all rows in order: equal models have equal numbers. */
    uint64_t content;
    size_t tables_n;
    struct drps_table tables[DRPS_PLAN_TABLES];
    size_t fields_n;
    char **fields; /* field prefixes of string names; when reading owned by the model, when writing
                      borrowed */
    char label_column[DRPS_PLAN_COLUMN_BYTES]; /* as in the plan */
    char separator;
    int headless;
    const char *plan_command; /* that has made the plan, and `command`, that has trained the model;
                                 when reading the model's; NULL: not known */
    const char *command;      /* when writing not looked at: `training` has it */
    /* Topics: what documents are coded with beside rows. When reading the model's, when writing
     * borrowed: drps_topic_gram(); NULL: no topic model. */
    const double *gram;
    double topic_l1;
    struct drps_calibration calibration; /* when reading the model's; when writing not looked at */
};

/* 1: the data calls features by names, of fields; 0: by numbers. */
static inline int drps_modeldir_reads_names(const struct drps_modeldir_info *info)
{
    const int one_feature = info->model.layers.n && !info->model.layers.has_features;
    return info->hashing.bits || one_feature ? info->fields_n > 0 : info->string_names;
}

/* Returns the bytes of memory that model.json takes for `gram`, written or read. */
uint64_t drps_modeldir_gram_memory(const struct drps_model *model);

/* ---- Writing ---- */

struct drps_modelrows; /* opaque: a database of rows being written */

/* Make folder `path`. */
DRPS_MUST_CHECK
int drps_modelrows_open(const struct drps_kv_ops *kv, const char *path, uint64_t rows, uint32_t dim,
                        uint64_t memory_bytes, struct drps_modelrows **w_out, struct drps_err *err);
/* params [n][dim] of rows first .. first + n - 1; rows must come in order and be complete. */
DRPS_MUST_CHECK
int drps_modelrows_add(void *writer, uint64_t first, size_t n, const void *params,
                       struct drps_err *err);
DRPS_MUST_CHECK
int drps_modelrows_finish(struct drps_modelrows *w, uint64_t *content_out, struct drps_err *err);
void drps_modelrows_close(struct drps_modelrows *w); /* NULL-safe */

/* Returns the memory beside what is given for the engine. */
uint64_t drps_modelrows_memory(uint32_t dim);
uint64_t drps_modeldir_block_rows(uint32_t dim);

/* What model.json says, but for "files": a json_t object, json_decref() it; NULL when memory is
 * gone. `training` (a json_t object, borrowed; NULL: none) is in it: how the model was made. */
void *drps_modeldir_describe(const struct drps_modeldir_info *info, void *training);

/* Complete the model in `dir`, which holds rows/, a database of engine `store`, and names.rec, of
 * this size and XXH3: write model.json from `description`, which is changed. */
DRPS_MUST_CHECK
int drps_modeldir_finish(const struct drps_io *io, const char *dir, const char *store,
                         uint64_t names_bytes, uint64_t names_sum, void *description,
                         struct drps_err *err);

/* Keep a calibration in the model `dir`, or none: model.json is written aside and renamed, so that
 * the model is the old one or the new one. Parameters, and so `content`, stay as they are; they
 * must be those that were scored, `content`. Errors are those of drps_modeldir_open(),
 * DRPS_E_CONFIG (another model has that name by now) and -EBUSY (another process does the same). */
DRPS_MUST_CHECK
int drps_modeldir_calibrate(const struct drps_io *io, const char *dir, uint64_t content,
                            const struct drps_calibration *c, struct drps_err *err);

/* ---- Reading ---- */

struct drps_modeldir; /* opaque: an open model, owned by whoever called drps_modeldir_open() */

/*
 * memory_bytes: for the engine, the blocks kept in memory and the dictionary's pages; 0: without
 * the rows, which drps_modeldir_open_rows() opens then. DRPS_E_NOT_FOUND: no model there;
 * DRPS_E_CORRUPT names what is damaged; DRPS_E_MEMORY_BUDGET says how much would do (some MiB).
 */
DRPS_MUST_CHECK
int drps_modeldir_open(const struct drps_io *io, const char *path, uint64_t memory_bytes,
                       struct drps_modeldir **md_out, struct drps_err *err);
void drps_modeldir_close(struct drps_modeldir *md); /* NULL-safe */

const struct drps_modeldir_info *drps_modeldir_info(const struct drps_modeldir *md);
const void *drps_modeldir_json(
    const struct drps_modeldir *md); /* the whole of model.json, a json_t object; borrowed */

/* Returns the least memory that drps_modeldir_open_rows() takes, and what it uses of at least that.
 */
uint64_t drps_modeldir_memory_least(const struct drps_modeldir *md);
uint64_t drps_modeldir_memory_used(const struct drps_modeldir *md, uint64_t memory_bytes);

/* Open the rows of a model that was opened without them; once. Errors are those of
 * drps_modeldir_open(). */
DRPS_MUST_CHECK
int drps_modeldir_open_rows(struct drps_modeldir *md, uint64_t memory_bytes, struct drps_err *err);

/* rows_out[i] becomes the row of keys[i], or DRPS_NO_ROW; keys [n] are increasing, equal ones
 * allowed. One calling thread. */
DRPS_MUST_CHECK
int drps_modeldir_lookup(struct drps_modeldir *md, const uint64_t *keys, size_t n,
                         uint32_t *rows_out, struct drps_err *err);

/* Visit all names in the order of keys; a non-zero result ends the visit. One calling thread. */
DRPS_MUST_CHECK
int drps_modeldir_scan_names(struct drps_modeldir *md, drps_names_visit visit, void *ctx,
                             struct drps_err *err);

/* Parameters of rows ids [n], strictly increasing, into params [n][dim]. One calling thread. */
DRPS_MUST_CHECK
int drps_modeldir_gather(struct drps_modeldir *md, const uint32_t *ids, size_t n, float *params,
                         struct drps_err *err);

/* Returns how many blocks of rows the database was asked for, and their bytes. */
uint64_t drps_modeldir_reads(const struct drps_modeldir *md, uint64_t *bytes_out);

/*
 * Read everything that prediction may read, in the same way: the dictionary, which must be that of
 * the rows (drps_names_verify()), and all rows, whose parameters must be numbers, against the
 * checksums of model.json. Returns 0 when it came to the end: problems are in *found, a name of a
 * file in each. DRPS_E_INTERRUPTED, -ENOMEM. found NULL: the first problem is the failure. Reads
 * names.rec twice and rows/ once. Memory: beside the model's some MiB and a bit a row.
 */
DRPS_MUST_CHECK
int drps_modeldir_verify(struct drps_modeldir *md, struct drps_findings *found,
                         struct drps_err *err);

#endif
