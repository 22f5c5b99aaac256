/*
 * Texts become the values of settings: numbers with units, names from a list. Shared with tools/,
 * whose options are the same settings.
 *
 * What is wrong is kept as the first failure, and a value that is allowed is returned in its place:
 * so the code that takes many settings is not full of tests. Who calls it looks at err->code at the
 * end.
 */
#ifndef DRPS_API_VALUES_H
#define DRPS_API_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

struct drps_values {
    struct drps_err *err; /* borrowed, required */
    const char *before;   /* what stands before a setting's name in a text, and what behind it */
    const char *behind;
};

/* Keep a failure, DRPS_E_CONFIG, unless there is one. In `fmt` {name} is a setting's name; the rest
 * is as of printf(). */
void drps_value_bad(struct drps_values *v, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Limits are inclusive. size: bytes, "256M" is 2^28. count: "4M" is 4,000,000. real: a min of
 * DBL_MIN means above 0. speed: bits a second, "1Gbit" or "100M" with decimal units, at least 1.
 * share: "0.1" or "10%", from 0 to 1. choice: the index of `text` in NULL-terminated `names`.
 */
uint64_t drps_value_size(struct drps_values *v, const char *text, uint64_t min, uint64_t max);
uint64_t drps_value_count(struct drps_values *v, const char *text, uint64_t min, uint64_t max);
uint64_t drps_value_speed(struct drps_values *v, const char *text);
double drps_value_real(struct drps_values *v, const char *text, double min, double max);
double drps_value_share(struct drps_values *v, const char *text);
double drps_value_share_to(struct drps_values *v, const char *text,
                           double most); /* from 0 to most */
size_t drps_value_choice(struct drps_values *v, const char *text, const char *const *names);

/* The next part of a list with commas: *list_io is set behind it, to NULL at the end. Returns
 * `part` [DRPS_VALUE_PART_BYTES]; NULL: no part is left, or it is too long. */
enum { DRPS_VALUE_PART_BYTES = 64 };
char *drps_value_part(struct drps_values *v, const char **list_io,
                      char part[DRPS_VALUE_PART_BYTES]);

/* Returns 1 for yes (true, on, 1), 0 for no, -1 for anything else. */
int drps_truth(const char *text);

/* A setting whose value is kept as it is given: one of `flag` and `text` is set. */
struct drps_value_plain {
    int key;
    int *flag;                /* becomes 1 */
    const char **text;        /* becomes the value, or */
    const char *const *names; /* NULL: any; else the value is one of them, NULL-terminated, which is
                                 what `text` becomes */
};

/* Take the setting if it is one of these [n]. Returns 1: it is; 0: it is none of them. */
int drps_value_take(struct drps_values *v, const struct drps_value_plain *plain, size_t n, int key,
                    const char *text);

/* Texts of a setting that may be given several times. */
struct drps_value_list {
    const char **texts; /* own: [n]; each is borrowed */
    size_t n, cap;
};
void drps_value_add(struct drps_values *v, struct drps_value_list *list, const char *text);
void drps_value_list_free(struct drps_value_list *list); /* emptied too */

/*
 * A count as people write it: "1500", "4M", "1.5G" with decimal K, M, G and T (either case); never
 * negative. Returns 0, or -EINVAL with a text. (Byte sizes are drps_size_parse().)
 */
DRPS_MUST_CHECK
int drps_count_parse(const char *text, uint64_t *count_out, struct drps_err *err);

#endif
