/* Lists of rows by their next use, and which lists have any. */
#include "index/ranks/drps_farthest.h"

#include <errno.h>
#include <string.h>

#include "base/drps_alloc.h"

#define NONE DRPS_FARTHEST_NONE

uint64_t drps_farthest_bytes(uint64_t rows, unsigned sets, uint64_t rounds)
{
    return rows * 3 * sizeof(uint32_t) + rounds * sets * (sizeof(uint32_t) + 1);
}

int drps_farthest_init(struct drps_farthest *f, uint64_t rows, unsigned sets, uint64_t rounds,
                       struct drps_err *err)
{
    *f = (struct drps_farthest){.sets = sets, .rounds = rounds};
    f->next = drps_array_new(rows, sizeof(*f->next));
    f->after = drps_array_new(rows, sizeof(*f->after));
    f->before = drps_array_new(rows, sizeof(*f->before));
    f->head = drps_array_new(rounds * sets, sizeof(*f->head));
    if (!f->next || !f->after || !f->before || !f->head ||
        drps_bit_tree_init(&f->lists, sets, rounds) < 0)
        return drps_err_set(err, -ENOMEM, "no memory for rows by their next use");
    memset(f->head, 0xff, rounds * sets * sizeof(*f->head));
    return 0;
}

void drps_farthest_destroy(struct drps_farthest *f)
{
    drps_bit_tree_destroy(&f->lists);
    free(f->next);
    free(f->after);
    free(f->before);
    free(f->head);
    *f = (struct drps_farthest){.sets = 0};
}

static uint32_t *head_of(const struct drps_farthest *f, unsigned set, uint64_t round)
{
    return &f->head[set * f->rounds + round];
}

void drps_farthest_put(struct drps_farthest *f, unsigned set, uint32_t row, uint32_t next)
{
    uint32_t *head = head_of(f, set, next);
    f->next[row] = next;
    f->before[row] = NONE;
    f->after[row] = *head;
    if (*head != NONE) f->before[*head] = row;
    *head = row;
    drps_bit_tree_add(&f->lists, f->sets, set, next);
}

void drps_farthest_take(struct drps_farthest *f, unsigned set, uint32_t row)
{
    const uint32_t next = f->next[row], before = f->before[row], after = f->after[row];
    uint32_t *head = head_of(f, set, next);
    if (after != NONE) f->before[after] = before;
    if (before != NONE)
        f->after[before] = after;
    else
        *head = after;
    if (*head == NONE) drps_bit_tree_remove(&f->lists, f->sets, set, next);
}

uint32_t drps_farthest_row(const struct drps_farthest *f, unsigned set)
{
    const uint64_t latest = drps_bit_tree_at_most(&f->lists, f->sets, set, f->rounds - 1);
    return latest == DRPS_BIT_TREE_NONE ? NONE : *head_of(f, set, latest);
}
