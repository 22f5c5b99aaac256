/*
 * Residual slots of plans for several workers, against the rows that each worker pulls from other
 * servers: dense numbers where the slots suffice, few rows sent whole where they do not, what the
 * servers' published slots say of the same rows, plans without them, and damaged records.
 *
 *   test_residual_slots [seed]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/drps_rng.h"
#include "index/plan/codec/drps_list.h"
#include "index/plan/codec/drps_published.h"
#include "index/plan/drps_residuals.h"
#include "index/plan/drps_round.h"
#include "support/index_case.h"
#include "support/round_rows.h"

enum { WORKERS = 3, ROWS_MOST = 4096, ROUNDS_MOST = 512 };

static uint64_t seed = 20240607;

/* ---- A plan, and what its records say ---- */

struct made {
    struct scratch scratch;
    struct case_run run;
    struct drps_plan *part[WORKERS];
    uint32_t intercepts; /* the first rows, which hold some */
};

#define EACH (UINT64_MAX - 1) /* slots: each row has one of its own */

static void compile(struct made *m, uint64_t slots, const char *partition)
{
    struct drps_err err = DRPS_ERR_INIT;
    m->run.options.workers = WORKERS;
    m->run.options.partition = partition;
    m->run.options.batch_size = 20;
    m->run.options.test_fraction = 0.2;
    m->run.options.own_slots = slots == EACH;
    m->run.options.residual_slots = slots == EACH ? UINT64_MAX : slots;
    case_compile(&m->run);
    case_verify(m->run.out);
    for (uint32_t r = 0; r < WORKERS; r++)
        if (drps_plan_open_rank(drps_io_os(), m->run.out, r, &m->part[r], &err) < 0)
            fail_msg("%s", err.text);
}

static void made_begin(struct made *m, uint64_t slots, const char *partition)
{
    scratch_begin(&m->scratch);
    const char *input = case_input(&m->scratch, "in", CASE_LIBSVM, 2000, 800, seed);
    case_begin(&m->run, &m->scratch, input, "lor");
    m->intercepts = 1;
    compile(m, slots, partition);
}

/* Of a net whose own parameters are 5 intercepts, b of `bag` and a full layer's: 8 rows of three,
 * of which intercepts lie in two. */
enum { NET_ROWS = 8, NET_INTERCEPTS = 2 };

static void made_begin_net(struct made *m, uint64_t slots, const char *partition)
{
    static const char net[] = "x = bag 2\nscore = full classes x\n";
    scratch_begin(&m->scratch);
    const char *input = scratch_path(&m->scratch, "in");
    FILE *f = fopen(input, "w");
    assert_non_null(f);
    for (uint64_t i = 0; i < 2000; i++)
        (void)fprintf(f, "class%c %u:1\n", "abcde"[i % 5], (unsigned)(drps_rng_at(seed, i) % 700));
    assert_int_equal(fclose(f), 0);
    case_begin(&m->run, &m->scratch, input, "net");
    m->run.options.net = scratch_file(&m->scratch, "net.txt", net, SIZE_MAX);
    m->intercepts = NET_INTERCEPTS;
    compile(m, slots, partition);
}

static void made_end(struct made *m)
{
    for (uint32_t r = 0; r < WORKERS; r++)
        drps_plan_close(m->part[r]);
    scratch_end(&m->scratch);
}

/* A worker's rows of other servers, and their slots, round by round. */
struct worker {
    uint64_t rounds;
    uint32_t n[ROUNDS_MOST];
    uint32_t *row[ROUNDS_MOST], *slot[ROUNDS_MOST]; /* own */
    uint8_t *whole[ROUNDS_MOST];                    /* own */
};

static void read_worker(const struct made *m, uint32_t rank, struct worker *w)
{
    w->rounds = m->part[rank]->info.batches;
    assert_true(w->rounds <= ROUNDS_MOST);
    for (uint64_t t = 0; t < w->rounds; t++) {
        size_t n = 0, bytes;
        w->row[t] = calloc(ROWS_MOST, sizeof(uint32_t));
        w->slot[t] = calloc(ROWS_MOST, sizeof(uint32_t));
        w->whole[t] = calloc(ROWS_MOST, 1);
        for (uint32_t s = 0; s < WORKERS; s++)
            if (s != rank) n += round_rows(m->part[s], rank, t, w->row[t] + n);
        static uint32_t room[2 * ROWS_MOST];
        const struct drps_residual_rows rows = {w->slot[t], w->whole[t], room, (uint32_t)n};
        void *record = round_record(m->part[rank], "residuals.rec", DRPS_KIND_RESIDUALS, t, &bytes);
        assert_int_equal(drps_residuals_decode(
                             record, bytes, m->part[rank]->info.ranks.residual_slots, &rows, NULL),
                         0);
        free(record);
        w->n[t] = (uint32_t)n;
    }
}

