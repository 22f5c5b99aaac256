/* Marks of changed rows: a step notes its ranges when it opens, as its ids are only known then;
 * they count once it has closed and says that it has changed them. */
#include "storage/drps_marks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_alloc.h"

int drps_marks_init(struct drps_marks *m, const struct drps_store_config *config,
                    struct drps_err *err)
{
    *m = (struct drps_marks){.rows = config->rows,
                             .end = config->rows,
                             .range_rows = config->mark_rows,
                             .span = config->open_steps ? config->open_steps : 1};
    if (!m->range_rows || !m->rows) return 0;
    m->words = (size_t)((m->rows - 1) / m->range_rows / 64 + 1);
    m->changed = calloc(m->words, sizeof(*m->changed));
    m->open = drps_array_new((uint64_t)m->words * m->span, sizeof(*m->open));
    return m->changed && m->open ? 0 : drps_err_set(err, -ENOMEM, "marks of changed rows");
}

void drps_marks_destroy(struct drps_marks *m)
{
    free(m->changed);
    free(m->open);
    memset(m, 0, sizeof(*m));
}

static uint64_t *of_step(const struct drps_marks *m, uint64_t step)
{
    return m->open + step % m->span * m->words;
}

/* Returns the first i with ids[i] >= id, or n. */
static size_t find(const uint32_t *ids, size_t n, uint64_t id)
{
    size_t first = 0;
    while (n) {
        const size_t half = n / 2;
        if (ids[first + half] < id) {
            first += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return first;
}

void drps_marks_open(struct drps_marks *m, uint64_t step, const uint32_t *ids, size_t n)
{
    if (!m->words) return;
    uint64_t *open = of_step(m, step);
    uint64_t end = 0; /* of the range that was marked last */
    memset(open, 0, m->words * sizeof(*open));
    for (size_t i = find(ids, n, m->first); i < n && ids[i] < m->end; i++) {
        if (ids[i] < end) continue;
        const uint64_t range = ids[i] / m->range_rows;
        open[range / 64] |= UINT64_C(1) << range % 64;
        end = (range + 1) * m->range_rows;
    }
}

static int is_changed(const struct drps_marks *m, uint64_t range)
{
    return (int)(m->changed[range / 64] >> range % 64 & 1);
}

/* Soon most rows are marked, and a step need not look for theirs. */
static void leave_out_marked(struct drps_marks *m)
{
    while (m->first < m->end && is_changed(m, m->first / m->range_rows))
        m->first += m->range_rows;
    while (m->first < m->end && is_changed(m, (m->end - 1) / m->range_rows))
        m->end = (m->end - 1) / m->range_rows * m->range_rows;
}

void drps_marks_close(struct drps_marks *m, uint64_t step, int changed)
{
    if (!m->words || !changed) return;
    const uint64_t *open = of_step(m, step);
    for (size_t i = 0; i < m->words; i++)
        m->changed[i] |= open[i];
    leave_out_marked(m);
}

int drps_marks_next(const struct drps_marks *m, uint64_t from, uint64_t *first_out,
                    uint64_t *end_out)
{
    if (from >= m->rows || !m->words) return 0;
    const uint64_t ranges = (m->rows - 1) / m->range_rows + 1;
    uint64_t first = from / m->range_rows;
    while (first < ranges && !is_changed(m, first))
        first++;
    uint64_t end = first;
    while (end < ranges && is_changed(m, end))
        end++;
    *first_out = first * m->range_rows;
    *end_out = end < ranges ? end * m->range_rows : m->rows;
    return first < ranges;
}

void drps_marks_clear(struct drps_marks *m)
{
    m->first = 0;
    m->end = m->rows;
    if (m->words) memset(m->changed, 0, m->words * sizeof(*m->changed));
}
