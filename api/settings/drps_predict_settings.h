/* The settings of drps-predict: what is made of scores, and how data are read. Shared with tools/.
 */
#ifndef DRPS_API_PREDICT_SETTINGS_H
#define DRPS_API_PREDICT_SETTINGS_H

#include "api/settings/drps_table.h"
#include "api/settings/drps_values.h"
#include "engine/predict/drps_predict.h"

/* Texts are borrowed from who gives them. */
struct drps_predict_settings {
    struct drps_predict_options predict;
    struct drps_value_list inputs, weights, labels;
    int has_shape; /* it was said how explanations are written */
};

void drps_predict_settings_free(struct drps_predict_settings *o);

/* Take a setting by its key in the table; text NULL: its value was left out. Returns 1, or 0: it is
 * none. */
int drps_predict_setting(struct drps_predict_settings *o, struct drps_values *v, int key,
                         const char *text);

/* What does not go together. */
void drps_predict_settings_check(const struct drps_predict_settings *o, struct drps_values *v);

/* Fill in the lists of files and what follows from other settings, once all are taken. */
void drps_predict_settings_complete(struct drps_predict_settings *o);

#endif
