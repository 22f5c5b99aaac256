/* The largest weights of a model, for drps-stat --weights. Private to tools/stat/. */
#ifndef DRPS_TOOLS_STAT_WEIGHTS_H
#define DRPS_TOOLS_STAT_WEIGHTS_H

#include "engine/publish/drps_modeldir.h"
#include "tools/drps_cli.h"

enum { STAT_WEIGHTS_USUAL = 20, STAT_WEIGHTS_MOST = 1000000 };

struct stat_weights {
    int wanted;
    size_t top;             /* 0: STAT_WEIGHTS_USUAL */
    const char *class_name; /* NULL: all classes */
    const char *similar;    /* the feature whose likes are wanted in place of weights; NULL */
    const char *plan;       /* whose training samples are looked at; NULL: none */
    uint64_t memory_bytes;  /* 0: the usual */
};

/* Print them, of the model in the folder `path`, opened without its rows; as JSON where --json is
 * given. DRPS_E_CONFIG: no such class, or a model without weights; DRPS_E_MEMORY_BUDGET. */
DRPS_MUST_CHECK
int stat_print_weights(struct drps_cli *cli, const struct drps_io *io, const char *path,
                       struct drps_modeldir *md, const struct stat_weights *o,
                       struct drps_err *err);

#endif
