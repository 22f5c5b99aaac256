/* Counting a byte by vectors, whose elements hold the counts of their places. */
#include "index/reader/text/drps_count.h"

#include <stdint.h>

#include "base/kernel/drps_level.h"

#ifdef __AVX2__
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif

typedef uint8_t bytes __attribute__((vector_size(WIDTH), aligned(1), may_alias));

DRPS_KERNEL(size_t, drps_text_count, (const char *text, size_t n, char c), (text, n, c))
{
    size_t count = 0, i = 0;

    while (n - i >= WIDTH) {
        bytes sums = {0};
        for (int k = 0; k < 255 && n - i >= WIDTH; k++, i += WIDTH)    /* 255: a byte's range */
            sums -= (bytes)(*(const bytes *)(text + i) == (uint8_t)c); /* true is -1 */
        for (size_t k = 0; k < WIDTH; k++)
            count += sums[k];
    }
    for (; i < n; i++)
        count += text[i] == c;
    return count;
}
