/* The steps of opening a reader, in their order. Private to index/reader/open/. */
#ifndef DRPS_READER_OPEN_OPEN_H
#define DRPS_READER_OPEN_OPEN_H

#include "index/reader/drps_parse.h"

/* Check options that concern all formats, and those of weights and labels beside n_paths files. */
DRPS_MUST_CHECK
int drps_reader_check_options(const struct drps_reader_options *o, struct drps_err *err);
DRPS_MUST_CHECK
int drps_reader_check_beside(const struct drps_reader_options *o, size_t n_paths,
                             struct drps_err *err);

/* What paths lead to. */
struct inputs {
    int pipes;      /* one is a pipe, or standard input, which may be one */
    uint64_t bytes; /* of all files */
};

/*
 * All paths are looked at before the first is read, so that a misspelt one does not fail hours
 * later.
 */
DRPS_MUST_CHECK
int drps_reader_check_paths(const struct drps_io *io, const char *const *paths, size_t n,
                            struct inputs *out, struct drps_err *err);

/* The names of all formats, "libsvm, libffm, ...". */
const char *drps_reader_format_list(void);

/* Find the format of this name; NULL if there is none. */
const struct drps_format *drps_reader_find_format(const char *name);

/* Set r->format by the first block of the input, which was read. DRPS_E_FORMAT: none fits. */
DRPS_MUST_CHECK
int drps_reader_detect_format(struct drps_reader *r, struct drps_err *err);

/* 1: options say something of columns, or of lines of csv. */
int drps_reader_says_columns(const struct drps_reader_options *o);

/* Check that the format can have what options ask for. Options that follow from the format are
 * set. */
DRPS_MUST_CHECK
int drps_reader_check_format(struct drps_reader *r, struct drps_err *err);

/* Once the format is chosen, and the first block of the first file is there: go to the share that
 * options name, if they do. */
DRPS_MUST_CHECK
int drps_reader_begin_share(struct drps_reader *r, struct drps_err *err);

#endif
