/* Adding up who took how much of the memory budget, and saying so when it is too small. */
#include "base/drps_budget.h"

#include <stdio.h>
#include <string.h>

#include "base/drps_size.h"

void drps_budget_init(struct drps_budget *b, uint64_t limit_bytes)
{
    memset(b, 0, sizeof(*b));
    b->limit_bytes = limit_bytes;
}

uint64_t drps_budget_left(const struct drps_budget *b)
{
    return b->used_bytes < b->limit_bytes ? b->limit_bytes - b->used_bytes : 0;
}

static void describe(const struct drps_budget *b, char *text, size_t cap)
{
    size_t used = 0;
    char size[32];
    text[0] = '\0';
    for (size_t i = 0; i < b->n && used < cap; i++) {
        int n = snprintf(text + used, cap - used, "%s%s %s", i ? ", " : "", b->items[i].what,
                         drps_size_format(b->items[i].bytes, size, sizeof(size)));
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Rounded up to the tenth that drps_size_format() shows: whoever gives as much as the text asks for
 * gives enough. */
static uint64_t rounded_up(uint64_t bytes)
{
    uint64_t unit = 1;
    while (bytes / unit >= 1024 && unit < (uint64_t)1 << 40)
        unit *= 1024;
    if (unit == 1 || bytes >> 60) return bytes;
    uint64_t tenths = bytes / unit * 10 + (bytes % unit * 10 + unit - 1) / unit;
    return (tenths * unit + 9) / 10;
}

int drps_budget_take(struct drps_budget *b, const char *what, uint64_t bytes, struct drps_err *err)
{
    if (b->n < DRPS_BUDGET_ITEMS) {
        b->items[b->n].what = what;
        b->items[b->n].bytes = bytes;
        b->n++;
    }
    if (__builtin_add_overflow(b->used_bytes, bytes, &b->used_bytes)) b->used_bytes = UINT64_MAX;
    if (b->used_bytes <= b->limit_bytes) return 0;
    char parts[600];
    char limit[32];
    char need[32];
    describe(b, parts, sizeof(parts));
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET,
                        "a memory limit of %s is too small: at least %s is needed (%s)",
                        drps_size_format(b->limit_bytes, limit, sizeof(limit)),
                        drps_size_format(rounded_up(b->used_bytes), need, sizeof(need)), parts);
}

void drps_budget_note(struct drps_budget *b, const char *what, uint64_t bytes)
{
    const int rc = drps_budget_take(b, what, bytes, NULL);
    (void)rc;
}
