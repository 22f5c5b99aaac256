/*
 * Cuts the order of rows into ranges, one a rank, with about as many rows each. The cuts are chosen
 * among samples: each rank takes evenly spaced ones of the keys that it owns. Keys lie in another
 * order than rows, and a hash draws their owners, so the samples are as good as random ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "base/drps_extsort.h"
#include "index/dictionary/dealt/dealt.h"
#include "index/plan/drps_names.h"

enum { SAMPLES = 1024, GATHERED = 131072 };

/* What a rank says: */
enum { SAY_ROWS, SAY_STRIDE = SAY_ROWS + 2, SAY_SAMPLES, SAY_HEAD };

struct sampler {
    uint64_t *said; /* own: [SAY_HEAD + 2 * most]: order and key of each sample */
    uint64_t n, most;
    uint64_t seen, stride; /* each stride-th one is a sample */
};

static void thin_out(struct sampler *s)
{
    uint64_t *samples = s->said + SAY_HEAD;
    for (uint64_t i = 1; 2 * i < s->n; i++) {
        samples[2 * i] = samples[4 * i];
        samples[2 * i + 1] = samples[4 * i + 1];
    }
    s->n = (s->n + 1) / 2;
    s->stride *= 2;
}

static void sample(struct sampler *s, uint64_t order, uint64_t key)
{
    if (s->seen++ % s->stride) return;
    if (s->n == s->most) thin_out(s);
    if ((s->seen - 1) % s->stride) return;
    s->said[SAY_HEAD + 2 * s->n] = order;
    s->said[SAY_HEAD + 2 * s->n++ + 1] = key;
}

static int sample_all(struct sampler *s, const struct dealt *d, struct swap *keys,
                      struct drps_err *err)
{
    struct owned o;
    int rc = drps_owned_open(&o, d, keys, err);
    while (rc == 0 && (rc = drps_owned_next(&o, err)) > 0) {
        rc = 0;
        if (!o.at.count) continue;
        const uint64_t order = drps_dict_order(d->options, &o.at);
        s->said[SAY_ROWS + drps_dict_order_table(order)]++;
        sample(s, order, o.at.key);
    }
    drps_owned_close(&o);
    s->said[SAY_STRIDE] = s->stride;
    s->said[SAY_SAMPLES] = s->n;
    return rc;
}

/* ---- What all ranks say ---- */

static int add_rows(struct dealt *d, const uint64_t *said, uint64_t *rows_out, struct drps_err *err)
{
    const uint64_t most = DRPS_NO_ROW - d->first_row;
    *rows_out = 0;
    for (int table = 0; table < 2; table++) {
        if (said[SAY_ROWS + table] > most) return drps_dict_too_many_rows(err);
        d->rows[table] += said[SAY_ROWS + table];
        *rows_out += said[SAY_ROWS + table];
    }
    return d->rows[0] + d->rows[1] > most ? drps_dict_too_many_rows(err) : 0;
}

/* Records of all samples, sorted; a: how many rows a sample stands for. *n_out of them. */
static int sort_samples(struct splits *s, struct dealt *d, const uint64_t *all, uint64_t most,
                        struct drps_sort_record *records, struct drps_sort_record *aux,
                        size_t *n_out, struct drps_err *err)
{
    *n_out = 0;
    for (uint32_t from = 0; from < d->ranks->count; from++) {
        const uint64_t *said = all + from * (SAY_HEAD + 2 * most);
        int rc = add_rows(d, said, &s->rows[from], err);
        if (rc < 0) return rc;
        if (said[SAY_SAMPLES] > most || said[SAY_STRIDE] > UINT32_MAX)
            return drps_swap_fault(from, "too many samples of its keys", err);
        for (uint64_t i = 0; i < said[SAY_SAMPLES]; i++)
            records[(*n_out)++] = (struct drps_sort_record){.hi = said[SAY_HEAD + 2 * i],
                                                            .lo = said[SAY_HEAD + 2 * i + 1],
                                                            .a = (uint32_t)said[SAY_STRIDE]};
    }
    drps_sort_records(records, aux, *n_out);
    return 0;
}

static void split(struct splits *s, const struct drps_sort_record *records, size_t n)
{
    uint64_t total = 0, before = 0;
    uint32_t range = 1;
    for (size_t i = 0; i < n; i++)
        total += records[i].a;
    for (size_t i = 0; i < n; before += records[i++].a)
        for (; range < s->count && before >= total * range / s->count; range++)
            s->at[range - 1] = (struct place){records[i].hi, records[i].lo};
    for (; range < s->count; range++)
        s->at[range - 1] = (struct place){UINT64_MAX, UINT64_MAX};
}

static int agree(struct splits *s, struct dealt *d, const struct sampler *mine,
                 struct drps_err *err)
{
    const uint64_t n = SAY_HEAD + 2 * mine->most;
    const size_t most = (size_t)(mine->most * s->count);
    uint64_t *all = NULL;
    struct drps_sort_record *records = drps_array_new(most, sizeof(*records));
    struct drps_sort_record *aux = drps_array_new(most, sizeof(*aux));
    size_t found = 0;
    int rc = records && aux ? drps_swap_gather(d->ranks, mine->said, (size_t)n, &all, err)
                            : drps_err_set(err, -ENOMEM, "no memory for samples of %zu keys", most);
    if (rc == 0) rc = sort_samples(s, d, all, mine->most, records, aux, &found, err);
    if (rc == 0) split(s, records, found);
    free(all);
    free(records);
    free(aux);
    return rc;
}

int drps_splits_find(struct splits *s, struct dealt *d, struct swap *keys, struct drps_err *err)
{
    const uint32_t count = d->ranks->count;
    const uint64_t room = (GATHERED / count - SAY_HEAD) / 2;
    struct sampler mine = {.most = room < SAMPLES ? room : SAMPLES, .stride = 1};
    *s = (struct splits){.at = drps_array_new(count, sizeof(*s->at)),
                         .count = count,
                         .rows = drps_array_new(count, sizeof(*s->rows))};
    mine.said = calloc((size_t)(SAY_HEAD + 2 * mine.most), sizeof(*mine.said));
    int rc = s->at && s->rows && mine.said
                 ? sample_all(&mine, d, keys, err)
                 : drps_err_set(err, -ENOMEM, "no memory for samples of keys");
    if (rc == 0) rc = agree(s, d, &mine, err);
    free(mine.said);
    return rc;
}

void drps_splits_free(struct splits *s)
{
    free(s->at);
    free(s->rows);
    *s = (struct splits){0};
}

/* Returns how many ranges begin at the place or before it, but for the first one. */
uint32_t drps_splits_range(const struct splits *s, const struct place *at)
{
    uint32_t low = 0, high = s->count - 1;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        const struct place *m = &s->at[middle];
        if (m->order < at->order || (m->order == at->order && m->key <= at->key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
