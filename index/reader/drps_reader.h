/*
 * Readers: files of any supported format, text but for idx, become samples, a bounded piece at a
 * time.
 *
 * A feature is known by a 64-bit key. Numeric formats (libsvm, libffm, docword, idx) use the
 * feature's id as the key. Formats whose features are strings (ratings, criteo, avazu, csv, tokens)
 * use the 64-bit XXH3 hash of the string, seeded by its field, and hand the string along, so that
 * the dictionary can keep it and detect two names that share a key.
 *
 * Decided for all formats:
 *   a feature given twice in a sample     values are added, of one field where fields are read; its
 *                                         sample's features may change order
 *   a value (or sum) of 0                 the feature is left out
 *   NaN, infinite or above FLT_MAX        bad line, for labels and values
 *   an id above 2^64 - 1 or negative      bad line
 *   a sample without features             is a sample
 *   empty lines and lines of only blanks  ignored, but in tokens; "#" starts a comment in libsvm
 *                                         and libffm
 *   no sample at all                      end of input after 0 samples (the caller decides)
 *   last line without a line feed, CRLF   accepted, as is a UTF-8 byte order mark in front
 *   lines longer than a piece             the piece grows, up to memory_bytes / 2; beyond: an error
 *   labels that are names of classes      where options have classes, in libsvm, libffm, csv,
 *                                         jsonl, vw and idx: what index/classes/drps_classes.h
 *                                         takes, and but in csv and jsonl without blanks and
 *                                         colons; labels are their numbers
 *   weights                               where options ask for them: of a file beside the data, or
 *                                         of a column; a sample of weight 0 is left out and counted
 *   several files                         each has its own header, if the format has one; no line
 *                                         or sample goes on in the next; one named twice is read
 *                                         twice
 *
 * Formats ("auto" tells them apart by the first lines):
 *   libsvm   "label [qid:N] id:value ... [# comment]", ids from 0 or 1; qid is checked and dropped.
 *            libFM's text is the same.
 *   libffm   "label field:id:value ..."; the key is the id. The field is checked, and dropped
 *            unless fields are read; then it is at most 65534.
 *   ratings  "user item rating [timestamp]"; the separator of each file is what its first line has:
 *            "::", tab, comma, or blanks. Fields user and item. A first line whose third column
 *            begins with a letter is a header; "auto" takes a file with a header for ratings only
 *            if it begins with "user". With label_optional the rating may be missing; a header of
 *            two columns is one whose first is user, users, userid or user_id.
 *   criteo   exactly 40 tab-separated columns without header: label, I1..I13, C1..C26. Integers up
 *            to 2 stand for themselves ("I3=-1"), larger ones for a bucket ("I3=L7":
 *            floor(ln(v)^2) is 7); an empty column is a value of its own ("I3=", "C7=").
 *   avazu    csv with the header id,click,hour,...: label click, id dropped, hour (YYMMDDHH) gives
 *            "hour=00" to "hour=23", all other columns are categories.
 *   csv      a header or none, then RFC 4180 lines; a quoted field may hold separators and doubled
 *            quotes but no line end. All files must have the same header. Fields are the feature
 *            columns, in its order, then crosses. A label is a number, or yes or no, true or
 *            false, y or n (1 or 0): one of these pairs for the whole column.
 *   jsonl    a JSON object a line. Keys are columns, of objects in it joined by dots, in the order
 *            in which the first lines have them; an array's values are categories of one column.
 *            null is missing, as is a key that is not there. Later keys are bad lines.
 *   vw       Vowpal Wabbit's "[label [weight [base]]] [tag]|namespace[:scale] feature[:value] ...".
 *            One field, "feature"; names are "namespace^feature", or "feature" without a namespace.
 *            Tags are dropped; weights but 1 and bases but 0 are bad lines.
 *   docword  UCI bag of words: number of documents, of words, of lines, then "doc word count"
 *            sorted by doc. A document with lines is a sample of label 0. Ids outside the header's
 *            range, going back to a smaller document and negative counts are bad lines; another
 *            number of lines than promised is an error at the end of the file.
 *   tokens   text whose tokens stand between blanks, for nets that read sequences. A sample is a
 *            token, its label the next one, and a line's end is the token "<eos>": text begins as
 *            after one, so that it has as many samples as tokens, or each line is by itself and has
 *            one less. reader/tokens/tokens.c has the rest. "auto" does not find it.
 *   idx      MNIST's numbers of 1 to 4 dimensions: the first counts samples, and number k of one,
 *            from 1, is feature k: v / 255 of unsigned bytes, else v. Its field is k - 1, where
 *            fields are read; a sample has at most 65535 numbers then, or 2^22 where these are
 *            known by their place (numbers_each). Labels are an idx file of
 *            one dimension, given or found by its name (idx/drps_idx_names.h). Faults are errors
 *            with the byte, of the file as it is unpacked; none can be skipped.
 */
