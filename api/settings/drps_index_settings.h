/* The settings of drps-index: what may be said of a plan, and what goes together. Shared with
 * tools/. */
#ifndef DRPS_API_INDEX_SETTINGS_H
#define DRPS_API_INDEX_SETTINGS_H

#include "api/settings/drps_values.h"
#include "index/drps_index.h"

/* Texts are borrowed from who gives them. */
struct drps_index_settings {
    struct drps_index_options index;
    struct drps_value_list inputs, tests, weights, test_weights, labels, test_labels;
    const char *named_net; /* the net that the algorithm is the name of; NULL: it is none */
    int has_hand_on_for;
    int of_text;     /* something was said of how samples become a plan */
    int of_model;    /* or of what a row is, or how text is read: what a base settles */
    int only_counts; /* this process counts for another one, which makes the plan */
    int in_memory;   /* samples are not read from files */
};

void drps_index_settings_init(struct drps_index_settings *o);
void drps_index_settings_free(struct drps_index_settings *o);

/* Take a setting by its key (drps_index_keys.h). Returns 1, or 0: it is none of a plan. */
int drps_index_setting(struct drps_index_settings *o, struct drps_values *v, int key,
                       const char *text);

/* 1: the setting of that key also goes with a finished plan whose batches are dealt. */
int drps_index_setting_is_of_plans(int key);
/* 1: a base settles it. */
int drps_index_setting_is_of_model(int key);

/* What does not go together: of the model and the ranks, then of the data. */
void drps_index_settings_check_model(struct drps_index_settings *o, struct drps_values *v);
void drps_index_settings_check_data(const struct drps_index_settings *o, struct drps_values *v);

/* Fill in what follows from other settings, and the lists of files, once all are taken. */
void drps_index_settings_complete(struct drps_index_settings *o);

#endif
