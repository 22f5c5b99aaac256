/*
 * Ratings of files become records: who, which item's row, how much. Names are looked up many at a
 * time. Shared inside engine/recommend/.
 */
#ifndef DRPS_ENGINE_RECOMMEND_INPUT_RATINGS_H
#define DRPS_ENGINE_RECOMMEND_INPUT_RATINGS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/publish/drps_modeldir.h"
#include "index/reader/drps_reader.h"

struct drps_rating {
    uint64_t user_key;   /* by which the dictionary knows the user */
    uint32_t user, item; /* rows, or DRPS_NO_ROW */
    float value;
    uint64_t name; /* of what `keep_name` returned */
};

/* Who takes ratings. */
struct drps_rating_sink {
    void *ctx;
    int new_users; /* users whom the model does not have are not counted as unknown */
    int (*take)(void *ctx, const struct drps_rating *rating, struct drps_err *err);
    /* The user's name, borrowed until it returns, before its rating: *name_out goes with it. NULL:
     * names are not wanted. */
    int (*keep_name)(void *ctx, uint64_t key, const char *text, size_t n, uint64_t *name_out,
                     struct drps_err *err);
};

struct drps_ratings_read {
    uint64_t ratings; /* read */
    uint64_t unknown; /* of these: the item is not in the model, or, but with new_users, the user is
                         not; or the line has none or several of one */
    uint64_t skipped; /* bad lines */
};

struct drps_ratings_files {
    const char *const *paths; /* [n] */
    size_t n;
    struct drps_reader_options reader;                /* memory, log and stop are set */
    const char *model;                                /* its name, for texts */
    void (*on_progress)(void *ctx, uint64_t ratings); /* may be NULL */
    void *ctx;
};

/* Memory beside the reader's. */
uint64_t drps_ratings_memory(void);

/* Read them all. DRPS_E_CONFIG: fields of the files are not the model's users and items; other
 * errors are those of readers, of the sink and of the dictionary. *read_out is added to. */
DRPS_MUST_CHECK
int drps_ratings_read(const struct drps_io *io, struct drps_modeldir *md,
                      const struct drps_ratings_files *files, const struct drps_rating_sink *sink,
                      struct drps_ratings_read *read_out, struct drps_err *err);

#endif
