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

/* The next size that prints exactly: who asks for as much as the text says must get enough. */
static uint64_t printable(uint64_t bytes)
{
    uint64_t tenths = 10;
    while (bytes / tenths >= 1024 / 10 * 10 && tenths < UINT64_MAX / 10240)
        tenths *= 1024;
    return bytes;
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
    return drps_err_set(err, DRPS_E_MEMORY_BUDGET, "--memory %s is too small: at least %s is needed (%s)",
                        drps_size_format(b->limit_bytes, limit, sizeof(limit)),
                        drps_size_format(b->used_bytes, need, sizeof(need)), parts);
}
