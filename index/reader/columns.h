/*
 * Columns: what each one means, and how its text becomes features. csv.c, avazu.c and jsonl.c
 * differ in how they find the columns and the text; first_lines.c decides about columns that nobody
 * named.
 */
#ifndef DRPS_READER_COLUMNS_H
#define DRPS_READER_COLUMNS_H

#include "index/reader/input/drps_lines.h"
#include "index/reader/drps_parse.h"

/* A kind that no user may name: the column has YYMMDDHH, of which the hour is a category. */
enum { DRPS_COLUMN_HOUR = DRPS_COLUMN_IMPRESSIONS + 1 };

/* 1: the column says how much samples weigh. */
static inline int drps_column_counts(int kind)
{
    return kind == DRPS_COLUMN_WEIGHT || kind == DRPS_COLUMN_CLICKS ||
           kind == DRPS_COLUMN_IMPRESSIONS;
}

enum {
    DRPS_COLUMN_BINS_MOST = 256,
    DRPS_COLUMN_BIN_BYTES = 48,
    DRPS_CROSS_PARTS = 8, /* columns of a cross, at most */
};

/* How a number becomes a value. LINEAR is (number - shift) / unit. The two after it are learned
 * and are LINEAR then; AUTO may become NONE. */
enum drps_scale {
    DRPS_SCALE_AUTO,
    DRPS_SCALE_NONE,
    DRPS_SCALE_LOG, /* sign(v) ln(1 + |v|) */
    DRPS_SCALE_LINEAR,
    DRPS_SCALE_STANDARD,
    DRPS_SCALE_ROBUST,
};

struct drps_column {
    char *name;            /* in drps_columns.names, or own */
    int kind;              /* enum drps_column_kind, DRPS_COLUMN_HOUR, or -1: not decided */
    int given;             /* an option says what it is */
    int final;             /* it was decided for an earlier file: nothing is learned */
    int guessed;           /* the first lines say it */
    uint32_t field;        /* of a feature column */
    enum drps_scale scale; /* of a number */
    float shift, unit;
    uint32_t bins; /* so many are to be learned; 0: they are, or there are none */
    float *cuts;   /* own: [n_cuts] increasing; bin i is from cut i - 1 to below cut i */
    size_t n_cuts;
    char (*bin_names)[DRPS_COLUMN_BIN_BYTES]; /* own: [n_cuts + 1] */
    uint64_t objects, noted;                  /* jsonl: how many have it; the last line that had */
};

/* A category of what several columns hold together. */
struct drps_cross {
    size_t parts[DRPS_CROSS_PARTS]; /* columns */
    size_t n;
    uint32_t field;
    char *name; /* own: "a*b" */
};

/* The labels of a file are numbers, or words of one pair. */
enum drps_label_words { DRPS_LABEL_UNKNOWN, DRPS_LABEL_NUMBERS, DRPS_LABEL_WORDS };

struct drps_text {
    char *p, *end;
};

struct drps_columns {
    char separator;
    int known_kinds;                  /* of the format: fields are called by the names alone */
    int headless;                     /* files have no header: columns are "1", "2", ... */
    int named;                        /* 1: labels are names, whatever the first one is */
    const char *label_at, *label_end; /* of the line, where they are; NULL: it has none */
    float clicks, impressions;        /* of the line */
    int label_words; /* as the first label had it: DRPS_LABEL_WORDS and more for the pairs */
    char *header;    /* own: the header line as it is, to compare with other files' */
    size_t header_bytes;
    char *names;                 /* own: the columns' names, zero-terminated, unquoted */
    struct drps_column *columns; /* own: [n] */
    struct drps_cross *crosses;  /* own: [n_crosses] */
    struct drps_text *texts;     /* own: [n] a line's, where there are crosses */
    char **fields; /* own, but of avazu: [n_fields] "name:kind", what the reader calls its fields */
    size_t n, n_crosses, n_fields;
    size_t line_features; /* of a line, at most */
    size_t header_line;   /* its number in the file, from 1; 0: there is none */
    int header_next;      /* the file's header is still to come */
    uint32_t *table;      /* own, jsonl: [table_cap] 1 + number of the column of a name, 0: none */
    size_t table_cap, next_column;
    uint64_t objects;    /* jsonl: good lines */
    uint64_t line;       /* jsonl: lines, bad ones too */
    uint32_t *line_keys; /* own, jsonl: [n] columns of which the line has a value or null */
    size_t line_keys_n;
    int rest; /* the kind of columns that nothing else is said of; -1: none */
};

