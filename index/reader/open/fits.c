/* Whether a format can have what options ask for. */
#include <string.h>

#include "index/layers/drps_layers.h"
#include "index/reader/open/open.h"

/* What options say that is of lines of csv alone, or NULL. */
static const char *given_of_lines(const struct drps_reader_options *o)
{
    return o->csv_separator ? "a separator" : o->csv_header ? "a header" : NULL;
}

/* What options say of columns, or NULL. */
static const char *given_of_columns(const struct drps_reader_options *o)
{
    return o->csv_label   ? "a label column"
           : o->csv_kinds ? "kinds of columns"
           : o->csv_scale ? "a scale"
           : o->csv_cross ? "crosses of columns"
                          : NULL;
}

int drps_reader_says_columns(const struct drps_reader_options *o)
{
    return given_of_columns(o) || given_of_lines(o);
}

/* What is said of columns would be in vain for other formats. */
static int check_csv_options(const struct drps_reader *r, struct drps_err *err)
{
    const char *of_lines = given_of_lines(&r->options);
    const char *of_columns = r->format == &drps_format_jsonl ? NULL : given_of_columns(&r->options);
    const char *given = of_columns ? of_columns : of_lines;
    const char *file = r->chunks.in.name, *format = r->format->name;
    const char *others = of_columns ? " and jsonl" : "";
    const int could_be_csv = r->format == &drps_format_ratings || r->format == &drps_format_avazu ||
                             r->format == &drps_format_criteo;
    if (!given || r->format == &drps_format_csv) return 0;
    if (!could_be_csv)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: to name %s is for csv%s, and this is read as %s, which has no %s: "
                            "leave it out",
                            file, given, others, format, of_columns ? "columns" : "such thing");
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: to name %s is for csv%s, and this is read as %s: leave it out, or "
                        "name the format csv",
                        file, given, others, format);
}

/* Sequences have their labels, and the marks of where they begin, whatever was asked for. */
static int check_sequences(struct drps_reader *r, struct drps_err *err)
{
    struct drps_reader_options *o = &r->options;
    if (!r->format->has_sequences) return 0;
    if (!drps_reads_classes(o))
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: the label of a token is the next token, which is a class, and "
                            "here labels are numbers: name another format, or use a net that ends "
                            "in `full classes`",
                            r->chunks.in.name);
    if (!o->sequence) o->sequence = o->sequence_lines ? DRPS_SEQUENCE_MOST : DRPS_SEQUENCE_USUAL;
    if (o->sequence > DRPS_SEQUENCE_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "%s: sequences of %u samples: at most %d",
                            r->chunks.in.name, o->sequence, DRPS_SEQUENCE_MOST);
    o->labels = DRPS_READER_NAMES;
    o->fields = 1;
    return 0;
}

static int check_classes(struct drps_reader *r, struct drps_err *err)
{
    if (!drps_reads_classes(&r->options) || r->format->has_classes) return 0;
    if (r->options.labels != DRPS_READER_NAMES) {
        r->options.classes = NULL;
        r->options.known_classes = NULL;
        return 0;
    }
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "%s: labels that are classes are read from libsvm, libffm, csv, jsonl, vw and "
        "idx, and this is read as %s",
        r->chunks.in.name, r->format->name);
}

/* Whether the format can have what weights are asked for. */
static int check_weights(const struct drps_reader *r, struct drps_err *err)
{
    const struct drps_reader_options *o = &r->options;
    const int csv = r->format == &drps_format_csv;
    const char *file = r->chunks.in.name, *format = r->format->name;
    if (o->weights_n && r->format == &drps_format_docword)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: weights are for lines that each have a sample, and in format "
                            "docword a sample has several",
                            file);
    if (o->weights_n && r->format->has_sequences)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: weights are for lines that each have a sample, and in format %s a "
                            "line has several",
                            file, format);
    if (o->clicks && !csv)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: clicks and impressions are columns of csv, and this is read as %s",
                            file, format);
    if (!o->weight || csv || r->format == &drps_format_jsonl) return 0;
    if (r->format != &drps_format_ratings)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s: a column of weights is for csv, jsonl and ratings, and this is "
                            "read as %s: give the weights in a file beside it",
                            file, format);
    if (strcmp(o->weight, "4") == 0) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: of ratings the weight is column 4, which is not '%s'", file,
                        o->weight);
}

static int check_labels(const struct drps_reader *r, struct drps_err *err)
{
    if (!r->options.label_files_n || r->format == &drps_format_idx) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: files of labels are for idx, and this is read as %s, which has its "
                        "labels with the samples: leave them out",
                        r->chunks.in.name, r->format->name);
}

static int check_fields(const struct drps_reader *r, struct drps_err *err)
{
    if (!r->options.fields || r->format->has_fields) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "%s: a field-aware model needs fields, and format %s has none: give the "
                        "data as libffm, as csv, jsonl, criteo, avazu or ratings, whose "
                        "columns are the fields, or as idx (in a net, `bag` needs none)",
                        r->chunks.in.name, r->format->name);
}

int drps_reader_check_format(struct drps_reader *r, struct drps_err *err)
{
    int rc = check_csv_options(r, err);
    if (rc == 0) rc = check_sequences(r, err);
    if (rc == 0) rc = check_fields(r, err);
    if (rc == 0) rc = check_classes(r, err);
    if (rc < 0 || r->options.matrix) return rc;
    rc = check_weights(r, err);
    return rc == 0 ? check_labels(r, err) : rc;
}
