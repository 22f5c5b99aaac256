#include "support/base_plans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fuzz_check.h"
#include "support/index_case.h"

static struct scratch scratch;
static struct base bases[BASE_PLANS];

static void remove_all(void)
{
    scratch_end(&scratch);
}

struct scratch *base_scratch(void)
{
    if (scratch.dir[0]) return &scratch;
    scratch_begin(&scratch);
    CHECK(atexit(remove_all) == 0);
    return &scratch;
}

static void choose(struct drps_index_options *o, enum base_plan which)
{
    o->batch_size = 16;
    o->test_fraction = 0.2;
    o->memory_bytes = 64 << 20;
    switch (which) {
    case BASE_FM:
        o->factors = 64;
        break;
    case BASE_GRID:
        o->factors = 4;
        o->order = "grid";
        o->grid_users = 2;
        o->grid_items = 3;
        o->lanes = 2;
        break;
    case BASE_TOPICS:
        o->factors = 5;
        break;
    case BASE_OWN:
        o->loss = "cross_entropy(y, softmax(W*x + own)) + 0.1*norm2(own)";
        break;
    case BASE_OUTPUTS:
        o->loss = "square(y - sum(W*x * sigmoid(W*x)))";
        o->outputs = 3;
        o->workers = 2;
        break;
    case BASE_RANKS:
        o->workers = 2;
        break;
    case BASE_CIRCULATING:
        o->factors = 4;
        o->order = "grid";
        o->workers = 2;
        break;
    case BASE_SERVER:
        o->workers = 3;
        o->servers = 1;
        break;
    case BASE_SEPARATE:
        o->workers = 1;
        o->servers = 2;
        o->separate = 1;
        break;
    default:
        break;
    }
}

static void make(struct base *b, enum base_plan which)
{
    static const struct {
        const char *algo;
        enum case_format format;
        size_t samples, features;
    } shapes[BASE_PLANS] = {
        [BASE_LOR] = {"lor", CASE_LIBSVM, 120, 60},
        [BASE_FM] = {"fm", CASE_LIBSVM, 300, 700},
        [BASE_GRID] = {"lmf", CASE_RATINGS, 400, 40},
        [BASE_CSV] = {"lor", CASE_CSV, 80, 20},
        [BASE_RANKS] = {"lor", CASE_LIBSVM, 160, 60},
        [BASE_CIRCULATING] = {"lmf", CASE_RATINGS, 400, 40},
        [BASE_SERVER] = {"lor", CASE_LIBSVM, 160, 60},
        [BASE_SEPARATE] = {"fm", CASE_LIBSVM, 160, 60},
        [BASE_TOPICS] = {"topic", CASE_LIBSVM, 120, 60},
        [BASE_OWN] = {"expr", CASE_LIBSVM, 120, 60},
        [BASE_OUTPUTS] = {"expr", CASE_LIBSVM, 160, 60},
    };
    struct drps_err err = DRPS_ERR_INIT;
    struct case_run run;
    char name[32];
    (void)snprintf(name, sizeof(name), "base-%d-data", which);
    const char *input = case_input(base_scratch(), name, shapes[which].format,
                                   shapes[which].samples, shapes[which].features, 7);
    case_begin(&run, base_scratch(), input, shapes[which].algo);
    (void)snprintf(name, sizeof(name), "base-%d", which);
    (void)snprintf(run.out, sizeof(run.out), "%s", scratch_path(base_scratch(), name));
    choose(&run.options, which);
    CHECK_OK(drps_index_run(drps_io_os(), &run.options, &run.result, &err));
    (void)snprintf(b->plan, sizeof(b->plan), "%s", run.out);
    (void)snprintf(b->input, sizeof(b->input), "%s", run.input);
    b->ranks = run.result.info.ranks.count;
}

const struct base *base_plan(enum base_plan which)
{
    if (!bases[which].plan[0]) make(&bases[which], which);
    return &bases[which];
}
