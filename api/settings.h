/* Settings that a program has made, as those of the task that they are for. Private to api/. */
#ifndef DRPS_API_SETTINGS_H
#define DRPS_API_SETTINGS_H

#include "api/drps.h"
#include "api/settings/drps_index_settings.h"
#include "api/settings/drps_predict_settings.h"
#include "api/settings/drps_recommend_settings.h"
#include "api/settings/drps_train_settings.h"

/* Fill *o, which borrows the texts of `s`; s NULL: all are default. Free *o in either case.
 * DRPS_E_CONFIG: they are of another task; -ENOMEM. */
DRPS_MUST_CHECK
int drps_settings_of_index(const struct drps_settings *s, struct drps_index_settings *o,
                           struct drps_err *err);
DRPS_MUST_CHECK
int drps_settings_of_train(const struct drps_settings *s, struct drps_train_settings *o,
                           struct drps_err *err);
DRPS_MUST_CHECK
int drps_settings_of_predict(const struct drps_settings *s, struct drps_predict_settings *o,
                             struct drps_err *err);
DRPS_MUST_CHECK
int drps_settings_of_recommend(const struct drps_settings *s, struct drps_recommend_settings *o,
                               struct drps_err *err);

/* How settings are named in texts for programs; *err is clean, and required. */
struct drps_values drps_settings_values(struct drps_err *err);

#endif