static void free_worker(struct worker *w)
{
    for (uint64_t t = 0; t < w->rounds; t++) {
        free(w->row[t]);
        free(w->slot[t]);
        free(w->whole[t]);
    }
}

/* ---- Enough slots ---- */

/* Rows that are used `least` times or more are numbered. */
static void check_dense(const struct worker *w, uint64_t slots, uint32_t least)
{
    static uint32_t uses[ROWS_MOST], last[ROWS_MOST], number[ROWS_MOST];
    uint32_t numbered = 0;
    memset(uses, 0, sizeof(uses));
    for (uint64_t t = 0; t < w->rounds; t++)
        for (uint32_t i = 0; i < w->n[t]; i++) {
            uses[w->row[t][i]]++;
            last[w->row[t][i]] = (uint32_t)t;
        }
    for (uint32_t row = 0; row < ROWS_MOST; row++)
        number[row] = uses[row] >= least ? numbered++ : DRPS_NO_SLOT;
    assert_int_equal(slots, numbered ? numbered : 1);
    for (uint64_t t = 0; t < w->rounds; t++)
        for (uint32_t i = 0; i < w->n[t]; i++) {
            assert_int_equal(w->slot[t][i], number[w->row[t][i]]);
            assert_int_equal(w->whole[t][i], last[w->row[t][i]] == t);
        }
}

static void test_slots_that_suffice_are_dense_numbers(void **state)
{
    static const char *const partitions[] = {"range", "auto"};
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        struct made m = {0};
        made_begin(&m, UINT64_MAX, partitions[p]);
        for (uint32_t r = 0; r < WORKERS; r++) {
            struct worker w = {0};
            read_worker(&m, r, &w);
            check_dense(&w, m.part[r]->info.ranks.residual_slots, 2);
            assert_false(m.part[r]->info.ranks.own_slots);
            free_worker(&w);
        }
        made_end(&m);
    }
}

/* Also rows that a worker uses once. */
static void test_each_row_can_have_a_slot_of_its_own(void **state)
{
    struct made m = {0};
    (void)state;
    made_begin(&m, EACH, "range");
    for (uint32_t r = 0; r < WORKERS; r++) {
        struct worker w = {0};
        read_worker(&m, r, &w);
        check_dense(&w, m.part[r]->info.ranks.residual_slots, 1);
        assert_true(m.part[r]->info.ranks.own_slots);
        free_worker(&w);
    }
    made_end(&m);
}

/* A net's own parameters are in every batch: each of their rows has a slot from the first batch to
 * the last, whatever comes between. */
static void check_net(const struct worker *w, uint32_t first, uint32_t end)
{
    uint64_t last = w->rounds - 1; /* the last round may leave a worker without */
    if (!w->n[last]) last--;
    for (uint64_t t = 0; t <= last; t++) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < w->n[t]; i++) {
            if (w->row[t][i] >= NET_ROWS) continue;
            assert_true(w->row[t][i] < first || w->row[t][i] >= end);
            assert_int_not_equal(w->slot[t][i], DRPS_NO_SLOT);
            assert_int_equal(w->whole[t][i], t == last);
            n++;
        }
        const uint32_t own = first < NET_ROWS ? (end < NET_ROWS ? end : NET_ROWS) - first : 0;
        assert_int_equal(n, NET_ROWS - own);
    }
}

static void test_rows_of_a_net_have_slots(void **state)
{
    static const char *const partitions[] = {"auto", "counts"}; /* on the first rank; on several */
    static const uint64_t slots[] = {UINT64_MAX, EACH, 2 * NET_ROWS};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        struct made m = {0};
        made_begin_net(&m, slots[k / 2], partitions[k % 2]);
        for (uint32_t r = 0; r < WORKERS; r++) {
            struct worker w = {0};
            const struct drps_plan_info *info = &m.part[r]->info;
            read_worker(&m, r, &w);
            assert_int_equal(drps_plan_common_rows(info), NET_ROWS);
            check_net(&w, (uint32_t)info->ranks.first_row,
                      (uint32_t)(info->ranks.first_row + info->rows));
            if (k < 4) check_dense(&w, info->ranks.residual_slots, k < 2 ? 2 : 1);
            free_worker(&w);
        }
        made_end(&m);
    }
}