#ifndef DRPS_INDEX_READER_READER_H
#define DRPS_INDEX_READER_READER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/drps_io.h"
#include "base/drps_log.h"
#include "index/classes/drps_classes.h"
#include "index/layers/drps_layers.h"
#include "index/reader/input/drps_share.h"
#include "index/reader/matrix/drps_matrix.h"

struct drps_reader; /* opaque: an open list of input files */

/* The string of one feature: fields[field], "=", text. Valid as long as the piece it came with. */
struct drps_name {
    const char *text; /* borrowed from the piece or the reader; any bytes, not zero-terminated */
    uint32_t bytes;
    uint32_t check; /* 32 more bits of the name's hash: tells two names with one key apart */
    uint32_t field; /* index into drps_reader_fields() */
};

/*
 * A piece of the input: n samples. The caller owns it (zero it, pass it to drps_reader_next() as
 * often as it likes, free it with drps_samples_free()); its arrays are reused from call to call.
 */
struct drps_samples {
    size_t n;
    float *labels;           /* [n]; of classes their numbers, -1: none */
    float *weights;          /* [n], >= 0, or NULL: all 1 */
    size_t *starts;          /* [n + 1]; sample i has features starts[i] .. starts[i + 1] - 1 */
    uint64_t *keys;          /* [starts[n]] */
    float *values;           /* [starts[n]] */
    struct drps_name *names; /* [starts[n]], or NULL when the format's features are numbers */
    uint16_t *fields;        /* [starts[n]], or NULL where they are not read */
    uint32_t numbers_each;   /* numbers of a sample that are known by their place; samples have no
                                features then. 0: there are none */
    float *numbers;          /* [n][numbers_each], none of them -0 */
    size_t input;            /* that all samples are of: an index into the paths */
    uint64_t *lines;         /* [n] the line of its text, from 1, that a sample is made from: both
                                samples of a line of clicks have it. docword: the number of the
                                document; idx, a matrix: that of the sample */
    int all_ones;            /* every value of the piece is 1; true when it has none */

    char *text; /* own: the lines this piece was made from; quotes may have been taken off within */
    char *made; /* own: names that lie nowhere in it */
    size_t text_cap, label_cap, weight_cap, start_cap, key_cap, value_cap, name_cap, made_cap,
        field_cap, line_cap, number_cap; /* capacities, elements */
};

void drps_samples_free(struct drps_samples *s);

enum drps_column_kind {
    DRPS_COLUMN_IGNORE,
    DRPS_COLUMN_LABEL,
    DRPS_COLUMN_NUMBER, /* one feature named by the column, its value the number; left out where it
                           is empty, NA, N/A, #N/A, NaN, null, none (in any case), -, ? or \N */
    DRPS_COLUMN_CATEGORY, /* one feature "column=text" of value 1; empty: the category "" */
    DRPS_COLUMN_BINS,     /* one feature "column=from..to" of value 1; missing: the category "" */
    DRPS_COLUMN_DATE,     /* features "column=hour=14", "column=weekday=Mon" and "column=month=11";
                             none where it is missing, as a number */
    DRPS_COLUMN_CROSS,    /* a category of what several columns hold together, "a*b=3*x" */
    DRPS_COLUMN_WEIGHT,   /* of the sample, a number; this and the next two are no features */
    DRPS_COLUMN_CLICKS,
    DRPS_COLUMN_IMPRESSIONS,
};

struct drps_reader_column {
    const char *name;
    enum drps_column_kind kind;
    int guessed_codes; /* a category, although it has whole numbers */
    int scaled;        /* a number whose value is not the one in the text */
    char why[96];      /* "as given", "'z3' in line 2 is no number", ... */
};

/* Whether the first line of a csv file is a header: it is not if it is all numbers; it is; or it is
 * not. Columns without a header are called 1, 2, ... */
