/* The format and columns of the input: all inputs have those of the first, or of an earlier plan.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "index/samples/read/read.h"

/* Whether plan.json can hold the text: it must be UTF-8. */
static int fits_json(const char *text)
{
    json_t *j = json_string(text);
    json_decref(j);
    return j != NULL;
}

static int copy_fields(struct read_samples *p, const char *const *names, size_t n,
                       struct drps_err *err)
{
    if (!p->string_names || p->fields) return 0;
    p->fields = calloc(n + 1, sizeof(*p->fields));
    if (!p->fields) return drps_err_set(err, -ENOMEM, "no memory for field names");
    for (p->fields_n = 0; p->fields_n < n; p->fields_n++) {
        if (!fits_json(names[p->fields_n]))
            return drps_err_set(
                err, DRPS_E_FORMAT,
                "the name of feature column %zu is not UTF-8: convert the input first",
                p->fields_n + 1);
        p->fields[p->fields_n] = strdup(names[p->fields_n]);
        if (!p->fields[p->fields_n]) return drps_err_set(err, -ENOMEM, "no memory for field names");
    }
    return 0;
}

/* For prediction. A name that plan.json cannot hold has to be given again there. */
static void copy_label(struct read_samples *p, const struct drps_reader *reader)
{
    const char *label = drps_reader_csv_label(reader);
    if (label && strlen(label) < sizeof(p->label_column) && fits_json(label))
        (void)snprintf(p->label_column, sizeof(p->label_column), "%s", label);
}

int drps_read_learn_columns(struct read_samples *p, const struct drps_reader *reader,
                            struct drps_err *err)
{
    size_t n = 0;
    const char *const *names = drps_reader_fields(reader, &n);
    (void)snprintf(p->format, sizeof(p->format), "%s", drps_reader_format(reader));
    p->string_names = drps_reader_has_names(reader);
    copy_label(p, reader);
    p->headless = drps_reader_csv_headless(reader);
    p->numbers = drps_reader_has_numbers(reader);
    return copy_fields(p, names, n, err);
}

int drps_read_take_columns(struct read_samples *p, const struct drps_plan *base,
                           struct drps_err *err)
{
    memcpy(p->format, base->info.format, sizeof(p->format));
    memcpy(p->label_column, base->info.label_column, sizeof(p->label_column));
    p->string_names = drps_plan_reads_names(&base->info);
    p->headless = base->info.headless;
    p->numbers = base->info.numbers;
    return copy_fields(p, (const char *const *)base->fields, base->info.fields_n, err);
}

/* Returns the length of the name in "name:kind", at most 100. */
static int name_chars(const char *field)
{
    const char *kind = strrchr(field, ':');
    const size_t n = kind ? (size_t)(kind - field) : strlen(field);
    return n < 100 ? (int)n : 100;
}

/* Tells which columns differ from those of the plan that this one goes on from. */
static int other_columns(const struct drps_plan *base, const char *const *names, size_t n,
                         struct drps_err *err)
{
    static const char todo[] =
        "where columns have changed, make a plan of all data together, without a base";
    size_t i = 0;
    while (i < n && i < base->info.fields_n && strcmp(names[i], base->fields[i]) == 0)
        i++;
    if (i == n && i < base->info.fields_n)
        return drps_err_set(err, DRPS_E_CONFIG, "%s has the column %.*s, and the input has not; %s",
                            base->dir, name_chars(base->fields[i]), base->fields[i], todo);
    if (i == base->info.fields_n && i < n)
        return drps_err_set(err, DRPS_E_CONFIG, "the input has the column %.*s, and %s has not; %s",
                            name_chars(names[i]), names[i], base->dir, todo);
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the columns of features are not those of %s: number %zu is '%.100s' there "
                        "and '%.100s' in the input; %s",
                        base->dir, i + 1, i < base->info.fields_n ? base->fields[i] : "(none)",
                        i < n ? names[i] : "(none)", todo);
}

int drps_read_check_columns(const struct read_samples *p, const struct drps_index_options *o,
                            int test, const struct drps_reader *reader, struct drps_err *err)
{
    size_t n = 0;
    const char *const *names = drps_reader_fields(reader, &n);
    int same = strcmp(p->format, drps_reader_format(reader)) == 0 &&
               !p->string_names == !drps_reader_has_names(reader) &&
               (!p->string_names || n == p->fields_n);
    for (size_t i = 0; same && p->string_names && i < n; i++)
        same = strcmp(names[i], p->fields[i]) == 0;
    if (same) return 0;
    if (o->ranks && !test)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "the input of rank %u (format %s) has not the format and columns of "
                            "the input of rank 0 (%s): give all ranks inputs that are alike",
                            o->ranks->rank, drps_reader_format(reader), p->format);
    if (o->base_plan && !test) return other_columns(o->base_plan, names, n, err);
    return drps_err_set(
        err, DRPS_E_CONFIG,
        "the test input (format %s) has not the format and columns of the training input (%s): "
        "give test files that are like the training files",
        drps_reader_format(reader), p->format);
}