/* ---- Too few slots ---- */

/* Where the worker lets the rest of a row lie until its next use: [from, to). */
struct wait {
    uint64_t from, to;
};

static int by_end(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    if (x->to != y->to) return x->to < y->to ? -1 : 1;
    return x->from > y->from ? -1 : x->from < y->from;
}

/* At most so many waits fit `slots` slots: those that end first, each if there is room. */
static uint64_t most_waits(struct wait *waits, size_t n, uint64_t slots, uint64_t rounds)
{
    uint64_t taken = 0;
    uint32_t *busy = calloc(rounds, sizeof(*busy));
    qsort(waits, n, sizeof(*waits), by_end);
    for (size_t i = 0; i < n; i++) {
        int fits = 1;
        for (uint64_t t = waits[i].from; t < waits[i].to; t++)
            fits &= busy[t] < slots;
        for (uint64_t t = waits[i].from; fits && t < waits[i].to; t++)
            busy[t]++;
        taken += (uint64_t)fits;
    }
    free(busy);
    return taken;
}

static uint64_t bound(const struct worker *w, uint64_t slots)
{
    static uint64_t before[ROWS_MOST];
    struct wait *waits = calloc((size_t)ROUNDS_MOST * ROWS_MOST, sizeof(*waits));
    size_t n = 0;
    memset(before, 0, sizeof(before));
    for (uint64_t t = 0; t < w->rounds; t++)
        for (uint32_t i = 0; i < w->n[t]; i++) {
            uint64_t *b = &before[w->row[t][i]];
            if (*b) waits[n++] = (struct wait){*b - 1, t};
            *b = t + 1;
        }
    const uint64_t most = most_waits(waits, n, slots, w->rounds);
    free(waits);
    return most;
}

/* A row's rest is in its slot when the row comes again, and nobody else's. */
static uint64_t check_few(const struct worker *w, uint64_t slots)
{
    static uint32_t holder[ROWS_MOST];
    uint64_t waits = 0;
    memset(holder, 0xff, sizeof(holder));
    for (uint64_t t = 0; t < w->rounds; t++) {
        for (uint32_t i = 0; i < w->n[t]; i++) {
            const uint32_t slot = w->slot[t][i], row = w->row[t][i];
            for (uint32_t other = 0; other < slots; other++)
                if (holder[other] == row) assert_int_equal(other, slot);
            if (slot == DRPS_NO_SLOT || !w->whole[t][i]) continue;
            assert_true(slot < slots && holder[slot] == row);
            holder[slot] = UINT32_MAX;
        }
        for (uint32_t i = 0; i < w->n[t]; i++) {
            const uint32_t slot = w->slot[t][i], row = w->row[t][i];
            if (w->whole[t][i]) continue;
            assert_true(slot < slots && (holder[slot] == row || holder[slot] == UINT32_MAX));
            holder[slot] = row;
            waits++;
        }
    }
    for (uint32_t slot = 0; slot < slots; slot++)
        assert_int_equal(holder[slot], UINT32_MAX);
    return waits;
}

static void test_few_slots_go_to_rows_that_come_again_soon(void **state)
{
    static const uint64_t few[] = {1, 5, 30, 150};
    (void)state;
    for (size_t k = 0; k < sizeof(few) / sizeof(*few); k++) {
        struct made m = {0};
        made_begin(&m, few[k], "range");
        struct worker w = {0};
        read_worker(&m, 1, &w);
        assert_int_equal(m.part[1]->info.ranks.residual_slots, few[k]);
        const uint64_t waits = check_few(&w, few[k]), most = bound(&w, few[k]);
        assert_true(waits <= most);
        if (waits * 100 < most * 95) fail_msg("%zu of %zu", (size_t)waits, (size_t)most);
        free_worker(&w);
        made_end(&m);
    }
}