enum drps_csv_header { DRPS_CSV_HEADER_BY_LINE, DRPS_CSV_HEADER, DRPS_CSV_NO_HEADER };

/*
 * Labels that may be names: they are; all are numbers, or words of a pair that csv takes for such,
 * else the line is bad; or the first label says which of the two. What it says, a reader that goes
 * on with other files is told: see drps_reader_labels().
 */
enum drps_reader_labels { DRPS_READER_NAMES, DRPS_READER_NUMBERS, DRPS_READER_AS_FIRST };

/*
 * Whether samples have numbers that are known by their place, in place of features: of idx, of csv
 * and jsonl whose columns of features are all numbers, and of a matrix in which at least one of 16
 * numbers is not 0. DRPS_READER_DENSE: of any data with fields, a field being a place.
 */
enum drps_reader_numbers { DRPS_READER_SPARSE, DRPS_READER_AS_FITS, DRPS_READER_DENSE };

struct drps_reader_options {
    const char *format; /* "auto" or NULL: by the first lines; else one of drps_reader_formats() */
    /*
     * Bound on the reader's buffers together with one piece; 0: 64 MiB; at least 1 MiB. A
     * compressed file's decoder comes on top: gzip 40 KiB, xz and zstd what the file asks for, at
     * most 72 MiB or memory_bytes, whichever is more.
     */
    uint64_t memory_bytes;
    int skip_bad_lines;     /* 0: the first bad line is an error; bad headers always are */
    uint64_t hash_seed;     /* of string names */
    const atomic_int *stop; /* non-zero ends reading with DRPS_E_INTERRUPTED, also while waiting for
                               a pipe; NULL allowed */
    int label_optional;     /* csv without a label column, ratings of users and items alone, and
                               idx, whose labels are not looked for then, are read with labels of 0
                               (prediction) */
    float label_missing;    /* of such ratings the label instead */
    /* With label_optional: no label is read. Any text, or none, may stand in its place, all labels
     * are 0, and lines of libsvm and libffm may begin with a feature; columns stay as many as they
     * are. In ratings of three columns the first line is a header where the third begins with a
     * letter and is not NA or another missing value. */
    int label_ignored;
    int refuse_empty; /* 1: paths without a byte of text are DRPS_E_FORMAT */
    /* Labels are names of classes, in formats that have any; those that are not there yet are added
     * to `classes`, and others than `known_classes` are no class. Borrowed; both NULL: numbers. */
    struct drps_classes *classes;
    const struct drps_classes *known_classes;
    /* How these labels are read. But for DRPS_READER_NAMES a format without classes is read, too,
     * with labels that are numbers: see drps_reader_has_classes(). */
    enum drps_reader_labels labels;
    int fields; /* 1: entries have fields: of libffm their numbers, of idx the number's place from
                   0, of formats with names which field it is; other formats are an error */
    /* 1, with fields: nothing but an entry's field and value is looked at. Where features are
     * numbers all entries are then of one, 0, and a sample may have several of one field. */
    int one_feature;
    enum drps_reader_numbers numbers; /* with one_feature */
    uint32_t field_count; /* with fields: idx: numbers that a sample must have; 0: any. Of other
                             data that are DRPS_READER_DENSE, how many places there are */
    /* idx: what samples are taken for: an image of channels (0: any), rows and columns. Files of
     * three dimensions have images of one channel; files of four either have the channels first
     * or last, and become images with the channels first. All 0: samples have any shape. */
    struct drps_image_shape image;
    const char *csv_label; /* csv, jsonl: the label column; NULL: "label", "target", "y" or "click",
                              or without a header the first */
    enum drps_csv_header csv_header; /* csv */
    /* csv, jsonl: how numbers become values where csv_kinds does not say it: "standard": (number -
     * mean) / standard deviation; "robust": (number - median) / (upper - lower quartile); "log":
     * sign(number) ln(1 + |number|); "none". Mean, median and so on are of all lines, beyond 64 MiB
     * of a part that is drawn from all, or, where a path is a pipe, of the first ones (the log says
     * so). NULL: standard where the root mean square of 50 numbers or more is above 10, without the
     * mean where most are 0; else none. */
    const char *csv_scale;
    const char *csv_cross; /* csv, jsonl: "a*b,a*c*d": crosses of columns, of at most 8 each */
    /*
     * csv, jsonl: "col:category,col2:number,col3:ignore,col4:label,col5:date,col6:bins(10)";
     * "*:category" stands for all columns that nothing else is said of. A number may have its scale
     * ("number(log)", or "number(120;35)" for (number - 120) / 35), bins their cuts ("cuts(1;5)").
     * Bins that are counted hold about equally many numbers; these are learned as scales are.
     *
     * Without it the first 1,000 lines below the header, or those in the first MiB, decide. A
     * column that has words there is a category, one of dates is a date, missing ones aside. One of
     * numbers is a number, but whole numbers are categories where
     *   one has zeros in front; or there are 50 of them or more, they are not only 0 and 1, and
     *   the name's last word is id, ip, zip, zipcode, postcode, uid or uuid; or
     *   each occurs four times on average, not more than half are 0, and there are at most 10, or
     *   at least half of the numbers from the least to the largest do not occur.
     */
    const char *csv_kinds;
    int csv_only_kinds; /* csv, jsonl: columns that csv_kinds does not name, and that are not the
                           label, are ignored */
    /* csv, jsonl: called once while the reader opens, with all columns, borrowed until it returns.
       NULL allowed. */
    void (*on_columns)(void *ctx, const struct drps_reader_column *columns, size_t n);
    void *columns_ctx;
    char csv_separator;         /* csv: 0 means detect from the first line (comma, tab, semicolon,
                                   else blanks); ' ' stands for any run of blanks */
    const struct drps_log *log; /* borrowed; told of the first 10 skipped lines */
    /*
     * What samples weigh, of one of these; without any, 1. Numbers are finite and not below 0.
     *   weights      [weights_n] text files, one for each of the data's: a number a line, for each
     *                line with a sample, bad ones too, which are skipped or not. Not for docword
     *   weight       a column: of csv its name, of jsonl its key, which every object must have, of
     *                ratings "4"
     *   clicks, impressions   columns of csv: a line is up to two samples, one of label 1 that
     *                weighs as many as clicks, and one of label -1 that weighs the other
     *                impressions. There is no label column then
     */
    const char *const *weights;
    size_t weights_n;
    const char *weight, *clicks, *impressions;
    const char *const *label_files; /* idx: [label_files_n] files of labels, one for each of the
                                       data's; without any they are found by their names */
    size_t label_files_n;
    /* tokens: samples of a sequence, 1 to DRPS_SEQUENCE_MOST; the last sequence of a file has the
     * rest. 0: DRPS_SEQUENCE_USUAL. With sequence_lines each line is a sequence, and one of more
     * samples is cut; 0: DRPS_SEQUENCE_MOST. */
    uint32_t sequence;
    int sequence_lines;
    const struct drps_matrix *matrix; /* in place of paths, as libsvm, libffm or ratings: `format`
                                         says which; nothing else of how text is read counts.
                                         Borrowed; NULL: none */
    /*
     * What is read of the paths; they are all looked at, so that the format, columns, scales and
     * the kind of labels are those of the whole. Borrowed; NULL: all of them. DRPS_E_CONFIG where
     * it begins or ends within a file of docword or idx, or one that has a file of weights beside
     * it.
     */
    const struct drps_reader_share *share;
    int keep_weightless; /* 1: samples of weight 0 are there like others, and so each line of clicks
                            is two samples */
};

