/* The settings of drps-train: how a plan is trained, and what goes together. Shared with tools/. */
#ifndef DRPS_API_TRAIN_SETTINGS_H
#define DRPS_API_TRAIN_SETTINGS_H

#include "api/settings/drps_values.h"
#include "engine/drps_engine.h"

/* Texts are borrowed from who gives them. */
struct drps_train_settings {
    struct drps_train_options train;
    int extreme;          /* a staleness that makes ssp another mode; 0: it has none */
    int chooses_rate;     /* the learning rate is the best of some that pilots try */
    double filter_target; /* share of the loss by which filters, which pilots try, may change it; 0:
                             they are as given */
};

void drps_train_settings_init(struct drps_train_settings *o);

/* Take a setting by its key (drps_train_keys.h). Returns 1, or 0: it is none of training. */
int drps_train_setting(struct drps_train_settings *o, struct drps_values *v, int key,
                       const char *text);

/* What does not go together. has_ranks: a plan for several workers is trained. */
void drps_train_settings_check(const struct drps_train_settings *o, int has_ranks,
                               struct drps_values *v);

/* Fill in what follows from other settings, once all are taken. */
void drps_train_settings_complete(struct drps_train_settings *o);

#endif
