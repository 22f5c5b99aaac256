/*
 * From what training has kept to a model: what drps-train does at its end, and what can be done
 * later where it could not. The folder (FILES in docs/formats.md) has the parameters and all that
 * the model will say of them; neither the plan nor the rows' store is needed.
 */
#ifndef DRPS_ENGINE_PUBLISH_PUBLISH_H
#define DRPS_ENGINE_PUBLISH_PUBLISH_H

#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"

/* Zero means default. Everything is borrowed. */
struct drps_publish_options {
    const char *folder;      /* that a training kept. Required */
    const char *model_path;  /* the model's folder. Required */
    int replace;             /* an existing model of that name is replaced at the end */
    const char *model_store; /* engine; default: the preferred one of this build */
    uint64_t memory_bytes;   /* of the whole process; default: half of what it may use */
    const struct drps_log *log;
    void (*on_progress)(void *ctx, uint64_t bytes,
                        uint64_t all_bytes); /* of parameters, as they are put into the model;
                                                often, on the calling thread. May be NULL */
    void *ctx;
};

struct drps_publish_result {
    uint64_t rows, model_bytes; /* of parameters */
    uint64_t content;           /* XXH3 over all parameters in placed order */
    const char *model_store;
    double seconds;
};

/*
 * Make the model, whole or not at all; the folder is removed once the model is in place, and stays
 * as it is on any failure: DRPS_E_NOT_FOUND it is none; DRPS_E_CORRUPT its bytes are not those that
 * were written; -EEXIST there is a model of that name; -ENOSPC; DRPS_E_INTERRUPTED by io->stop.
 */
DRPS_MUST_CHECK
int drps_publish_run(const struct drps_io *io, const struct drps_publish_options *options,
                     struct drps_publish_result *result, struct drps_err *err);

#endif
