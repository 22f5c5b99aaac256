/*
 * Shared by the formats: where samples go, how bad lines are told, and the table entry of a format.
 */
#ifndef DRPS_READER_PARSE_H
#define DRPS_READER_PARSE_H

#include <stddef.h>
#include <stdint.h>

#include "index/reader/input/drps_chunks.h"
#include "index/reader/input/drps_weights.h"
#include "index/reader/drps_reader.h"
#include "index/reader/text/drps_count.h"
#include "index/reader/text/drps_excerpt.h"
#include "index/reader/text/drps_number.h"

enum { DRPS_PARSE_BAD = -1 }; /* a line function's result after drps_parse_bad() */

/*
 * The piece that is being filled, and the fault of its latest line. Arrays of `out` have room, so
 * nothing is checked on the way.
 */
struct drps_parse {
    struct drps_samples *out;
    size_t nnz; /* features written, those of the sample in progress included */
    uint64_t seed;
    char *made;          /* where the next name goes that lies nowhere in the text; has room */
    float weight;        /* of the sample that ends next; 1 where samples have no weights */
    uint64_t line;       /* of that sample: see struct drps_samples */
    int keep_weightless; /* see struct drps_reader_options */
    uint64_t ended, weightless; /* samples, all and those of weight 0 that were left out */
    const char *bad_at;         /* where in the line; NULL: the line as a whole */
    int bad_fatal;              /* not to be skipped: the file's header */
    char bad_why[200];
};

struct drps_format {
    const char *name;
    int has_names;
    int has_classes;   /* labels may be names */
    int has_fields;    /* entries have fields: of their own, or those of their names */
    int has_sequences; /* samples are of sequences, which their entries' fields mark; they are read
                          with fields and with classes, and a line has as many of them at most as
                          features */
    /*
     * Look at the first block of the first file that is not empty, set up, and set reader->fields.
     * NULL: not needed. n may be 0 when all files are empty.
     */
    int (*open)(struct drps_reader *r, const char *head, size_t n, struct drps_err *err);
    void (*close)(struct drps_reader *r); /* free r->state; NULL: nothing to free */
    /* At most so many features come from this text. */
    size_t (*bound)(const struct drps_reader *r, const char *text, size_t n, size_t lines);
    /* At most so many bytes of names come from this text that lie nowhere in it; NULL: none. */
    size_t (*made)(const struct drps_reader *r, const char *text, size_t n, size_t lines);
    void (*begin_file)(struct drps_reader *r); /* NULL: files have no header */
    /*
     * One line, without its end; *end is '\r' or '\n', and the format may write into the line. Adds
     * at most one sample, or with clicks two, or of sequences any number. Returns 0, or
     * DRPS_PARSE_BAD after drps_parse_bad(); the caller then takes back what was written.
     */
    int (*line)(struct drps_reader *r, struct drps_parse *ps, char *p, char *end);
    /* Called before the first line of a piece, where ps->nnz is 0; may be NULL. */
    void (*begin_piece)(struct drps_reader *r, struct drps_parse *ps);
    /* Called after the last line of a piece, or of the file; NULL when samples do not span lines.
     */
    int (*end_piece)(struct drps_reader *r, struct drps_parse *ps, int file_ends,
                     struct drps_err *err);
    /*
     * A format that is not text has these three in place of bound, made, line and what goes with a
     * piece. It reads r->chunks.in, of which c->carry has the first bytes. Its samples have as many
     * features each at most, and are numbered as lines are.
     *   looks    1: a file that begins so is one of the format
     *   ready    read on: *n_out samples are there, of *each_out features; 0 of them: the file has
     *            ended as it should. What is held goes to r->beside_bytes
     *   take     add the next of them; ps->weight and ps->line are set. Its faults are errors
     */
    int (*looks)(const char *head, size_t n);
    int (*ready)(struct drps_reader *r, size_t *n_out, size_t *each_out, struct drps_err *err);
    int (*take)(struct drps_reader *r, struct drps_parse *ps, struct drps_err *err);
};

struct drps_reader {
    struct drps_chunks chunks;
    struct drps_weights weights; /* of options.weights */
    struct drps_reader_options options;
    const struct drps_format *format;
    void *state;         /* own: the format's, freed by its close() */
    const char **fields; /* own; the strings belong to the format */
    size_t n_fields;
    uint32_t field_count;  /* see drps_reader_field_count() */
    uint32_t numbers_each; /* as of samples; 0: they have none, or that is not known yet */
    int read_once;         /* a file is a pipe */
    uint64_t input_bytes;  /* of all files, as they are */
    int begun;             /* the file in `chunks` has had its begin_file() */
    int failed;            /* the code that ended reading, or 0 */
    uint64_t row;          /* of options.matrix, that is next */
    uint64_t beside_bytes; /* that a format which is not text holds, beside `chunks` */
    uint64_t lines, bytes, skipped, weightless, blank;
};