/* Of one slot less than rows that come again some are of no row at a time, and do not count. */
static void test_slots_of_no_row_do_not_count(void **state)
{
    struct made m = {0};
    struct worker w = {0};
    uint32_t most = 0;
    (void)state;
    made_begin(&m, UINT64_MAX, "range");
    const uint64_t all = m.part[1]->info.ranks.residual_slots;
    made_end(&m);
    made_begin(&m, all - 1, "range");
    read_worker(&m, 1, &w);
    for (uint64_t t = 0; t < w.rounds; t++)
        for (uint32_t i = 0; i < w.n[t]; i++)
            if (w.slot[t][i] != DRPS_NO_SLOT && w.slot[t][i] > most) most = w.slot[t][i];
    assert_int_equal(m.part[1]->info.ranks.residual_slots, most + 1);
    assert_true(most + 1 < all - 1);
    free_worker(&w);
    made_end(&m);
}

/* ---- Published slots ---- */

/* A server's record of a round. */
struct published {
    uint32_t slot[ROWS_MOST], room[(1 + WORKERS) * ROWS_MOST], ids[ROWS_MOST];
    uint32_t positions[WORKERS * ROWS_MOST];
    uint8_t keeps[WORKERS * ROWS_MOST];
    size_t part[WORKERS + 1];
    uint32_t n;
};

static void read_published(const struct drps_plan *server, uint64_t round, struct published *p)
{
    size_t bytes;
    void *record = round_record(server, "rows.rec", DRPS_KIND_ROWS, round, &bytes);
    p->n = drps_list_count(record);
    assert_int_equal(drps_list_decode(record, bytes, p->ids, NULL, NULL), 0);
    free(record);
    record = round_record(server, "positions.rec", DRPS_KIND_POSITIONS, round, &bytes);
    assert_int_equal(drps_positions_decode(record, bytes, WORKERS, p->n, WORKERS * ROWS_MOST,
                                           p->positions, p->part, NULL),
                     0);
    free(record);
    const struct drps_published_rows rows = {p->slot, p->keeps, p->room, p->n,
                                             (uint32_t)p->part[WORKERS]};
    record = round_record(server, "published.rec", DRPS_KIND_PUBLISHED, round, &bytes);
    assert_int_equal(
        drps_published_decode(record, bytes, server->info.ranks.published_slots, &rows, NULL), 0);
    free(record);
}

/* Which row has each slot of a server, the last round that had it, and the copies of each row. */
struct owners_of_slots {
    uint32_t row[ROWS_MOST];
    uint64_t last[ROWS_MOST];
    int copies[ROWS_MOST];
};

/* The worker's records say the same of each use as the server's. */
static void check_uses(const struct made *m, const struct published *p, const struct worker *w,
                       uint32_t rank, uint32_t first, uint64_t round, int *copies, uint8_t *has)
{
    size_t at = p->part[rank];
    for (uint32_t i = 0; i < w->n[round]; i++) {
        const uint32_t row = w->row[round][i] - first;
        if (at == p->part[rank + 1] || w->row[round][i] < first || p->ids[p->positions[at]] != row)
            continue;
        const int keeps = !w->whole[round][i] && w->row[round][i] >= m->intercepts;
        assert_int_equal(p->keeps[at++], keeps);
        copies[row] += keeps - has[row];
        has[row] = (uint8_t)keeps;
    }
    assert_int_equal(at, p->part[rank + 1]);
}

static void check_server(const struct made *m, uint32_t server, const struct worker *workers)
{
    static struct published p;
    static struct owners_of_slots o;
    static uint8_t has[WORKERS][ROWS_MOST];
    static uint32_t slot_of[ROWS_MOST];
    const uint64_t slots = m->part[server]->info.ranks.published_slots;
    const uint32_t first = (uint32_t)m->part[server]->info.ranks.first_row;
    uint64_t held = 0, given_up = 0, most = 1; /* slots; in the round before; with these */
    memset(&o, 0, sizeof(o));
    memset(o.row, 0xff, sizeof(o.row));
    memset(has, 0, sizeof(has));
    memset(slot_of, 0xff, sizeof(slot_of));
    for (uint64_t t = 0; t < workers[0].rounds; t++) {
        read_published(m->part[server], t, &p);
        for (uint32_t w = 0; w < WORKERS; w++)
            if (w != server) check_uses(m, &p, &workers[w], w, first, t, o.copies, has[w]);
        for (size_t i = p.part[server]; i < p.part[server + 1]; i++)
            assert_int_equal(p.keeps[i], 0);
        uint64_t gives_up = 0;
        for (uint32_t i = 0; i < p.n; i++) {
            const uint32_t row = p.ids[i], slot = p.slot[i];
            held += slot != DRPS_NOT_PUBLISHED && slot_of[row] == DRPS_NOT_PUBLISHED;
            if (slot_of[row] != DRPS_NOT_PUBLISHED) assert_int_equal(slot, slot_of[row]);
            assert_true(slot != DRPS_NOT_PUBLISHED || !o.copies[row]);
            if (slot == DRPS_NOT_PUBLISHED) continue;
            assert_true(slot < slots);
            if (o.row[slot] != row)
                assert_true(o.row[slot] == UINT32_MAX && (!o.last[slot] || o.last[slot] + 1 < t));
            o.row[slot] = o.copies[row] ? row : UINT32_MAX;
            o.last[slot] = t;
            slot_of[row] = o.copies[row] ? slot : DRPS_NOT_PUBLISHED;
            gives_up += !o.copies[row];
        }
        if (held + given_up > most) most = held + given_up;
        held -= gives_up;
        given_up = gives_up;
    }
    assert_int_equal(slots, most);
    for (uint32_t row = 0; row < ROWS_MOST; row++)
        assert_int_equal(o.copies[row], 0);
}

