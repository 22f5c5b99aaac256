/*
 * The scorer: collects samples of named features, looks up and gathers the rows of a whole batch at
 * once, predicts. Private to engine/predict/.
 */
#ifndef DRPS_ENGINE_PREDICT_SCORER_H
#define DRPS_ENGINE_PREDICT_SCORER_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldata.h"
#include "engine/topic/drps_topic.h"

/* One feature of the batch: its key (or, later, its row) and where it stands. */
struct drps_scorer_ref {
    uint64_t key;
    uint32_t at;
};

/* Where rows come from: an open model, or all of one in memory. Functions are as those of
 * drps_modeldir.h, with ctx in place of the model. */
struct drps_scorer_rows {
    const struct drps_modeldir_info *info;
    void *ctx;
    int (*lookup)(void *ctx, const uint64_t *keys, size_t n, uint32_t *rows_out,
                  struct drps_err *err);
    int (*gather)(void *ctx, const uint32_t *ids, size_t n, float *params, struct drps_err *err);
};

struct drps_scorer {
    struct drps_scorer_rows from; /* borrowed */
    size_t samples_cap, entries_cap;
    size_t n, entries;   /* collected */
    size_t numbers_most; /* samples of numbers by place that there is room for; 0: of none */
    uint64_t unseen;     /* entries without a row, or of a field that training had not, ever; of
                            sequences they stay, with the value 0, as they say where these begin */

    float *labels;    /* [samples_cap] as given */
    float *weights;   /* [samples_cap] */
    float *scores;    /* [samples_cap][outputs] */
    uint32_t *starts; /* [samples_cap + 1] */
    float *values;    /* [entries_cap] */
    uint16_t *fields; /* [entries_cap] of a field-aware model, else NULL */
    float *numbers;   /* own: [numbers_most][fields of the model] by place; NULL: they have none */
    int has_numbers;  /* of samples collected: all have, or none has */
    uint32_t *local;  /* [entries_cap] */
    uint32_t *places; /* own: [entries_cap] which entry of the data's piece it is; NULL: not kept */
    uint32_t *rows;   /* [entries_cap] of the distinct names */
    uint32_t *ids;    /* distinct rows, increasing, those that every batch has first */

    char *shared;   /* own: the arrays below; the parameters come when the others are not needed any
                       more */
    uint64_t *keys; /* [entries_cap] */
    uint64_t *names;                      /* [entries_cap] distinct keys, increasing */
    struct drps_scorer_ref *refs, *spare; /* [entries_cap] */
    float *params;                        /* of ids: [][dim] */
    void *scratch;
    struct drps_batch batch; /* what was scored last; borrows the arrays above */

    struct drps_topic *topic; /* own: codes documents; NULL: no topic model */
    float *codes;             /* own: [samples_cap][factors] of a topic model */
};

/* Returns the bytes for batches of so many samples and entries. */
uint64_t drps_scorer_memory(const struct drps_modeldir_info *info, size_t samples, size_t entries);

DRPS_MUST_CHECK
int drps_scorer_init(struct drps_scorer *s, struct drps_modeldir *md, size_t samples,
                     size_t entries, struct drps_err *err);
DRPS_MUST_CHECK
int drps_scorer_init_rows(struct drps_scorer *s, const struct drps_scorer_rows *rows,
                          size_t samples, size_t entries, struct drps_err *err);
void drps_scorer_destroy(struct drps_scorer *s); /* half-built too */

/* Keep places of entries, too: 4 bytes each. After drps_scorer_init(). -ENOMEM. */
DRPS_MUST_CHECK
int drps_scorer_keep_places(struct drps_scorer *s, struct drps_err *err);

/* Take one sample of at most entries_cap features; 0 when there is no room left: run, then add it
 * again. */
int drps_scorer_add(struct drps_scorer *s, const struct drps_modeldata_sample *sample);

/* Returns how many samples of one entry there is room for. */
static inline size_t drps_scorer_room(const struct drps_scorer *s)
{
    const size_t samples = s->samples_cap - s->n, entries = s->entries_cap - s->entries;
    return samples < entries ? samples : entries;
}

/*
 * Score what was collected: scores [n][outputs], and of a topic model codes [n][factors]. labels
 * and weights stay; the batch and params are those of the features that the model has. Call
 * drps_scorer_clear() before adding more. DRPS_E_FORMAT when a sample has more features than the
 * model takes.
 */
DRPS_MUST_CHECK
int drps_scorer_run(struct drps_scorer *s, struct drps_err *err);
void drps_scorer_clear(struct drps_scorer *s);

#endif
