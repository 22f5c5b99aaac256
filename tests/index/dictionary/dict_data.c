#include "index/dictionary/dict_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/net_job.h"

/* Every fourth is small. */
static uint64_t key_of(uint32_t number, enum data_keys way)
{
    return way == DATA_NUMBERS || number % 4 == 3 ? number : number * UINT64_C(0x9e3779b97f4a7c15);
}

struct data data_make(struct random_source *r, size_t n, size_t per_sample, size_t keys,
                      enum data_keys way)
{
    const int strings = way == DATA_NAMES;
    struct data d = {.n = n, .per_sample = per_sample, .keys = keys, .strings = strings};
    size_t nnz = n * per_sample;
    d.key = malloc(nnz * sizeof(*d.key));
    d.number = malloc(nnz * sizeof(*d.number));
    d.names = malloc(nnz * sizeof(*d.names));
    d.text = malloc(keys * DATA_TEXT_BYTES);
    d.time = malloc(n * sizeof(*d.time));
    NET_CHECK(d.key && d.number && d.names && d.text && d.time);
    for (size_t k = 0; k < keys; k++)
        (void)snprintf(d.text + k * DATA_TEXT_BYTES, DATA_TEXT_BYTES, "name %zu", k);
    d.text[0] = '\0'; /* an empty name */
    for (size_t i = 0; i < n; i++) {
        d.time[i] = random_below(r, 10) ? (uint32_t)random_below(r, DICT_TIMES) : DICT_TEST;
        for (size_t j = 0; j < per_sample; j++) {
            size_t at = i * per_sample + j;
            double u = (double)random_below(r, 1 << 30) / (1 << 30);
            uint32_t k = (uint32_t)(u * u * u * (double)(keys - per_sample));
            while (j && k <= d.number[at - 1])
                k = d.number[at - 1] + 1; /* increasing: distinct */
            if (k >= keys) k = (uint32_t)keys - 1;
            d.number[at] = k;
            struct drps_name *name = &d.names[at];
            name->text = d.text + (size_t)k * DATA_TEXT_BYTES;
            name->bytes = (uint32_t)strlen(name->text);
            name->field = k % 2;
            name->check = 0;
            if (strings)
                drps_name_hash(name->field, name->text, name->bytes, DATA_SEED, &d.key[at],
                               &name->check);
            else
                d.key[at] = key_of(k, way);
        }
    }
    return d;
}

void data_free(struct data *d)
{
    free(d->key);
    free(d->number);
    free(d->names);
    free(d->text);
    free(d->time);
}

struct data_ids data_ids_new(const struct data *d)
{
    const struct data_ids ids = {
        .ids = malloc((d->n * d->per_sample + 1) * sizeof(*ids.ids)),
        .generation = malloc((d->n + 1) * sizeof(*ids.generation)),
    };
    NET_CHECK(ids.ids && ids.generation);
    return ids;
}

void data_ids_free(struct data_ids *ids)
{
    free(ids->ids);
    free(ids->generation);
}

int data_add(struct dict *dict, const struct data *d, size_t first, size_t last,
             struct data_ids *ids, struct drps_err *err)
{
    size_t starts[2] = {0, d->n * d->per_sample};
    const struct drps_samples s = {
        .n = 1, .starts = starts, .keys = d->key, .names = d->strings ? d->names : NULL};
    size_t now = 0;
    int rc = 0;
    for (size_t i = first; rc >= 0 && i < last; i++) {
        const size_t at = i * d->per_sample;
        rc = drps_dict_add(dict, &s, at, at + d->per_sample, d->time[i], ids->ids + at, err);
        now += rc == 1;
        ids->generation[i] = now;
    }
    return rc < 0 ? rc : 0;
}

int data_rows(struct dict *dict, const struct data *d, size_t first, size_t last,
              const struct data_ids *ids, uint32_t *row_out, struct drps_err *err)
{
    const size_t generations = drps_dict_generations(dict);
    int rc = 0;
    NET_CHECK(first == last || ids->generation[last - 1] + 1 == generations);
    for (size_t g = 0; rc == 0 && g < generations; g++) {
        const uint32_t from = drps_dict_base(dict, g), end = drps_dict_base(dict, g + 1);
        uint32_t *map = malloc((end - from + 1) * sizeof(*map));
        NET_CHECK(map);
        rc = drps_dict_map(dict, g, map, err);
        for (size_t k = first * d->per_sample; rc == 0 && k < last * d->per_sample; k++) {
            if (ids->generation[k / d->per_sample] != g) continue;
            NET_CHECK(ids->ids[k] >= from && ids->ids[k] < end);
            row_out[k] = map[ids->ids[k] - from];
        }
        free(map);
    }
    return rc;
}
