/* What drps-gen was asked to do. Private to tools/gen/. */
#ifndef DRPS_TOOLS_GEN_OPTIONS_H
#define DRPS_TOOLS_GEN_OPTIONS_H

#include "tools/drps_cli.h"
#include "tools/gen/gen.h"

/* Texts are borrowed from the command line. */
struct gen_tool_options {
    struct gen_options gen;
    const struct gen_kind *kind;
    uint64_t test_samples;
    const char *output, *test_output; /* NULL: standard output; none */
    int force;
    unsigned given; /* bit i: the i-th of the options that only some kinds know */
};

/* The tool, whose parse function fills a struct gen_tool_options. */
extern const struct drps_cli_tool gen_tool;

#endif
