/*
 * Fuzz target of windows: any bytes give an error, or a window whose numbers are in range and whose
 * parts are the same when decoded one by one. Input: the record.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index/plan/drps_window.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ALL = DRPS_WINDOW_ROWS | DRPS_WINDOW_NEXT | DRPS_WINDOW_PREV };

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

/* The ways of one part are its distances. */
static void check_ways(const struct drps_use_distances *ways, const uint32_t *plain, size_t n)
{
    size_t k = 0;
    for (size_t s = 0; s < n; s++) {
        const int far = ways->marks[s / 64] >> s % 64 & 1;
        CHECK((far ? ways->far[k] : 1) == plain[s]);
        k += (size_t)far;
    }
    CHECK(k == ways->n_far);
}

static void check_both_ways(const uint8_t *data, size_t size, const struct drps_window *all)
{
    const size_t n = all->n;
    struct drps_window head = {0};
    struct drps_use_distances ways[2];
    for (int i = 0; i < 2; i++) {
        ways[i] =
            (struct drps_use_distances){malloc(DRPS_DISTANCE_WORDS(n) * 8), malloc(n * 4 + 1), 0};
        CHECK(ways[i].marks && ways[i].far);
    }
    CHECK(drps_window_decode_use_distances(data, size, 1, &head, &ways[0], &ways[1], NULL) == 0);
    CHECK(head.n == n);
    check_ways(&ways[0], all->next, n);
    check_ways(&ways[1], all->prev, n);
    for (int i = 0; i < 2; i++) {
        free(ways[i].marks);
        free(ways[i].far);
    }
    drps_window_free(&head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct drps_window all = {0}, one = {0};
    struct drps_err err = DRPS_ERR_INIT;
    int rc = drps_window_decode(data, size, ALL, &all, &err);
    int single = 0;

    CHECK(rc == err.code && (rc == 0 || rc == DRPS_E_CORRUPT));
    if (rc == 0) {
        check_numbers(&all);
        check_both_ways(data, size, &all);
    }
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
