/* Numbers in pieces of seven bits; section.h has the idea. */
#include "storage/relay/runs/section.h"

static size_t put(char *to, uint64_t value)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        to[n++] = (char)(value | 0x80);
    to[n++] = (char)value;
    return n;
}

/* A number of 64 bits has 10 pieces at most, of which the last one is 0 or 1. */
static size_t get(const char *from, size_t n, uint64_t *value_out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n && i < 10; i++) {
        const uint64_t byte = (unsigned char)from[i];
        if (i == 9 && byte > 1) return 0;
        value |= (byte & 0x7f) << 7 * i;
        if (byte & 0x80) continue;
        *value_out = value;
        return i + 1;
    }
    return 0;
}

size_t drps_section_put(char *to, const struct drps_section *section)
{
    const size_t n = put(to, section->later);
    return n + put(to + n, section->rows);
}

size_t drps_section_get(const char *from, size_t n, struct drps_section *section_out)
{
    *section_out = (struct drps_section){0};
    const size_t first = get(from, n, &section_out->later);
    const size_t second = first ? get(from + first, n - first, &section_out->rows) : 0;
    return second ? first + second : 0;
}