static void test_servers_know_who_has_copies(void **state)
{
    static const uint64_t slots[] = {UINT64_MAX, 30};
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        struct made m = {0};
        struct worker workers[WORKERS] = {0};
        (k < 2 ? made_begin : made_begin_net)(&m, slots[k % 2], k % 2 ? "auto" : "range");
        for (uint32_t w = 0; w < WORKERS; w++)
            read_worker(&m, w, &workers[w]);
        for (uint32_t s = 0; s < WORKERS; s++)
            check_server(&m, s, workers);
        for (uint32_t w = 0; w < WORKERS; w++)
            free_worker(&workers[w]);
        made_end(&m);
    }
}

static void test_published_records_round_trip_and_damage_is_refused(void **state)
{
    enum { N = 40, USES = 70, SLOTS = 100 };
    uint32_t slot[N], room[N + USES], read_slot[N];
    uint8_t keeps[USES], read_keeps[USES];
    unsigned char record[4096];
    const struct drps_published_rows rows = {slot, keeps, room, N, USES};
    const struct drps_published_rows read = {read_slot, read_keeps, room, N, USES};
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        for (uint32_t i = 0; i < USES; i++) {
            const uint64_t x = drps_rng_at(seed + k, i);
            if (i < N) slot[i] = x % 3 == 0 ? DRPS_NOT_PUBLISHED : (uint32_t)(x >> 8) % SLOTS;
            keeps[i] = (x >> 40) % 4 == 0;
        }
        const size_t bytes = drps_published_encode(&rows, record);
        assert_true(bytes <= drps_published_encode_bound(N, USES));
        assert_int_equal(drps_published_decode(record, bytes, SLOTS, &read, NULL), 0);
        assert_memory_equal(slot, read_slot, sizeof(slot));
        assert_memory_equal(keeps, read_keeps, sizeof(keeps));
        for (size_t cut = 0; cut < bytes; cut++)
            assert_int_equal(drps_published_decode(record, cut, SLOTS, &read, NULL),
                             DRPS_E_CORRUPT);
        assert_int_equal(drps_published_decode(record, bytes + 1, SLOTS, &read, NULL),
                         DRPS_E_CORRUPT);
        assert_int_equal(drps_published_decode(record, bytes, 1, &read, NULL), DRPS_E_CORRUPT);
        struct drps_published_rows fewer = read;
        fewer.uses = 1;
        assert_int_equal(drps_published_decode(record, bytes, SLOTS, &fewer, NULL), DRPS_E_CORRUPT);
    }
}

/* ---- Without, and refused ---- */

/* What plan.json says of the files that both have. */
static void check_same_files(const struct drps_plan *a, const struct drps_plan *b)
{
    for (size_t i = 0; i < DRPS_PLAN_FILES; i++) {
        uint64_t bytes, sum, other_bytes, other_sum;
        if (!drps_plan_has_file(&a->info, i)) continue;
        const char *name = drps_plan_files[i].name;
        assert_int_equal(drps_plan_listed(a, name, &bytes, &sum, NULL), 0);
        assert_int_equal(drps_plan_listed(b, name, &other_bytes, &other_sum, NULL), 0);
        assert_int_equal(bytes, other_bytes);
        assert_int_equal(sum, other_sum);
    }
}

