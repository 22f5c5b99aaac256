/*
 * Data in place of a plan: drps-train then makes the plan first, as drps-index would, and keeps it
 * beside the model. This is about what is asked for; compile.h makes the plan. Private to
 * tools/train/.
 */
#ifndef DRPS_TOOLS_TRAIN_DATA_H
#define DRPS_TOOLS_TRAIN_DATA_H

#include <stdint.h>

#include "api/settings/drps_index_settings.h"
#include "api/settings/drps_table.h"

#define TRAIN_PLAN_SUFFIX ".plan" /* of the model's name */

enum { TRAIN_OPTIONS_MOST = 192 };

/* Texts are borrowed from the command line. */
struct train_data {
    struct drps_index_settings
        settings;       /* its inputs are all arguments, also where one is a plan */
    const char *option; /* an option that only data have was given, the last one; NULL: none */
    uint64_t words;     /* a checksum of these options with their values */
    char *plan;         /* own: the folder to make; NULL: a plan was given */
};

void train_data_init(struct train_data *d);
void train_data_free(struct train_data *d);

/* Fill in the options of drps-train, and behind them those of drps-index that go with data and have
 * names of their own. The table ends with {0}. */
void train_data_table(struct argp_option table[TRAIN_OPTIONS_MOST]);

/* 1: the option is one of those that only data have. */
int train_data_has(int key);

/* Take such an option. Returns 1, or 0: it is none. */
int train_data_option(struct train_data *d, struct drps_values *v, int key, const char *text);

/* Find out whether the arguments are data, once all options are taken: then d->plan is set, and
 * what does not go together is told. `model` may be NULL, which somebody else tells. */
void train_data_settle(struct train_data *d, const char *model, struct drps_values *v);

#endif
