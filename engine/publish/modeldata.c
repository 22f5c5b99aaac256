/* Opens text as a model's data, and gives features the model's keys. It needs a reader. */
#include "engine/publish/drps_modeldata.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

#define CATEGORY ":category"

/* Its fields have no kinds: in columns, users and items are categories. */
static int is_of_ratings(const struct drps_modeldir_info *info)
{
    return strcmp(info->format, "ratings") == 0;
}

static int is_same_field(const struct drps_modeldir_info *info, const char *field, size_t k)
{
    const size_t n = strlen(info->fields[k]);
    if (strncmp(field, info->fields[k], n) != 0) return 0;
    return !field[n] || (is_of_ratings(info) && strcmp(field + n, CATEGORY) == 0);
}

/* The two field lists may differ, for instance where a csv file has its columns in another order.
 */
static int map_fields(struct drps_modeldata *d, struct drps_err *err)
{
    size_t n;
    const char *const *fields = drps_reader_fields(d->reader, &n);
    int same = n == d->info->fields_n;
    for (size_t i = 0; same && i < n; i++)
        same = strcmp(fields[i], d->info->fields[i]) == 0;
    if (same) return 0;
    d->fields = drps_array_new(n, sizeof(*d->fields));
    if (!d->fields) return drps_err_set(err, -ENOMEM, "no memory for %zu fields", n);
    for (size_t i = 0; i < n; i++) {
        d->fields[i] = -1;
        for (size_t k = 0; k < d->info->fields_n; k++)
            if (is_same_field(d->info, fields[i], k)) d->fields[i] = (int64_t)k;
        d->fields_known += d->fields[i] >= 0;
    }
    return 0;
}

/* Whether the given kinds of columns say which column is the label. */
static int names_label(const char *csv_kinds)
{
    return csv_kinds && strstr(csv_kinds, ":label") != NULL;
}

/* Ratings in columns: names are what the texts say, whatever the first lines hold. */
static int set_columns_of_ratings(struct drps_modeldata *d, struct drps_reader_options *o,
                                  struct drps_err *err)
{
    const char *given = o->csv_kinds ? o->csv_kinds : "";
    if (asprintf(&d->csv_kinds, "*" CATEGORY ",%s", given) < 0) {
        d->csv_kinds = NULL;
        return drps_err_set(err, -ENOMEM, "no memory for the columns' kinds");
    }
    o->csv_kinds = d->csv_kinds;
    o->csv_only_kinds = 1;
    return 0;
}

/* Columns mean what they meant in training. */
static int set_columns(struct drps_modeldata *d, struct drps_reader_options *o,
                       struct drps_err *err)
{
    const struct drps_modeldir_info *info = d->info;
    if (drps_reader_has_columns(o->format) && is_of_ratings(info))
        return set_columns_of_ratings(d, o, err);
    if (!drps_reader_has_columns(info->format) || strcmp(o->format, info->format) != 0) return 0;
    d->csv_kinds =
        drps_reader_csv_kinds(o->csv_kinds, (const char *const *)info->fields, info->fields_n);
    if (!d->csv_kinds) return drps_err_set(err, -ENOMEM, "no memory for the columns' kinds");
    if (!o->csv_label && !o->clicks && !names_label(o->csv_kinds) && info->label_column[0])
        o->csv_label = info->label_column;
    if (!o->csv_separator) o->csv_separator = info->separator; /* 0 but of csv */
    if (!o->csv_header && strcmp(o->format, "csv") == 0)
        o->csv_header = drps_csv_header_of(info->headless);
    o->csv_kinds = d->csv_kinds;
    o->csv_only_kinds = 1;
    return 0;
}

/* Sequences are as long as in training where nothing else is given, and of the one format that has
 * them. */
