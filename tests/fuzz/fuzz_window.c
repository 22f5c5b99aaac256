/*
 * Fuzz target of windows: any bytes give an error, or a window whose numbers are in range and whose
 * parts are the same when decoded one by one. Input: the record.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/drps_window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL = DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV };

#define CHECK(ok)                                                                                  \
    do {                                                                                           \
        if (!(ok)) {                                                                               \
            (void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #ok);                 \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void check_numbers(const struct drps_window *w)
{
    size_t arriving = 0, leaving = 0;
    for (size_t i = 0; i < w->n; i++) {
        CHECK(i == 0 || w->rows[i - 1] < w->rows[i]);
        CHECK(w->next[i] && w->next[i] <= w->windows && w->prev[i] && w->prev[i] <= w->windows);
        leaving += w->next[i] > 1;
        arriving += w->prev[i] > 1;
    }
    CHECK(leaving == w->leaving && arriving == w->arriving && w->n <= w->max_rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drps_window all = {0}, one = {0};
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_window_decode(data, size, ALL, &all, &err);
    int single = 0;

    CHECK(rc == err.code && (rc == 0 || rc == DRPS_E_CORRUPT));
    if (rc == 0) check_numbers(&all);
    CHECK(rc == 0 || all.n == 0);
    for (unsigned part = 1; part <= ALL; part <<= 1) {
        int bad = drps_window_decode(data, size, part, &one, NULL);
        CHECK(bad == 0 || (rc < 0 && one.n == 0));
        single |= bad;
        if (rc < 0) continue;
        CHECK(one.n == all.n);
        const uint32_t *a = part == DRPS_WINDOW_ROWS   ? one.rows
                            : part == DRPS_WINDOW_NEXT ? one.next
                                                       : one.prev;
        const uint32_t *b = part == DRPS_WINDOW_ROWS   ? all.rows
                            : part == DRPS_WINDOW_NEXT ? all.next
                                                       : all.prev;
        CHECK(memcmp(a, b, one.n * sizeof(*a)) == 0);
    }
    CHECK(single == 0 || rc < 0);
    drps_window_free(&all);
    drps_window_free(&one);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