/* ---- columns.c: headers, lines, features ---- */

/*
 * Split the header line p[0..bytes) into columns of undecided kind; DRPS_E_FORMAT for a bad or
 * double name. `file` is for the text. The caller frees with drps_columns_free(), also after a
 * failure.
 */
DRPS_MUST_CHECK
int drps_columns_init(struct drps_columns *c, const char *p, size_t bytes, char separator,
                      const char *file, struct drps_err *err);

/* The same of a file's first line where files have no header: columns are called by their numbers,
 * from 1, but that `skipped` is no column of this file; 0: all are. */
DRPS_MUST_CHECK
int drps_columns_init_headless(struct drps_columns *c, const char *p, size_t bytes, char separator,
                               size_t skipped, const char *file, struct drps_err *err);
void drps_columns_free(struct drps_columns *c); /* NULL-safe; frees c too */

/* Find the column of this name; NULL if there is none. */
struct drps_column *drps_columns_find(const struct drps_columns *c, const char *name, size_t bytes,
                                      int any_case);

/* Write names of the columns, "a, b, c", as many as there is room for. Returns `text`. */
char *drps_columns_list(const struct drps_columns *c, char *text, size_t cap);
enum { DRPS_LIST_BYTES = 300 };

/*
 * Take the field at p: its text becomes *text .. *text_end, with quotes taken off and doubled ones
 * halved in place. A separator of one blank stands for any run of blanks. Returns the end of the
 * field in the line, at a separator or at `end`, or NULL after naming the fault.
 */
char *drps_columns_take(struct drps_parse *ps, char separator, char *p, char *end, char **text,
                        char **text_end);

/* Add the features of a field's text, or take the label from it. Returns DRPS_PARSE_BAD after
 * naming the fault. */
int drps_columns_add(struct drps_reader *r, struct drps_parse *ps, const struct drps_column *column,
                     char *p, char *end, float *label);

/* Whether drps_columns_add() would take the text, while scales and bins are yet to be learned. What
 * labels are is settled as it settles it. Returns 0 or DRPS_PARSE_BAD. */
int drps_columns_check(struct drps_reader *r, const struct drps_column *column, char *p, char *end);

/* Add the features of crosses, of the texts of a line. */
void drps_columns_cross(const struct drps_columns *c, struct drps_parse *ps);

/* End the line's sample, with the class of its label if labels are classes. */
int drps_columns_end(struct drps_reader *r, struct drps_parse *ps, float label, int check);

/* The next five are members of struct drps_format; r->state is a struct drps_columns. */
void drps_columns_close(struct drps_reader *r);
size_t drps_columns_bound(const struct drps_reader *r, const char *text, size_t n, size_t lines);
size_t drps_columns_made(const struct drps_reader *r, const char *text, size_t n, size_t lines);
void drps_columns_begin_file(struct drps_reader *r);
int drps_columns_line(struct drps_reader *r, struct drps_parse *ps, char *p, char *end);

/* ---- words.c: what a field's text is ---- */

/*
 * Find the label that a word stands for, blanks around it taken off: 1 for yes, true and y, 0 for
 * no, false and n, in any case. *pair_out becomes DRPS_LABEL_WORDS or more, by the pair. Returns 0
 * if it is another word.
 */
int drps_columns_label_word(const char *p, const char *end, float *label_out, int *pair_out);

/* Returns the word of a pair that stands for this label. */
const char *drps_columns_pair_word(int pair, int label);

/* Read a number that has nothing but blanks around it. Returns 0 if there is none. */
static inline int drps_columns_number(const char *p, const char *end, float *v_out)
{
    while (p < end && drps_is_blank(*p))
        p++;
    while (p < end && drps_is_blank(end[-1]))
        end--;
    return p < end && drps_number_float(p, v_out) == end;
}

/* Returns 1 if a number is missing here: the field has blanks alone, or a word that stands for
 * that. */
int drps_columns_missing(const char *p, const char *end);