static int set_sequences(const struct drps_modeldir_info *info, const char *model,
                         struct drps_reader_options *o, struct drps_err *err)
{
    const int tokens = strcmp(o->format, "tokens") == 0;
    const int is_given = o->sequence || o->sequence_lines;
    if (is_given && !info->sequences.most)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "%s reads no sequences: leave the length of sequences out", model);
    if (!is_given) {
        o->sequence = info->sequences.most;
        o->sequence_lines = info->sequences.lines;
    }
    if (tokens == (info->sequences.most > 0)) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        tokens ? "%s reads no sequences, as format tokens has them: give data in "
                                 "another format"
                               : "%s reads sequences of tokens: give text, as format tokens",
                        model);
}

int drps_modeldata_open(const struct drps_io *io, const char *model,
                        const struct drps_modeldir_info *info, const char *const *inputs, size_t n,
                        const struct drps_reader_options *reader, struct drps_modeldata *d,
                        struct drps_err *err)
{
    struct drps_reader_options o = *reader;
    *d = (struct drps_modeldata){.info = info};
    if (!o.format) o.format = info->format;
    o.hash_seed = info->hash_seed;
    o.known_classes = info->classes;
    o.fields = info->model.fields != 0;
    o.one_feature = info->model.layers.n && !info->model.layers.has_features;
    o.numbers = DRPS_READER_AS_FITS;
    o.field_count = info->model.fields;
    if (info->model.layers.n) o.image = drps_layers_image(&info->model.layers);
    int rc = set_sequences(info, model, &o, err);
    if (rc == 0) rc = set_columns(d, &o, err);
    if (rc == 0) rc = drps_reader_open(io, inputs, n, &o, &d->reader, err);
    if (rc < 0) return rc;
    const int names = drps_modeldir_reads_names(info);
    if (drps_reader_has_names(d->reader) != names)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "features in format %s are %s, but those of %s are %s: name the format",
                            drps_reader_format(d->reader), names ? "numbers" : "strings", model,
                            names ? "strings" : "numbers");
    rc = names ? map_fields(d, err) : 0;
    if (rc < 0 || !info->hashing.bits) return rc;
    d->hasher = drps_hasher_new(&info->hashing, info->hash_seed);
    return d->hasher ? 0 : drps_err_set(err, -ENOMEM, "no memory to hash features");
}

void drps_modeldata_close(struct drps_modeldata *d)
{
    drps_samples_free(&d->piece);
    drps_reader_close(d->reader);
    free(d->fields);
    free(d->csv_kinds);
    free(d->keys);
    free(d->values);
    free(d->of);
    free(d->numbers);
    free(d->places);
    drps_hasher_free(d->hasher);
    *d = (struct drps_modeldata){.info = NULL};
}

int drps_modeldata_key(const struct drps_modeldata *d, size_t j, uint64_t *key_out,
                       uint32_t *field_out)
{
    const struct drps_name *name = d->piece.names ? &d->piece.names[j] : NULL;
    uint32_t check;
    *key_out = d->piece.keys[j];
    *field_out = name ? name->field : 0;
    if (!d->fields) return 1;
    if (d->fields[name->field] < 0) return 0;
    *field_out = (uint32_t)d->fields[name->field];
    drps_name_hash(*field_out, name->text, name->bytes, d->info->hash_seed, key_out, &check);
    return 1;
}

void drps_modeldata_name(const struct drps_modeldata *d, size_t j, struct drps_modeldata_name *out)
{
    *out = (struct drps_modeldata_name){.key = j};
    if (d->hasher) return; /* the place is the bin */
    const struct drps_name *name = d->piece.names ? &d->piece.names[j] : NULL;
    *out = (struct drps_modeldata_name){.text = name ? name->text : NULL,
                                        .bytes = name ? name->bytes : 0};
    (void)drps_modeldata_key(d, j, &out->key, &out->field);
}

/* Sample i's keys under the model's fields. Returns how many. */
static size_t translate(struct drps_modeldata *d, size_t i)
{
    size_t n = 0;
    uint32_t field;
    for (size_t j = d->piece.starts[i]; j < d->piece.starts[i + 1]; j++) {
        if (!drps_modeldata_key(d, j, &d->keys[n], &field)) continue;
        if (d->piece.fields) d->of[n] = (uint16_t)field;
        d->places[n] = (uint32_t)j;
        d->values[n++] = d->piece.values[j];
    }
    return n;
}

