/*
 * Weights of samples from text files beside the data, one for each of its files: a number a line,
 * for each line of the data that has a sample. Needs drps_input.h for the bytes.
 * Shared inside index/reader/.
 *
 * Lines of only blanks are ignored; blanks around a number, too. A number is finite and not below
 * 0. A line of data that is bad has its weight, whether it is skipped or not.
 */
#ifndef DRPS_READER_WEIGHTS_H
#define DRPS_READER_WEIGHTS_H

#include <stddef.h>
#include <stdint.h>

#include "index/reader/input/drps_input.h"

enum { DRPS_WEIGHTS_BUFFER = 64 << 10 }; /* and so the longest line */

struct drps_weights {
    struct drps_input in;
    char *buf; /* own: bytes at .. n are read, not yet used */
    size_t at, n;
    uint64_t line;   /* of the file, that `weight` is from */
    uint64_t passed; /* weights of the file before it */
    int has;         /* 1: there is a weight; 0: the file has ended */
    float weight;    /* of the next line with a sample */
};

DRPS_MUST_CHECK
int drps_weights_init(struct drps_weights *w, const struct drps_io *io, const atomic_int *stop,
                      uint64_t codec_limit_bytes, struct drps_err *err);
void drps_weights_destroy(struct drps_weights *w);

/* Open a file and read its first weight; path is borrowed while it is read. DRPS_E_FORMAT:
 * "w.txt:3: weight is not a number: 'abc'". */
DRPS_MUST_CHECK
int drps_weights_open(struct drps_weights *w, const char *path, struct drps_err *err);

/* Read the next weight. Errors as above. */
DRPS_MUST_CHECK
int drps_weights_pass(struct drps_weights *w, struct drps_err *err);

#endif