/* ---- kinds.c, crosses.c: kinds and crosses as texts ---- */

/*
 * Apply csv_kinds (NULL allowed); errors name the file. Where `add` is set, a column that is not
 * there yet is added, for formats without a header.
 */
DRPS_MUST_CHECK
int drps_kinds_apply(struct drps_columns *c, const char *kinds, int add, const char *file,
                     struct drps_err *err);

/* Once all columns are there and the label is chosen: kinds and scales of columns that nothing is
 * said of, and crosses. */
DRPS_MUST_CHECK
int drps_kinds_apply_rest(struct drps_columns *c, const struct drps_reader_options *o,
                          struct drps_err *err);

/* Add the cross "a*b", or all of "a*b,c*d" (NULL allowed). */
DRPS_MUST_CHECK
int drps_cross_add(struct drps_columns *c, const char *p, size_t n, struct drps_err *err);
DRPS_MUST_CHECK
int drps_crosses_apply(struct drps_columns *c, const char *crosses, struct drps_err *err);

/* Give the column these cuts, increasing, which are copied. */
DRPS_MUST_CHECK
int drps_column_set_cuts(struct drps_column *column, const float *cuts, size_t n,
                         struct drps_err *err);

/* The kind as a text that drps_kinds_apply() reads. Returns `text`. */
char *drps_kind_text(const struct drps_column *column, char *text, size_t cap);
enum { DRPS_KIND_BYTES = 32 + DRPS_COLUMN_BINS_MOST * 20 };

/* ---- fields.c: the label, and the features' fields ---- */

/* Add a column, which owns a copy of the name; NULL when memory is gone. */
struct drps_column *drps_columns_append(struct drps_columns *c, const char *name, size_t bytes);

/*
 * Exactly one column is the label: the one that an option names, or else one with a usual name; of
 * files without a header the first. DRPS_E_CONFIG where there is none, and one is needed.
 */
DRPS_MUST_CHECK
int drps_columns_choose_label(const struct drps_reader *r, struct drps_columns *c,
                              struct drps_err *err);

/* Then the columns of weights, clicks and impressions, if options name such. */
DRPS_MUST_CHECK
int drps_columns_choose_counts(const struct drps_reader *r, struct drps_columns *c,
                               struct drps_err *err);

/*
 * Once all is decided: number the feature columns and crosses and hand their fields, called
 * "column:kind", to the reader. A file that is read later for the same model is told these kinds
 * (see drps_reader_csv_kinds()), so that what its first lines happen to hold decides nothing.
 */
DRPS_MUST_CHECK
int drps_columns_finish(struct drps_columns *c, struct drps_reader *r, struct drps_err *err);

/* ---- first_lines.c: columns that nobody named ---- */

struct drps_first_lines; /* opaque: what the first lines hold, column by column */

struct drps_first_lines *drps_first_lines_new(void);
void drps_first_lines_free(struct drps_first_lines *f); /* NULL-safe */

/* Weigh a field's text in line `line`; 1 is the file's first. `is_text`: it is none for a number,
 * whatever it looks like. -ENOMEM. */
DRPS_MUST_CHECK
int drps_first_lines_add(struct drps_first_lines *f, const struct drps_columns *c, size_t column,
                         char *text, char *text_end, uint64_t line, int is_text,
                         struct drps_err *err);

/* 1: the kinds are decided, and scales and bins are being learned. */
int drps_first_lines_learning(const struct drps_first_lines *f);

/* The line ends. Scales and bins are learned from its numbers if it is `good` and all its fields
 * are, so that a line that is skipped decides nothing. -ENOMEM. */
DRPS_MUST_CHECK
int drps_first_lines_end(struct drps_first_lines *f, const struct drps_columns *c, int good,
                         struct drps_err *err);

/*
 * Look at the first lines, and decide what columns are of which nothing is said; then at all lines,
 * where a scale or bins are to be learned, and the input can be read twice. Both hand their lines
 * to `take`, which calls drps_first_lines_add() and drps_first_lines_end(). At last
 * options.on_columns is told.
 */
DRPS_MUST_CHECK
int drps_first_lines_learn(struct drps_first_lines *f, struct drps_reader *r,
                           struct drps_columns *c, drps_take_line take, void *ctx,
                           struct drps_err *err);

#endif