size_t drps_modeldata_most(const struct drps_modeldata *d, size_t i)
{
    const size_t n = d->piece.starts[i + 1] - d->piece.starts[i];
    if (d->piece.numbers_each) return 1;
    return d->hasher ? drps_hashed_most(&d->info->hashing, n) : n;
}

/* Puts bins in place of the sample's features; their numbers are their places. */
static int hash_sample(struct drps_modeldata *d, struct drps_modeldata_sample *s,
                       struct drps_err *err)
{
    const struct drps_hasher_input in = {s->keys, s->values, s->fields, s->n};
    struct drps_hashed hashed;
    int rc = drps_hasher_run(d->hasher, &in, &hashed, err);
    if (rc < 0) return rc;
    if (drps_array_reserve(&d->places, &d->places_cap, hashed.n, sizeof(*d->places)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample of %zu bins", hashed.n);
    for (size_t k = 0; k < hashed.n; k++)
        d->places[k] = (uint32_t)hashed.keys[k]; /* of fields that the model has below 2^32 */
    s->keys = hashed.keys;
    s->values = hashed.values;
    s->fields = hashed.fields;
    s->places = d->places;
    s->n = hashed.n;
    return 0;
}

/* The model's one feature, which all samples of numbers have. */
static const uint64_t one_key = 0;
static const float one_value = 1;

/* Sample i's numbers, in the places that the model's fields have. */
static int place_numbers(struct drps_modeldata *d, size_t i, struct drps_modeldata_sample *out,
                         struct drps_err *err)
{
    const uint32_t each = d->piece.numbers_each, fields = d->info->model.fields;
    const float *numbers = d->piece.numbers + i * (size_t)each;
    out->keys = &one_key;
    out->values = &one_value;
    out->fields = NULL;
    out->n = 1;
    out->numbers_each = each;
    out->numbers = numbers;
    if (!d->fields) return 0;
    size_t n;
    (void)drps_reader_fields(d->reader, &n);
    if (drps_array_reserve(&d->numbers, &d->numbers_cap, fields, sizeof(*d->numbers)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample of %u numbers", fields);
    memset(d->numbers, 0, fields * sizeof(*d->numbers));
    for (size_t k = 0; k < n && k < each; k++)
        if (d->fields[k] >= 0 && d->fields[k] < fields) d->numbers[d->fields[k]] = numbers[k];
    out->numbers_each = fields;
    out->numbers = d->numbers;
    return 0;
}

int drps_modeldata_sample(struct drps_modeldata *d, size_t i, struct drps_modeldata_sample *out,
                          struct drps_err *err)
{
    const struct drps_samples *p = &d->piece;
    const size_t first = p->starts[i], n = p->starts[i + 1] - first;
    *out = (struct drps_modeldata_sample){.label = p->labels[i],
                                          .weight = p->weights ? p->weights[i] : 1,
                                          .keys = p->keys + first,
                                          .values = p->values + first,
                                          .fields = p->fields ? p->fields + first : NULL,
                                          .first = first,
                                          .n = n};
    if (p->numbers_each) return place_numbers(d, i, out, err);
    if (!d->fields) return d->hasher ? hash_sample(d, out, err) : 0;
    if (drps_array_reserve(&d->keys, &d->keys_cap, n, sizeof(*d->keys)) ||
        drps_array_reserve(&d->values, &d->values_cap, n, sizeof(*d->values)) ||
        drps_array_reserve(&d->places, &d->places_cap, n, sizeof(*d->places)) ||
        drps_array_reserve(&d->of, &d->of_cap, p->fields ? n : 0, sizeof(*d->of)))
        return drps_err_set(err, -ENOMEM, "no memory for a sample of %zu features", n);
    out->n = translate(d, i);
    out->keys = d->keys;
    out->values = d->values;
    out->fields = p->fields ? d->of : NULL;
    out->places = d->places;
    return d->hasher ? hash_sample(d, out, err) : 0;
}
