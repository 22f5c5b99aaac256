/* What drps-index was asked to do. Private to tools/index/. */
#ifndef DRPS_TOOLS_INDEX_OPTIONS_H
#define DRPS_TOOLS_INDEX_OPTIONS_H

#include <stddef.h>

#include "api/settings/drps_index_settings.h"
#include "index/ranks/drps_index_ranks.h"
#include "tools/drps_cli.h"

/* Texts are borrowed from the command line. */
struct index_options {
    struct drps_index_settings settings;
    struct drps_index_ranks_options ranks; /* if there are several */
    int has_rank, has_waits;
    int over_mpi;
    uint64_t link_bits; /* of each machine's link to the network, a second */
};

/* The tool, whose parse function fills a struct index_options. */
extern const struct drps_cli_tool index_tool;

/* 1: this is one of several ranks, started elsewhere. */
static inline int index_has_ranks(const struct index_options *o)
{
    return o->ranks.peers || o->over_mpi;
}

/* 1: several machines make the plan together, and this one has a rank's part of it. */
int index_together(const struct index_options *o);

/* 1: this process counts for another one, which makes the plan. */
int index_only_counts(const struct index_options *o);

#endif
