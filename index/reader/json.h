/* JSON on a line, read in place: each value that is no object or array is handed on with its path.
 */
#ifndef DRPS_READER_JSON_H
#define DRPS_READER_JSON_H

#include "index/reader/drps_parse.h"

/* An array without values is EMPTY. */
enum drps_json_type {
    DRPS_JSON_STRING,
    DRPS_JSON_NUMBER,
    DRPS_JSON_BOOLEAN,
    DRPS_JSON_NULL,
    DRPS_JSON_EMPTY
};

struct drps_json_leaf {
    const char *path; /* keys joined by dots, zero-terminated; those of an array have its path */
    size_t path_bytes;
    enum drps_json_type type;
    char *p, *end; /* the text, a string's without escapes; *end is no digit */
    int in_array;
};

/* Returns 0, or what ends the walk: DRPS_PARSE_BAD, or a negative code. */
typedef int (*drps_json_take)(void *ctx, struct drps_parse *ps, const struct drps_json_leaf *leaf);

/*
 * Walk the object at p .. end, which this changes. *end is a line's end, and the text is readable
 * DRPS_CHUNK_PAD bytes beyond it. Returns 0, DRPS_PARSE_BAD after naming the fault, or what `take`
 * returned. Objects and arrays may be nested 32 deep, a path may have 255 bytes.
 * Source: RFC 8259; numbers are what drps_number_float() reads.
 */
int drps_json_walk(struct drps_parse *ps, char *p, char *end, drps_json_take take, void *ctx);

#endif
