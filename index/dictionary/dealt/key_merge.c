/* Streams of all ranks, each in the order of keys, merged by a heap of the records that they are
 * at. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/dictionary/dealt/dealt.h"

struct key_head {
    struct dealt_record record;
    char *text; /* own */
    size_t text_cap;
    int begun; /* 1: the record is not the stream's first */
};

static int is_before(const struct key_merge *m, uint32_t a, uint32_t b)
{
    const uint64_t x = m->heads[a].record.k.key, y = m->heads[b].record.k.key;
    return x != y ? x < y : a < b;
}

static void exchange(struct key_merge *m, uint32_t i, uint32_t j)
{
    const uint32_t rank = m->heap[i];
    m->heap[i] = m->heap[j];
    m->heap[j] = rank;
}

static void push(struct key_merge *m, uint32_t from)
{
    uint32_t i = m->heap_n++;
    m->heap[i] = from;
    for (; i && is_before(m, m->heap[i], m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        exchange(m, i, (i - 1) / 2);
}

uint32_t drps_key_merge_pop(struct key_merge *m)
{
    const uint32_t from = m->heap[0];
    m->heap[0] = m->heap[--m->heap_n];
    for (uint32_t i = 0, least = 0;; i = least) {
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->heap_n; child++)
            if (is_before(m, m->heap[child], m->heap[least])) least = child;
        if (least == i) return from;
        exchange(m, i, least);
    }
}

const struct dealt_record *drps_key_merge_top(const struct key_merge *m)
{
    return m->heap_n ? &m->heads[m->heap[0]].record : NULL;
}

/* Keys go to their owners, and names come from them. */
static int is_dealt(const struct key_merge *m, uint32_t from, uint64_t key)
{
    return drps_dict_owner(key, m->count) == (m->kind == DEALT_KEYS ? m->rank : from);
}

int drps_key_merge_go_on(struct key_merge *m, uint32_t from, struct drps_err *err)
{
    struct key_head *h = &m->heads[from];
    const uint64_t last = h->record.k.key;
    if (!drps_swap_left(m->s, from)) return 0;
    int rc =
        drps_dealt_take(m->s, from, m->kind, m->strings, &h->record, &h->text, &h->text_cap, err);
    if (rc < 0) return rc;
    if (h->begun && h->record.k.key <= last)
        return drps_swap_fault(from, "keys that are not in order", err);
    if (!is_dealt(m, from, h->record.k.key))
        return drps_swap_fault(from, "a key of another rank", err);
    h->begun = 1;
    push(m, from);
    return 0;
}

int drps_key_merge_open(struct key_merge *m, const struct dealt *d, struct swap *s,
                        enum dealt_kind kind, struct drps_err *err)
{
    *m = (struct key_merge){.s = s,
                            .kind = kind,
                            .strings = d->options->strings,
                            .count = d->ranks->count,
                            .rank = d->ranks->rank};
    m->heads = calloc(m->count, sizeof(*m->heads));
    m->heap = drps_array_new(m->count, sizeof(*m->heap));
    int rc = m->heads && m->heap ? 0 : drps_err_set(err, -ENOMEM, "no memory for merging names");
    drps_swap_rewind(s);
    for (uint32_t from = 0; from < m->count && rc == 0; from++)
        rc = drps_key_merge_go_on(m, from, err);
    return rc;
}

void drps_key_merge_close(struct key_merge *m)
{
    for (uint32_t from = 0; m->heads && from < m->count; from++)
        free(m->heads[from].text);
    free(m->heads);
    free(m->heap);
    *m = (struct key_merge){0};
}