/* Names of the formats, NULL-terminated: libsvm libffm ratings criteo avazu csv jsonl vw
 * docword idx tokens. */
const char *const *drps_reader_formats(void);

/*
 * Open paths[0..n_paths); "-" is stdin. Compression is recognised by content: gzip, zstd, xz, or
 * none. All files must have one format. Paths, the strings of options and the log are borrowed
 * until close. Returns 0, or
 *   -ENOENT, -EISDIR ...  from the system; the text names the path. All paths are looked at.
 *   DRPS_E_CONFIG         bad options, a format without fields where these are to be read, a
 *                         compression that this build cannot read, or weights of several kinds, or
 *                         that this format cannot have
 *   DRPS_E_FORMAT         no format fits the first lines (the text shows one), or a bad csv header;
 *                         with refuse_empty, there is no text
 *   DRPS_E_CORRUPT and DRPS_E_MEMORY_BUDGET as below
 */
DRPS_MUST_CHECK
int drps_reader_open(const struct drps_io *io, const char *const *paths, size_t n_paths,
                     const struct drps_reader_options *options, struct drps_reader **r_out,
                     struct drps_err *err);
void drps_reader_close(struct drps_reader *r);

/*
 * Fill `out` with the next samples (some thousands). Returns 1, or 0 at the end (out->n is 0), or
 *   DRPS_E_FORMAT         "file.txt:12:7: feature id is not a number: 'abc'" (line, byte in it)
 *   DRPS_E_CORRUPT        broken or cut off compression; the text names the file
 *   DRPS_E_MEMORY_BUDGET  a line, its features, or the decoder need more than memory_bytes allows
 *   -EIO, -ENOMEM ...     from the system
 * After an error out->n is 0, and every further call fails with the same code.
 * Threads: one caller at a time; different `out` pieces may be in use elsewhere meanwhile.
 */
