/*
 * Comma separated values: a header, and what each column means. csv.c and avazu.c differ in how
 * they decide it.
 */
#ifndef DRPS_READER_COLUMNS_H
#define DRPS_READER_COLUMNS_H

#include "index/reader/parse.h"

/* A kind that no user may name: the column has YYMMDDHH, of which the hour is a category. */
enum { DRPS_COLUMN_HOUR = DRPS_COLUMN_IMPRESSIONS + 1 };

/* 1: the column has features. */
static inline int drps_column_is_feature(int kind)
{
    return kind == DRPS_COLUMN_NUMBER || kind == DRPS_COLUMN_CATEGORY || kind == DRPS_COLUMN_HOUR;
}

struct drps_column {
    char *name;     /* in drps_columns.names */
    int kind;       /* enum drps_column_kind, DRPS_COLUMN_HOUR, or -1: not decided */
    int given;      /* an option says what it is */
    int guessed;    /* the first lines say it */
    uint32_t field; /* of a feature column */
};

/* The labels of a file are numbers, or words of one pair. */
enum drps_label_words { DRPS_LABEL_UNKNOWN, DRPS_LABEL_NUMBERS, DRPS_LABEL_WORDS };

struct drps_columns {
    char separator;
    int named;                        /* 1: labels are names, whatever the first one is */
    const char *label_at, *label_end; /* of the line, where they are; NULL: it has none */
    float clicks, impressions;        /* of the line */
    int label_words; /* as the first label had it: DRPS_LABEL_WORDS and more for the pairs */
    char *header;    /* own: the header line as it is, to compare with other files' */
    size_t header_bytes;
    char *names;                 /* own: the columns' names, zero-terminated, unquoted */
    struct drps_column *columns; /* own */
    char **fields; /* own, csv: [n_features] "name:kind", what the reader calls its fields */
    size_t n, n_features;
    size_t header_line; /* its number in the file, from 1 */
    int header_next;    /* the file's header is still to come */
};

/*
 * Split the header line p[0..bytes) into columns of undecided kind; DRPS_E_FORMAT for a bad or
 * double name. `file` is for the text. The caller frees with drps_columns_free(), also after a
 * failure.
 */
DRPS_MUST_CHECK
int drps_columns_init(struct drps_columns *c, const char *p, size_t bytes, char separator,
                      const char *file, struct drps_err *err);
void drps_columns_free(struct drps_columns *c); /* NULL-safe; frees c too */

/* Number the feature columns and hand their names to the reader as its fields. */
DRPS_MUST_CHECK
int drps_columns_finish(struct drps_columns *c, struct drps_reader *r, struct drps_err *err);

/* Find the column of this name; NULL if there is none. */
struct drps_column *drps_columns_find(const struct drps_columns *c, const char *name, size_t bytes,
                                      int any_case);

/*
 * Take the field at p: its text becomes *text .. *text_end, with quotes taken off and doubled ones
 * halved in place. Returns the end of the field in the line, at a separator or at `end`, or NULL
 * after naming the fault.
 */
char *drps_columns_take(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                        char **text_end);

/*
 * Find the label that a word stands for, blanks around it taken off: 1 for yes, true and y, 0 for
 * no, false and n, in any case. *pair_out becomes DRPS_LABEL_WORDS or more, by the pair. Returns 0
 * if it is another word.
 */
int drps_columns_label_word(const char *p, const char *end, float *label_out, int *pair_out);

/* Returns the word of a pair that stands for this label. */
const char *drps_columns_pair_word(int pair, int label);

/* Read a number that has nothing but blanks around it. Returns 0 if there is none. */
int drps_columns_number(const char *p, const char *end, float *v_out);

/* Returns 1 if a number is missing here: the field has blanks alone, or a word that stands for
 * that. */
int drps_columns_missing(const char *p, const char *end);

/* The next four are members of struct drps_format; r->state is a struct drps_columns. */
void drps_columns_close(struct drps_reader *r);
size_t drps_columns_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines);
void drps_columns_begin_file(struct drps_reader *r);
int drps_columns_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end);

#endif
