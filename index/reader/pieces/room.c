/* The arrays of a piece of samples, and how much text fits them within the reader's memory. */
#include "index/reader/pieces/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index/reader/text/drps_entries.h"

/* Free the array that this points to. */
static void drop(void *array, size_t *cap)
{
    void *p;

    memcpy(&p, array, sizeof(p));
    free(p);
    p = NULL;
    memcpy(array, &p, sizeof(p));
    *cap = 0;
}

static void free_arrays(struct drps_samples *s)
{
    drop(&s->labels, &s->label_cap);
    drop(&s->weights, &s->weight_cap);
    drop(&s->starts, &s->start_cap);
    drop(&s->keys, &s->key_cap);
    drop(&s->values, &s->value_cap);
    drop(&s->names, &s->name_cap);
    drop(&s->fields, &s->field_cap);
    drop(&s->lines, &s->line_cap);
    drop(&s->made, &s->made_cap);
    drop(&s->numbers, &s->number_cap);
}

void drps_samples_free(struct drps_samples *s)
{
    if (!s) return;
    free_arrays(s);
    free(s->text);
    memset(s, 0, sizeof(*s));
}

/* How many elements a piece needs of each array. */
struct need {
    size_t labels, weights, starts, features, names, made, fields, numbers; /* lines: as labels */
};

static uint64_t need_bytes(const struct need *k)
{
    return (uint64_t)(k->labels + k->weights) * sizeof(float) +
           (uint64_t)k->labels * sizeof(uint64_t) + (uint64_t)k->starts * sizeof(size_t) +
           (uint64_t)k->features * (sizeof(uint64_t) + sizeof(float)) +
           (uint64_t)k->names * sizeof(struct drps_name) + k->made +
           (uint64_t)k->fields * sizeof(uint16_t) + (uint64_t)k->numbers * sizeof(float);
}

static uint64_t held_bytes(const struct drps_samples *s)
{
    return (uint64_t)(s->label_cap + s->weight_cap) * sizeof(float) +
           (uint64_t)s->line_cap * sizeof(uint64_t) + (uint64_t)s->start_cap * sizeof(size_t) +
           (uint64_t)s->key_cap * sizeof(uint64_t) + (uint64_t)s->value_cap * sizeof(float) +
           (uint64_t)s->name_cap * sizeof(struct drps_name) + s->made_cap +
           (uint64_t)s->field_cap * sizeof(uint16_t) + (uint64_t)s->number_cap * sizeof(float);
}

/* The old contents are not needed, so nothing is copied and old and new never exist together. */
static int renew(void *array, size_t *cap, size_t n, size_t size)
{
    void *p;

    if (*cap >= n) return 0;
    memcpy(&p, array, sizeof(p));
    free(p);
    p = malloc(n * size); /* n is bounded by the memory budget: no overflow */
    memcpy(array, &p, sizeof(p));
    *cap = p ? n : 0;
    return p ? 0 : -ENOMEM;
}

static int renew_all(struct drps_samples *s, const struct need *k)
{
    int rc = renew(&s->labels, &s->label_cap, k->labels, sizeof(*s->labels));
    if (rc == 0) rc = renew(&s->lines, &s->line_cap, k->labels, sizeof(*s->lines));
    if (rc == 0 && k->weights > 0)
        rc = renew(&s->weights, &s->weight_cap, k->weights, sizeof(*s->weights));
    if (rc == 0) rc = renew(&s->starts, &s->start_cap, k->starts, sizeof(*s->starts));
    if (rc == 0) rc = renew(&s->keys, &s->key_cap, k->features, sizeof(*s->keys));
    if (rc == 0) rc = renew(&s->values, &s->value_cap, k->features, sizeof(*s->values));
    if (rc == 0 && k->names > 0) rc = renew(&s->names, &s->name_cap, k->names, sizeof(*s->names));
    if (rc == 0 && k->made > 0) rc = renew(&s->made, &s->made_cap, k->made, 1);
    if (rc == 0 && k->fields > 0)
        rc = renew(&s->fields, &s->field_cap, k->fields, sizeof(*s->fields));
    if (rc == 0 && k->numbers > 0)
        rc = renew(&s->numbers, &s->number_cap, k->numbers, sizeof(*s->numbers));
    return rc;
}

/* Arrays get a quarter more than needed, so that pieces of about one size settle soon. */
static size_t slack(size_t n)
{
    return n + n / 4;
}