DRPS_MUST_CHECK
int drps_reader_next(struct drps_reader *r, struct drps_samples *out, struct drps_err *err);

const char *drps_reader_format(const struct drps_reader *r); /* the format in use */
int drps_reader_has_names(const struct drps_reader *r);      /* features are strings */
int drps_reader_has_classes(const struct drps_reader *r);    /* labels are numbers of classes */

/* How labels are read: DRPS_READER_AS_FIRST until there was one. */
enum drps_reader_labels drps_reader_labels(const struct drps_reader *r);

/* Returns the number that a class's name stands for where labels are numbers: yes, true and y are
 * 1, no, false and n are 0. */
float drps_reader_label_number(const char *name);

/* Field names, *n_out of them; valid until close. None when the features are numbers. */
const char *const *drps_reader_fields(const struct drps_reader *r, size_t *n_out);

/* csv, jsonl: the name of the label column, valid until close; NULL where there is none. */
const char *drps_reader_csv_label(const struct drps_reader *r);

/* Returns 1 if samples have numbers by place. Of idx once the first sample was read. */
int drps_reader_has_numbers(const struct drps_reader *r);

/* Returns how many fields there are where this is known without looking at all entries, which may
 * leave some out: of idx, of a matrix with one_feature, and where samples have numbers by place;
 * else 0. Once the first sample was read.
 */
uint32_t drps_reader_field_count(const struct drps_reader *r);

/* 1 if the format of this name has columns: csv or jsonl. */
int drps_reader_has_columns(const char *format);

/* What more files of the same shape are read with. */
static inline enum drps_csv_header drps_csv_header_of(int headless)
{
    return headless ? DRPS_CSV_NO_HEADER : DRPS_CSV_HEADER;
}

/* csv: 1 if files have no header. */
int drps_reader_csv_headless(const struct drps_reader *r);

uint64_t drps_reader_lines(const struct drps_reader *r);
uint64_t drps_reader_bytes(const struct drps_reader *r);      /* text bytes, after decompression */
uint64_t drps_reader_file_bytes(const struct drps_reader *r); /* read from files, as they are */
uint64_t drps_reader_skipped(const struct drps_reader *r);    /* bad lines skipped */
/* Lines without a sample, as they are blank or a comment; 0 where samples span lines. */
uint64_t drps_reader_blank(const struct drps_reader *r);
uint64_t drps_reader_weightless(const struct drps_reader *r); /* samples of weight 0 left out */

/* Returns the csv_kinds to read more csv data of the same shape with: `wanted` (NULL allowed), then
 * the kinds that a reader's fields record ("column:kind"). A new string (free() it); NULL when
 * memory is gone. */
char *drps_reader_csv_kinds(const char *wanted, const char *const *fields, size_t n);

/* What a field of csv or jsonl ("age:number(40;12)") says of itself. A text without a kind is a
 * name, and no number. */
struct drps_reader_field {
    size_t name_bytes; /* of the column's name in front */
    int is_number;     /* the feature is called as the column is, without a text */
    int is_linear;     /* its value is (number - shift) / unit */
    int is_log;        /* its value is sign(number) ln(1 + |number|) */
    double shift, unit;
};
void drps_reader_field(const char *field, struct drps_reader_field *out);

/* The key and the check bits of a name: what readers and the dictionary agree on. */
void drps_name_hash(uint32_t field, const char *text, size_t bytes, uint64_t seed,
                    uint64_t *key_out, uint32_t *check_out);

#endif