static void test_plans_without_have_no_file(void **state)
{
    struct made with = {0}, without = {0};
    char path[SCRATCH_PATH_BYTES + 32];
    (void)state;
    made_begin(&without, 0, "auto");
    made_begin(&with, 20, "auto");
    assert_int_equal(without.part[0]->info.ranks.residual_slots, 0);
    assert_int_equal(without.part[0]->info.ranks.published_slots, 0);
    (void)snprintf(path, sizeof(path), "%s/rank-0/residuals.rec", without.run.out);
    FILE *f = fopen(path, "rb");
    assert_null(f);
    for (uint32_t r = 0; r < WORKERS; r++)
        check_same_files(without.part[r], with.part[r]);
    made_end(&with);
    made_end(&without);
}

static void test_records_round_trip_and_damage_is_refused(void **state)
{
    enum { N = 40, SLOTS = 100 };
    uint32_t slot[N], room[2 * N], read_slot[N];
    uint8_t whole[N], read_whole[N];
    unsigned char record[4096];
    const struct drps_residual_rows rows = {slot, whole, room, N};
    const struct drps_residual_rows read = {read_slot, read_whole, room, N};
    (void)state;
    for (uint64_t k = 0; k < 200; k++) {
        for (uint32_t i = 0; i < N; i++) {
            const uint64_t x = drps_rng_at(seed + k, i);
            slot[i] = x % 3 == 0 ? DRPS_NO_SLOT : k % 2 ? i * 2 : (uint32_t)(x >> 8) % SLOTS;
            whole[i] = slot[i] == DRPS_NO_SLOT || (x >> 40) % 4 == 0;
        }
        const size_t bytes = drps_residuals_encode(&rows, record);
        assert_true(bytes <= drps_residuals_encode_bound(N));
        assert_int_equal(drps_residuals_decode(record, bytes, SLOTS, &read, NULL), 0);
        assert_memory_equal(slot, read_slot, sizeof(slot));
        assert_memory_equal(whole, read_whole, sizeof(whole));
        for (size_t cut = 0; cut < bytes; cut++)
            assert_int_equal(drps_residuals_decode(record, cut, SLOTS, &read, NULL),
                             DRPS_E_CORRUPT);
        assert_int_equal(drps_residuals_decode(record, bytes, 1, &read, NULL), DRPS_E_CORRUPT);
        struct drps_residual_rows fewer = read;
        fewer.n = 1;
        assert_int_equal(drps_residuals_decode(record, bytes, SLOTS, &fewer, NULL), DRPS_E_CORRUPT);
        record[0] = 2;
        assert_int_equal(drps_residuals_decode(record, bytes, SLOTS, &read, NULL), DRPS_E_CORRUPT);
    }
}

static void test_residuals_are_of_several_workers(void **state)
{
    struct made m = {0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    scratch_begin(&m.scratch);
    const char *input = case_input(&m.scratch, "in", CASE_LIBSVM, 200, 80, seed);
    case_begin(&m.run, &m.scratch, input, "lor");
    m.run.options.own_slots = 1;
    m.run.options.workers = 2;
    m.run.options.residual_slots = 5;
    assert_int_equal(drps_index_run(drps_io_os(), &m.run.options, &m.run.result, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "a slot of its own"));
    drps_err_clear(&err);
    m.run.options.own_slots = 0;
    m.run.options.workers = 1;
    m.run.options.residual_slots = 5;
    assert_int_equal(drps_index_run(drps_io_os(), &m.run.options, &m.run.result, &err),
                     DRPS_E_CONFIG);
    assert_non_null(strstr(err.text, "2 workers"));
    scratch_end(&m.scratch);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_that_suffice_are_dense_numbers),
        cmocka_unit_test(test_each_row_can_have_a_slot_of_its_own),
        cmocka_unit_test(test_rows_of_a_net_have_slots),
        cmocka_unit_test(test_few_slots_go_to_rows_that_come_again_soon),
        cmocka_unit_test(test_slots_of_no_row_do_not_count),
        cmocka_unit_test(test_servers_know_who_has_copies),
        cmocka_unit_test(test_published_records_round_trip_and_damage_is_refused),
        cmocka_unit_test(test_plans_without_have_no_file),
        cmocka_unit_test(test_records_round_trip_and_damage_is_refused),
        cmocka_unit_test(test_residuals_are_of_several_workers),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