static int prepare_arrays(struct drps_samples *s, const struct need *k, uint64_t budget,
                          struct drps_err *err)
{
    /* The piece may come from another reader. */
    if (k->names == 0) drop(&s->names, &s->name_cap);
    if (k->weights == 0) drop(&s->weights, &s->weight_cap);
    if (k->fields == 0) drop(&s->fields, &s->field_cap);
    if (k->labels <= s->label_cap && k->labels <= s->line_cap && k->weights <= s->weight_cap &&
        k->starts <= s->start_cap && k->features <= s->key_cap && k->features <= s->value_cap &&
        k->names <= s->name_cap && k->made <= s->made_cap && k->fields <= s->field_cap &&
        k->numbers <= s->number_cap)
        return 0;
    struct need roomy = {slack(k->labels), slack(k->weights), slack(k->starts), slack(k->features),
                         slack(k->names),  slack(k->made),    slack(k->fields), slack(k->numbers)};
    if (held_bytes(s) + need_bytes(&roomy) > budget) {
        free_arrays(s);
        if (need_bytes(&roomy) > budget) roomy = *k;
    }
    if (renew_all(s, &roomy) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for %llu bytes of samples",
                            (unsigned long long)need_bytes(k));
    return 0;
}

static uint64_t array_budget(const struct drps_reader *r, const struct drps_samples *s)
{
    uint64_t taken = s->text_cap + r->chunks.carry_cap + r->chunks.in.buf_bytes + r->beside_bytes +
                     (r->options.weights_n ? 2 * DRPS_WEIGHTS_BUFFER : 0);
    uint64_t all = r->options.memory_bytes;
    return taken < all ? all - taken : 0;
}

/* What samples need that have so many features together, and names as these. */
static struct need measure_samples(const struct drps_reader *r, size_t samples, size_t features)
{
    return (struct need){.labels = samples + 1,
                         .weights = drps_reads_weights(r) ? samples + 1 : 0,
                         .starts = samples + 2,
                         .features = features,
                         .names = r->format->has_names ? features : 0,
                         .fields = r->options.fields ? features : 0,
                         .numbers = samples * (size_t)r->numbers_each};
}

static struct need measure(const struct drps_reader *r, const char *text, size_t n)
{
    const size_t of_line = r->options.clicks ? 2 : 1; /* samples, at most */
    const size_t lines = drps_text_count(text, n, '\n');
    /* A bad line may write one too many. */
    const size_t features = of_line * r->format->bound(r, text, n, lines) + DRPS_ENTRIES_SLACK;
    const size_t samples = r->format->has_sequences ? features : of_line * lines;
    struct need k = measure_samples(r, samples, features);
    if (r->format->made) k.made = r->format->made(r, text, n, lines);
    return k;
}

int drps_pieces_choose_lines(const struct drps_reader *r, struct drps_samples *s, size_t n,
                             size_t *taken_out, struct drps_err *err)
{
    uint64_t budget = array_budget(r, s);
    struct need k = measure(r, s->text, n);

    while (need_bytes(&k) > budget) {
        const char *feed = memrchr(s->text, '\n', n / 2);
        if (!feed) feed = memchr(s->text, '\n', n);
        size_t fewer = feed ? (size_t)(feed - s->text) + 1 : n;
        if (fewer == n)
            return drps_err_set(
                err, DRPS_E_MEMORY_BUDGET,
                "%s:%llu: a line of %zu bytes needs %llu MiB for its features, %llu MiB are "
                "left: give the reader more memory",
                r->chunks.in.name, (unsigned long long)r->chunks.file_lines + 1, n,
                (unsigned long long)(need_bytes(&k) >> 20) + 1, (unsigned long long)budget >> 20);
        n = fewer;
        k = measure(r, s->text, n);
    }
    *taken_out = n;
    return prepare_arrays(s, &k, budget, err);
}

int drps_pieces_choose_samples(const struct drps_reader *r, struct drps_samples *s, size_t *n,
                               size_t each, struct drps_err *err)
{
    const uint64_t budget = array_budget(r, s);
    struct need k = measure_samples(r, *n, *n * each + DRPS_ENTRIES_SLACK);
    const size_t numbers = r->numbers_each ? r->numbers_each : each;
    while (need_bytes(&k) > budget && *n > 1) {
        *n /= 2;
        k = measure_samples(r, *n, *n * each + DRPS_ENTRIES_SLACK);
    }
    if (need_bytes(&k) > budget)
        return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                            "%s: a sample of %zu numbers needs %llu MiB in memory, %llu MiB are "
                            "left: give the reader more memory",
                            r->chunks.in.name, numbers,
                            (unsigned long long)(need_bytes(&k) >> 20) + 1,
                            (unsigned long long)budget >> 20);
    return prepare_arrays(s, &k, budget, err);
}
