/*
 * Classes: what samples are labelled with where labels are names. Each has a number, from 0 on.
 *
 * A label that is written as a decimal number is named by that number, without a plus sign, zeros
 * in front or zeros behind the point: +1, 01 and 1.0 are the class "1". Any other label is its own
 * name. Classes get their numbers in the order of their names: by value where all are decimal
 * numbers, else byte by byte. So neither the order of samples nor what else is read matters.
 */
#ifndef DRPS_INDEX_CLASSES_H
#define DRPS_INDEX_CLASSES_H

#include <stddef.h>
#include <stdint.h>

#include "base/drps_err.h"

/* The least and most classes, and the most bytes of a name with its final zero. A row has a float
 * of each class and moves as a whole: 256 KiB at most, and as much for each state of the optimizer.
 */
enum { DRPS_CLASSES_LEAST = 2, DRPS_CLASSES_MOST = 65535, DRPS_CLASS_NAME_BYTES = 251 };

struct drps_classes; /* opaque: a table of names */

struct drps_classes *drps_classes_new(void);    /* NULL when memory is gone */
void drps_classes_free(struct drps_classes *c); /* NULL-safe */

size_t drps_classes_count(const struct drps_classes *c);               /* 0 for NULL */
const char *drps_classes_name(const struct drps_classes *c, size_t i); /* borrowed; i < count */

/* Returns the number of the class that a label of n bytes stands for, -1 if there is none. */
int32_t drps_classes_find(const struct drps_classes *c, const char *label, size_t n);

/* Returns that number; a class that is not there is added behind the others. Or one of: */
enum drps_class_fault {
    DRPS_CLASS_EMPTY = -1,
    DRPS_CLASS_LONG = -2,
    DRPS_CLASS_TEXT = -3, /* not UTF-8, or with a control character */
    DRPS_CLASS_MANY = -4, /* there are DRPS_CLASSES_MOST already */
    DRPS_CLASS_MEMORY = -5,
};
int32_t drps_classes_add(struct drps_classes *c, const char *label, size_t n);
int32_t drps_class_check(const char *label, size_t n); /* 0, or one of the first three */
const char *drps_class_fault(int32_t fault);           /* "is empty", ... */

/* Returns a copy, NULL when memory is gone. */
struct drps_classes *drps_classes_copy(const struct drps_classes *c);
/* 1: the same names with the same numbers; both NULL are the same. */
int drps_classes_same(const struct drps_classes *a, const struct drps_classes *b);

/* Give classes their numbers: to[i] becomes that of class i, free() it. -ENOMEM. */
DRPS_MUST_CHECK
int drps_classes_sort(struct drps_classes *c, uint32_t **to_out, struct drps_err *err);

/* The names in order, a json_t array (json_decref() it); NULL when memory is gone. */
void *drps_classes_to_json(const struct drps_classes *c);

/*
 * Read the member "classes" of a manifest, a json_t object whose file is `path`, for the message:
 * *c_out is own, NULL where there is no such member. DRPS_E_CORRUPT unless it holds 2 to
 * DRPS_CLASSES_MOST names, in order, no two the same.
 */
DRPS_MUST_CHECK
int drps_classes_get(const void *manifest, const char *path, struct drps_classes **c_out,
                     struct drps_err *err);

/* Write "a, b, c, ... (20 in all)": as many names as there is room for. Returns text. */
const char *drps_classes_text(const struct drps_classes *c, char *text, size_t bytes);

#endif
