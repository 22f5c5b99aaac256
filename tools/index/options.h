/* What drps-index was asked to do. Private to tools/index/. */
#ifndef DRPS_TOOLS_INDEX_OPTIONS_H
#define DRPS_TOOLS_INDEX_OPTIONS_H

#include <stddef.h>

#include "index/drps_index.h"
#include "index/ranks/drps_index_ranks.h"
#include "tools/drps_cli.h"

struct index_paths {
    const char **list; /* own; the paths are borrowed */
    size_t n, cap;
};

/* Texts are borrowed from the command line. */
struct index_options {
    struct drps_index_options index;
    struct drps_index_ranks_options ranks; /* if it has peers */
    int has_rank, has_waits, has_hand_on_for;
    uint64_t link_bits; /* of each machine's link to the network, a second */
    int of_text;        /* an option was given that says how text becomes a plan */
    int of_model;       /* one that says what a row is, or how text is read: what a base settles */
    struct index_paths inputs, tests, weights, test_weights;
};

/* The tool, whose parse function fills a struct index_options. */
extern const struct drps_cli_tool index_tool;

/* 1: this process counts for another one, which makes the plan. */
int index_only_counts(const struct index_options *o);

/* Free the lists of paths. */
void index_options_free(struct index_options *o);

#endif
