/*
 * Fuzz target of a round's records: any bytes give an error, or shares that sum up, positions that
 * are in order and in range, and slots of all kinds, places and ranks that are in range; nothing is
 * written beyond the arrays. Input: workers - 1 (6 bits of a byte), rows (a byte), the record.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "index/plan/codec/drps_published.h"
#include "index/plan/drps_handed.h"
#include "index/plan/drps_plan.h"
#include "index/plan/drps_residuals.h"
#include "index/plan/drps_round.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_shares(const uint8_t *record, size_t bytes, uint32_t workers, size_t rows)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *shares = malloc(workers * sizeof(*shares)); /* no more: the sanitizer watches */
    CHECK(shares);
    const int rc = drps_shares_decode(record, bytes, workers, rows, shares, &err);
    uint64_t sum = 0;
    for (uint32_t s = 0; rc == 0 && s < workers; s++)
        sum += shares[s];
    CHECK(rc == 0 ? sum == rows && !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    free(shares);
}

static void check_positions(const uint8_t *record, size_t bytes, uint32_t workers, size_t rows)
{
    struct drps_err err = DRPS_ERR_INIT;
    const size_t cap = 2 * rows;
    size_t part[DRPS_PLAN_WORKERS_MAX + 1];
    uint32_t *positions = malloc(cap * sizeof(*positions) + 1);
    CHECK(positions);
    const int rc = drps_positions_decode(record, bytes, workers, rows, cap, positions, part, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    for (uint32_t w = 0; rc == 0 && w < workers; w++) {
        CHECK(part[w] <= part[w + 1] && part[w + 1] <= cap);
        for (size_t i = part[w]; i < part[w + 1]; i++)
            CHECK(positions[i] < rows && (i == part[w] || positions[i] > positions[i - 1]));
    }
    free(positions);
}

static void check_residuals(const uint8_t *record, size_t bytes, uint32_t slots, uint32_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *slot = malloc(n * sizeof(*slot) + 1), *room = malloc(2 * n * sizeof(*room) + 1);
    uint8_t *whole = malloc(n + 1);
    CHECK(slot && room && whole);
    const struct drps_residual_rows rows = {slot, whole, room, n};
    const int rc = drps_residuals_decode(record, bytes, slots, &rows, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        CHECK(slot[i] < slots || (slot[i] == DRPS_NO_SLOT && whole[i] == 1));
    free(slot);
    free(room);
    free(whole);
}

static void check_published(const uint8_t *record, size_t bytes, uint32_t slots, uint32_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    const uint32_t uses = 2 * n;
    uint32_t *slot = malloc(n * sizeof(*slot) + 1);
    uint32_t *room = malloc((n + uses) * sizeof(*room) + 1);
    uint8_t *keeps = malloc(uses + 1);
    CHECK(slot && room && keeps);
    const struct drps_published_rows rows = {slot, keeps, room, n, uses};
    const int rc = drps_published_decode(record, bytes, slots, &rows, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        CHECK(slot[i] < slots || slot[i] == DRPS_NOT_PUBLISHED);
    for (uint32_t i = 0; rc == 0 && i < uses; i++)
        CHECK(keeps[i] <= 1);
    free(slot);
    free(room);
    free(keeps);
}

static void check_handed(const uint8_t *record, size_t bytes, uint32_t slots, uint32_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    const struct drps_handed_most most = {.rows = n, .slots = slots, .ranks = 3, .rank = 1};
    struct drps_handed_rows rows;
    CHECK(drps_handed_allocate(&rows, &most, NULL) == 0);
    const int rc = drps_handed_decode(record, bytes, &most, &rows, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    for (uint32_t i = 0; rc == 0 && i < rows.arrive_n; i++)
        CHECK(rows.arrive_slot[i] < slots &&
              (rows.arrive_from[i] == 0 || rows.arrive_from[i] == 2));
    for (uint32_t i = 0; rc == 0 && i < rows.used_n; i++) {
        CHECK(rows.place[i] < n && rows.slot[i] < slots && rows.taken[i] <= 1);
        CHECK(rows.to[i] >= DRPS_HANDED_RETURNED || rows.to[i] == 0 || rows.to[i] == 2);
    }
    drps_handed_free(&rows);
}

static void check_lent(const uint8_t *record, size_t bytes, uint32_t n)
{
    struct drps_err err = DRPS_ERR_INIT;
    uint32_t *room = malloc(2 * n * sizeof(*room) + 1);
    uint8_t *use = malloc(n + 1);
    CHECK(room && use);
    const struct drps_lent_rows rows = {use, room, n};
    const int rc = drps_lent_decode(record, bytes, &rows, &err);
    CHECK(rc == 0 ? !err.code : rc == DRPS_E_CORRUPT && err.text[0]);
    for (uint32_t i = 0; rc == 0 && i < n; i++)
        CHECK(!use[i] || (use[i] & DRPS_LENT_AWAY && use[i] < 8));
    free(room);
    free(use);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const uint32_t workers = 1 + data[0] % DRPS_PLAN_WORKERS_MAX;
    uint8_t *record = malloc(size); /* where no byte lies behind it */
    CHECK(record);
    for (size_t i = 2; i < size; i++)
        record[i - 2] = data[i];
    check_shares(record, size - 2, workers, data[1]);
    check_positions(record, size - 2, workers, data[1]);
    check_residuals(record, size - 2, workers, data[1]);
    check_published(record, size - 2, workers, data[1]);
    check_handed(record, size - 2, workers, data[1]);
    check_lent(record, size - 2, data[1]);
    free(record);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
