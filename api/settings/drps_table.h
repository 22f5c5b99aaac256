/* Tables of settings, in the form that glibc's argp has: a name without dashes, a key, what the
 * value is called, and what the setting does. Shared with tools/. */
#ifndef DRPS_API_TABLE_H
#define DRPS_API_TABLE_H

#include <argp.h>

/* Keys that have no short form begin here. */
enum { DRPS_SETTING_KEY = 0x100 };

/* With what only a command line has; each ends with {0}. */
extern const struct argp_option drps_index_table[], drps_train_table[], drps_predict_table[],
    drps_recommend_table[];

#endif