/* All formats, in the order in which they are listed to users: X(name). */
/* clang-format off */
#define DRPS_FORMATS(X)                                                                            \
    X(libsvm) X(libffm) X(ratings) X(criteo) X(avazu) X(csv) X(jsonl) X(vw) X(docword) X(idx)      \
    X(tokens)
/* clang-format on */
#define DRPS_FORMAT_DECLARE(name) extern const struct drps_format drps_format_##name;
DRPS_FORMATS(DRPS_FORMAT_DECLARE)
#undef DRPS_FORMAT_DECLARE

/*
 * Find the format that the first block looks like, or NULL. `head` is readable DRPS_CHUNK_PAD bytes
 * beyond n, and zero there; `whole`: it is the whole file. csv_label may be NULL; `of_columns`:
 * something is said of columns, so that what looks like ratings is csv if it can be; `named`:
 * labels may be names. Blank text counts as libsvm.
 */
const struct drps_format *drps_format_detect(const char *head, size_t n, int whole,
                                             const char *csv_label, int of_columns, int named);

/* Find the format whose parser can name what is wrong with the first block, where no format fits,
 * or NULL: half of the lines begin with a label and a feature of libsvm or libffm. `named`: labels
 * may be names. */
const struct drps_format *drps_format_likely(const char *head, size_t n, int whole, int named);

/* 1: most lines of the first block have as many columns, and the first has a number among them. */
int drps_format_looks_headless(const char *head, size_t n, int whole);

/* Name the fault of a line; returns DRPS_PARSE_BAD. `at` points into the line, or is NULL. */
int drps_parse_bad(struct drps_parse *ps, const char *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), cold));

/* Name the fault of the number at `at`, as in "label is not a number". */
int drps_parse_bad_number(struct drps_parse *ps, const char *at, const char *what)
    __attribute__((cold));

/* 1: labels are names; 0: numbers. */
static inline int drps_reads_classes(const struct drps_reader_options *o)
{
    return o->classes || o->known_classes;
}

/* 1: labels are names of classes, 0: they are numbers. The first label settles it if it has to:
 * `number` says whether this one is a number. */
int drps_parse_names(struct drps_reader *r, int number);

/* Read the class that the text at p .. end names, blanks around it aside. DRPS_PARSE_BAD where it
 * can be none. */
int drps_parse_class(const struct drps_reader *r, struct drps_parse *ps, const char *p,
                     const char *end, float *label_out);

/* Read the label that a line of libsvm or libffm begins with: a number, which a blank, the end or a
 * comment follows. A class is only passed over: drps_parse_class() is for lines that are good.
 * Returns what follows it, or NULL after naming the fault. */
const char *drps_parse_first_label(struct drps_reader *r, struct drps_parse *ps, const char *p,
                                   const char *end, float *label_out);

/*
 * A matrix as the input, in place of text: samples are those of the text of the same numbers, of
 * libsvm, libffm or ratings. Check options.matrix, once the format is set (DRPS_E_CONFIG); the next
 * samples, as drps_reader_next() has them.
 */
DRPS_MUST_CHECK
int drps_matrix_source_open(struct drps_reader *r, struct drps_err *err);
DRPS_MUST_CHECK
int drps_matrix_source_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err);

/* 1: all values [n] are 1. */
int drps_all_ones(const float *values, size_t n);

/* Once the format is open: settles whether its samples have numbers by place, and how many. */
DRPS_MUST_CHECK
int drps_numbers_settle(struct drps_reader *r, struct drps_err *err);

/* Has samples of text, whose entries have fields, be numbers by place. Adds the largest field to
 * r->field_count. */
void drps_numbers_place(struct drps_reader *r, struct drps_samples *out);

/* Returns where the numbers of the sample that is taken next go. */
static inline float *drps_numbers_next(const struct drps_parse *ps, uint32_t each)
{
    return ps->out->numbers + ps->out->n * (size_t)each;
}

/* 1: samples have weights; vw has them in its lines. */
static inline int drps_reads_weights(const struct drps_reader *r)
{
    return r->options.weights_n || r->options.weight || r->options.clicks ||
           r->format == &drps_format_vw;
}

/*
 * End the sample whose features lie at starts[n] .. nnz; ps->weight is its weight. `check` says
 * that keys may repeat: then equal ones of one field are merged, with their names, which may change
 * the order of the features. DRPS_PARSE_BAD when a sum overflows.
 */
int drps_parse_sample(struct drps_parse *ps, float label, int check);

/* Add feature "field=text". */
static inline void drps_parse_name(struct drps_parse *ps, uint32_t field, const char *text,
                                   size_t bytes, float value)
{
    struct drps_name *name = &ps->out->names[ps->nnz];
    drps_name_hash(field, text, bytes, ps->seed, &ps->out->keys[ps->nnz], &name->check);
    name->text = text;
    name->bytes = (uint32_t)bytes;
    name->field = field;
    ps->out->values[ps->nnz++] = value;
}

#endif
