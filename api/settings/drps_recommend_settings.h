/* The settings of drps-recommend: for whom, which items, how results are measured. Shared with
 * tools/. */
#ifndef DRPS_API_RECOMMEND_SETTINGS_H
#define DRPS_API_RECOMMEND_SETTINGS_H

#include "api/settings/drps_table.h"
#include "api/settings/drps_values.h"
#include "engine/recommend/drps_recommend.h"

/* Texts are borrowed from who gives them. */
struct drps_recommend_settings {
    struct drps_recommend_options recommend;
    struct drps_value_list users, items, fold_in, seen, test;
    int all_similar;
    double test_from;
};

void drps_recommend_settings_init(struct drps_recommend_settings *o);
void drps_recommend_settings_free(struct drps_recommend_settings *o);

/* Take a setting by its key in the table. Returns 1, or 0: it is none. */
int drps_recommend_setting(struct drps_recommend_settings *o, struct drps_values *v, int key,
                           const char *text);

/* What does not go together. */
void drps_recommend_settings_check(const struct drps_recommend_settings *o, struct drps_values *v);

/* Fill in the lists and what follows from other settings, once all are taken. */
void drps_recommend_settings_complete(struct drps_recommend_settings *o);

#endif
