/*
 * Plans that hand rows on, run by hand: every row is where its use says it is, at one place at a
 * time, and at its server when training is over; workers keep no more than they may; and where they
 * may keep all, no other choice moves less, by trying all of them.
 *
 *   test_handed_on [seed]
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
#include "index/plan/drps_handed.h"
#include "index/plan/drps_round.h"
#include "support/index_case.h"

enum { RANKS_MOST = 5, ROWS_MOST = 4096, USES_MOST = 64 };

static uint64_t seed = 20240607;

/* ---- A plan ---- */

struct made {
    struct scratch scratch;
    struct case_run run;
    uint32_t ranks;
    struct drps_plan *part[RANKS_MOST];
    struct drps_handed_rows rows[RANKS_MOST];  /* of a round */
    uint32_t place_row[RANKS_MOST][ROWS_MOST]; /* the rows of each worker's batch */
    uint32_t shares[RANKS_MOST][RANKS_MOST];
    uint8_t use[RANKS_MOST][RANKS_MOST][ROWS_MOST]; /* [server][worker], in the order of rows */
};

struct wish {
    const char *algo, *partition, *samples;
    enum case_format format;
    uint32_t workers, servers;
    uint64_t slots;
    uint32_t states;
};

static void made_begin(struct made *m, const struct wish *wish)
{
    struct drps_err err = DRPS_ERR_INIT;
    memset(m, 0, sizeof(*m));
    scratch_begin(&m->scratch);
    const char *input = case_input(&m->scratch, "in", wish->format, 900, 300, seed);
    case_begin(&m->run, &m->scratch, input, wish->algo);
    m->run.options.workers = wish->workers;
    m->run.options.servers = wish->servers;
    m->run.options.partition = wish->partition;
    m->run.options.samples = wish->samples;
    m->run.options.batch_size = 10;
    m->run.options.test_fraction = 0.2;
    m->run.options.hand_on = wish->slots;
    m->run.options.hand_on_states = wish->states;
    case_compile(&m->run);
    case_verify(m->run.out);
    m->ranks = m->run.result.info.ranks.count;
    for (uint32_t r = 0; r < m->ranks; r++)
        if (drps_plan_open_rank(drps_io_os(), m->run.out, r, &m->part[r], &err) < 0)
            fail_msg("%s", err.text);
}

static void made_end(struct made *m)
{
    for (uint32_t r = 0; r < m->ranks; r++)
        drps_plan_close(m->part[r]);
    scratch_end(&m->scratch);
}

/* ---- A round of it ---- */

static void *read_record(const struct drps_plan *plan, const char *name, uint32_t kind, uint64_t i,
                         size_t *bytes_out)
{
    struct drps_recfile *file;
    struct drps_err err = DRPS_ERR_INIT;
    if (drps_plan_file(plan, name, kind, &file, &err) < 0) fail_msg("%s", err.text);
    *bytes_out = (size_t)drps_recfile_bytes(file, i);
    void *data = malloc((size_t)drps_recfile_run_bytes(file, i, 1) + 8);
    assert_int_equal(drps_recfile_read(file, i, 1, data, NULL), 0);
    drps_recfile_close(file);
    return data;
}

/* Read what a server says of a round: each worker's rows of it, and what becomes of them. */
static void read_server(struct made *m, uint32_t s, uint64_t round, size_t n[RANKS_MOST])
{
    static uint32_t ids[ROWS_MOST], positions[RANKS_MOST * ROWS_MOST];
    static uint32_t room[2 * RANKS_MOST * ROWS_MOST];
    static uint8_t uses[RANKS_MOST * ROWS_MOST];
    size_t bytes, part[RANKS_MOST + 1];
    void *record = read_record(m->part[s], "rows.rec", DRPS_KIND_ROWS, round, &bytes);
    const uint32_t rows = drps_list_count(record);
    assert_int_equal(drps_list_decode(record, bytes, ids, NULL, NULL), 0);
    free(record);
    record = read_record(m->part[s], "positions.rec", DRPS_KIND_POSITIONS, round, &bytes);
    assert_int_equal(drps_positions_decode(record, bytes, m->ranks, rows, RANKS_MOST * ROWS_MOST,
                                           positions, part, NULL),
                     0);
    free(record);
    const struct drps_lent_rows lent = {uses, room, (uint32_t)part[m->ranks]};
    record = read_record(m->part[s], "lent.rec", DRPS_KIND_LENT, round, &bytes);
    assert_int_equal(drps_lent_decode(record, bytes, &lent, NULL), 0);
    free(record);
    for (uint32_t w = 0; w < m->ranks; w++) {
        m->shares[w][s] = (uint32_t)(part[w + 1] - part[w]);
        for (size_t i = part[w]; i < part[w + 1]; i++) {
            m->use[s][w][i - part[w]] = uses[i];
            m->place_row[w][n[w]++] =
                (uint32_t)m->part[s]->info.ranks.first_row + ids[positions[i]];
        }
    }
}

static void read_worker(struct made *m, uint32_t w, uint64_t round, size_t rows)
{
    const struct drps_handed_most most = {rows, m->part[w]->info.ranks.handed.slots, m->ranks, w};
    struct drps_err err = DRPS_ERR_INIT;
    size_t bytes;
    assert_int_equal(drps_handed_allocate(&m->rows[w], &most, NULL), 0);
    void *record = read_record(m->part[w], "handed.rec", DRPS_KIND_HANDED, round, &bytes);
    if (drps_handed_decode(record, bytes, &most, &m->rows[w], &err) < 0) fail_msg("%s", err.text);
    free(record);
}

/* ---- Where rows are ---- */

#define AT_SERVER UINT32_MAX

struct places {
    uint32_t worker[ROWS_MOST], slot[ROWS_MOST]; /* of each row */
    struct {
        uint32_t row, from, to;
    } under_way[ROWS_MOST]; /* in the order in which they were sent */
    size_t under_way_n;
    uint64_t moved; /* in rows' parameters: half of a plain use, times 2 */
};

/* Rows that were handed on after the round before are put to slots. */
static void arrive(struct made *m, struct places *p, uint32_t w)
{
    const struct drps_handed_rows *r = &m->rows[w];
    size_t next[RANKS_MOST] = {0};
    size_t arrived = 0;
    for (uint32_t i = 0; i < r->arrive_n; i++) {
        const uint32_t from = r->arrive_from[i];
        size_t *at = &next[from];
        while (*at < p->under_way_n &&
               (p->under_way[*at].from != from || p->under_way[*at].to != w))
            ++*at;
        assert_true(*at < p->under_way_n);
        const uint32_t row = p->under_way[(*at)++].row;
        for (uint32_t other = 0; other < ROWS_MOST; other++)
            assert_false(p->worker[other] == w && p->slot[other] == r->arrive_slot[i]);
        p->worker[row] = w;
        p->slot[row] = r->arrive_slot[i];
        arrived++;
    }
    for (size_t i = 0; i < p->under_way_n; i++)
        arrived -= p->under_way[i].to == w;
    assert_int_equal(arrived, 0);
}

/* What server and worker say of a use is the same. Returns the worker's number of the row, or -1.
 */
static int64_t of_use(const struct made *m, uint32_t w, uint32_t s, size_t i, size_t place)
{
    const struct drps_handed_rows *r = &m->rows[w];
    const uint8_t use = m->use[s][w][i];
    for (uint32_t k = 0; k < r->used_n; k++) {
        if (r->place[k] != place) continue;
        assert_int_equal(use, DRPS_LENT_AWAY | (r->taken[k] ? DRPS_LENT_GIVEN : 0) |
                                  (r->to[k] == DRPS_HANDED_RETURNED ? DRPS_LENT_RETURNED : 0));
        return k;
    }
    assert_int_equal(use, 0);
    return -1;
}

/* A use: the row is where it says, and goes where it says. */
static void check_use(struct made *m, struct places *p, uint32_t w, uint32_t s, size_t place,
                      int64_t k, uint32_t cost)
{
    const struct drps_handed_rows *r = &m->rows[w];
    const uint32_t row = m->place_row[w][place];
    if (k < 0) {
        assert_int_equal(p->worker[row], AT_SERVER);
        p->moved += s == w ? 0 : 2;
        return;
    }
    assert_int_not_equal(s, w);
    if (r->taken[k]) {
        assert_int_equal(p->worker[row], AT_SERVER);
        p->worker[row] = w;
        p->slot[row] = r->slot[k];
        p->moved += cost;
    }
    assert_int_equal(p->worker[row], w);
    assert_int_equal(p->slot[row], r->slot[k]);
}

/* Rows go after all uses of the round: other rows of it may not get their slots. */
static void go(struct made *m, struct places *p, uint32_t w, size_t place, int64_t k, uint32_t cost)
{
    const struct drps_handed_rows *r = &m->rows[w];
    const uint32_t row = m->place_row[w][place];
    if (k < 0 || r->to[k] == DRPS_HANDED_KEPT) return;
    p->worker[row] = AT_SERVER;
    p->moved += cost;
    if (r->to[k] == DRPS_HANDED_RETURNED) return;
    p->worker[row] = m->ranks; /* under way */
    p->under_way[p->under_way_n].row = row;
    p->under_way[p->under_way_n].from = w;
    p->under_way[p->under_way_n++].to = r->to[k];
}

static void check_kept(const struct made *m, const struct places *p, uint64_t most)
{
    uint64_t kept[RANKS_MOST] = {0};
    for (uint32_t row = 0; row < ROWS_MOST; row++)
        if (p->worker[row] < m->ranks) kept[p->worker[row]]++;
    for (size_t i = 0; i < p->under_way_n; i++)
        kept[p->under_way[i].to]++;
    for (uint32_t w = 0; w < m->ranks; w++)
        assert_true(kept[w] <= most);
}

static void run_round(struct made *m, struct places *p, uint64_t round, const struct wish *wish)
{
    size_t n[RANKS_MOST] = {0};
    for (uint32_t s = 0; s < m->ranks; s++)
        read_server(m, s, round, n);
    for (uint32_t w = 0; w < m->ranks; w++)
        read_worker(m, w, round, n[w]);
    for (uint32_t w = 0; w < m->ranks; w++)
        arrive(m, p, w);
    p->under_way_n = 0;
    for (int after = 0; after < 2; after++)
        for (uint32_t w = 0; w < m->ranks; w++)
            for (uint32_t s = 0, place = 0; s < m->ranks; s++)
                for (uint32_t i = 0; i < m->shares[w][s]; i++, place++) {
                    const int64_t k = of_use(m, w, s, i, place);
                    if (after)
                        go(m, p, w, place, k, 1 + wish->states);
                    else
                        check_use(m, p, w, s, place, k, 1 + wish->states);
                }
    check_kept(m, p, wish->slots);
    for (uint32_t w = 0; w < m->ranks; w++)
        drps_handed_free(&m->rows[w]);
}

/* ---- The least that can move ---- */

/* The uses of a row, in rounds. */
struct uses {
    uint32_t n;
    uint32_t worker[USES_MOST]; /* AT_SERVER: several, or the row's own */
    uint32_t remote[USES_MOST]; /* workers of other ranks */
};

/* The least from use i on, of a row that its server has (holder AT_SERVER) or a worker. Tries all
 * choices; equal questions come often, and are remembered. */
static uint32_t least(const struct uses *u, uint32_t i, uint32_t holder, uint32_t cost,
                      uint32_t memo[USES_MOST + 1][RANKS_MOST + 1])
{
    uint32_t *known = &memo[i][holder == AT_SERVER ? RANKS_MOST : holder];
    if (*known != UINT32_MAX) return *known;
    const uint32_t home = holder == AT_SERVER ? 0 : cost; /* what it costs to return it first */
    uint32_t best = home;
    if (i < u->n) {
        best = home + 2 * u->remote[i] + least(u, i + 1, AT_SERVER, cost, memo);
        const uint32_t w = u->worker[i];
        if (w != AT_SERVER) {
            const uint32_t there = (holder == w ? 0 : cost) + least(u, i + 1, w, cost, memo);
            if (there < best) best = there;
        }
    }
    return *known = best;
}

static struct uses all_uses[ROWS_MOST];

static void collect(struct made *m, uint64_t round)
{
    static uint8_t by[ROWS_MOST], own[ROWS_MOST];
    static uint32_t who[ROWS_MOST];
    size_t n[RANKS_MOST] = {0};
    memset(by, 0, sizeof(by));
    memset(own, 0, sizeof(own));
    for (uint32_t s = 0; s < m->ranks; s++) {
        size_t before[RANKS_MOST];
        memcpy(before, n, sizeof(n));
        read_server(m, s, round, n);
        for (uint32_t w = 0; w < m->ranks; w++)
            for (size_t i = before[w]; i < n[w]; i++) {
                const uint32_t row = m->place_row[w][i];
                by[row]++;
                own[row] |= s == w;
                who[row] = w;
            }
    }
    for (uint32_t row = 0; row < ROWS_MOST; row++) {
        struct uses *u = &all_uses[row];
        if (!by[row]) continue;
        assert_true(u->n < USES_MOST);
        u->worker[u->n] = by[row] == 1 && !own[row] && row ? who[row] : AT_SERVER;
        u->remote[u->n++] = by[row] - own[row];
    }
}

static uint64_t least_of_all(struct made *m, uint32_t cost)
{
    static uint32_t memo[USES_MOST + 1][RANKS_MOST + 1];
    uint64_t sum = 0;
    memset(all_uses, 0, sizeof(all_uses));
    for (uint64_t t = 0; t < m->part[0]->info.batches; t++)
        collect(m, t);
    for (uint32_t row = 0; row < ROWS_MOST; row++) {
        memset(memo, 0xff, sizeof(memo));
        sum += least(&all_uses[row], 0, AT_SERVER, cost, memo);
    }
    return sum;
}

/* ---- Plans ---- */

static void check_wish(const struct wish *wish)
{
    static struct made m;
    static struct places p;
    struct drps_plan_handed sum = {0};
    uint64_t plain = 0;
    made_begin(&m, wish);
    memset(&p, 0, sizeof(p));
    memset(p.worker, 0xff, sizeof(p.worker));
    for (uint64_t t = 0; t < m.part[0]->info.batches; t++)
        run_round(&m, &p, t, wish);
    for (uint32_t row = 0; row < ROWS_MOST; row++)
        assert_int_equal(p.worker[row], AT_SERVER);
    for (uint32_t r = 0; r < m.ranks; r++) {
        drps_plan_handed_add(&sum, &m.part[r]->info.ranks.handed);
        plain += 2 * m.part[r]->info.ranks.pulled_rows;
    }
    assert_memory_equal(&sum, &m.run.result.info.ranks.handed, sizeof(sum));
    const uint32_t cost = 1 + wish->states;
    assert_int_equal(p.moved,
                     plain - 2 * sum.used + cost * (sum.taken + sum.returned + sum.handed));
    assert_int_equal(p.moved * m.part[0]->info.dim,
                     drps_plan_moved_values(&m.run.result.info, 1, wish->states));
    const uint64_t best = least_of_all(&m, cost);
    if (wish->slots == UINT64_MAX)
        assert_int_equal(p.moved, best);
    else
        assert_true(p.moved >= best);
    assert_true(p.moved < plain);
    made_end(&m);
}

static void test_rows_are_where_their_uses_say(void **state)
{
    static const struct wish wishes[] = {
        {"lor", "range", NULL, CASE_LIBSVM, 2, 0, UINT64_MAX, 0},
        {"lor", "hash", NULL, CASE_LIBSVM, 4, 0, UINT64_MAX, 1},
        {"fm", "hash", NULL, CASE_LIBSVM, 3, 0, 10, 0},
        {"fm", "range", NULL, CASE_LIBSVM, 3, 0, 1, 1},
        {"lmf", "auto", "placed", CASE_RATINGS, 4, 0, UINT64_MAX, 0},
        {"lmf", "auto", "dealt", CASE_RATINGS, 3, 0, 3, 0},
        {"lmf", "hash", NULL, CASE_RATINGS, 3, 2, UINT64_MAX, 1},
        {"lor", "hash", NULL, CASE_LIBSVM, 2, 4, 6, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++)
        check_wish(&wishes[i]);
}

/* ---- What is refused, and what stays as it was ---- */

static void check_refused(struct case_run *run, const char *why)
{
    struct drps_err err = DRPS_ERR_INIT;
    assert_int_equal(drps_index_run(drps_io_os(), &run->options, &run->result, &err),
                     DRPS_E_CONFIG);
    if (!strstr(err.text, why)) fail_msg("%s", err.text);
}

static void test_plans_that_cannot_hand_on_are_refused(void **state)
{
    struct scratch s;
    struct case_run run;
    (void)state;
    scratch_begin(&s);
    case_begin(&run, &s, case_input(&s, "in", CASE_RATINGS, 300, 60, seed), "lmf");
    run.options.out = run.out;
    run.options.hand_on = 5;
    check_refused(&run, "2 workers or more");
    run.options.workers = 2;
    run.options.order = "grid";
    check_refused(&run, "circulate");
    run.options.order = NULL;
    run.options.residual_slots = 5;
    check_refused(&run, "residual slots");
    scratch_end(&s);
}

/* Everything but the two files is as in a plan without. */
static void test_the_rest_of_a_plan_is_as_without(void **state)
{
    static const char *const names[] = {"data.rec", "rows.rec", "shares.rec", "positions.rec",
                                        "slots.rec"};
    static const struct wish wishes[] = {
        {"lor", "hash", NULL, CASE_LIBSVM, 3, 0, UINT64_MAX, 1},
        {"lor", "hash", NULL, CASE_LIBSVM, 3, 0, 0, 0},
    };
    static struct made m[2];
    (void)state;
    for (size_t i = 0; i < 2; i++)
        made_begin(&m[i], &wishes[i]);
    for (size_t f = 0; f < sizeof(names) / sizeof(*names); f++) {
        uint64_t bytes[2], sum[2];
        for (size_t i = 0; i < 2; i++)
            assert_int_equal(drps_plan_listed(m[i].part[1], names[f], &bytes[i], &sum[i], NULL), 0);
        assert_int_equal(sum[0], sum[1]);
    }
    assert_int_equal(m[1].part[1]->info.ranks.handed.slots, 0);
    assert_string_not_equal(m[0].run.result.info.ranks.whole, m[1].run.result.info.ranks.whole);
    for (size_t i = 0; i < 2; i++)
        made_end(&m[i]);
}

/* ---- Records ---- */

static uint32_t draw(uint64_t *at, uint32_t n)
{
    return (uint32_t)(drps_rng_at(seed, (*at)++) % n);
}

/* Random bytes, and records with some bytes changed: whatever comes out lies within its bounds. */
static void test_hostile_records_are_refused_or_within_bounds(void **state)
{
    enum { ROWS = 60, SLOTS = 40, RANKS = 4, BYTES = 4096 };
    static unsigned char packed[BYTES];
    const struct drps_handed_most most = {ROWS, SLOTS, RANKS, 1};
    struct drps_handed_rows rows;
    uint64_t at = 0;
    unsigned refused = 0;
    (void)state;
    assert_int_equal(drps_handed_allocate(&rows, &most, NULL), 0);
    for (unsigned trial = 0; trial < 20000; trial++) {
        rows.arrive_n = rows.used_n = 0;
        for (uint32_t i = 0; i < ROWS; i++) {
            if (draw(&at, 2)) continue;
            const uint32_t n = rows.used_n++, fate = draw(&at, 4);
            rows.place[n] = i;
            rows.slot[n] = trial % 2 ? n : draw(&at, SLOTS);
            rows.taken[n] = (uint8_t)draw(&at, 2);
            rows.to[n] = fate == 1 ? 2 : fate == 2 ? DRPS_HANDED_RETURNED : DRPS_HANDED_KEPT;
        }
        assert_true(drps_handed_encode_bound(&rows) <= BYTES);
        const size_t bytes = drps_handed_encode(&rows, packed);
        for (unsigned k = 1 + draw(&at, 3); k > 0; k--)
            packed[draw(&at, (uint32_t)bytes)] ^= (unsigned char)(1 << draw(&at, 8));
        unsigned char *exact = malloc(bytes); /* reading beyond it is seen */
        memcpy(exact, packed, bytes);
        if (drps_handed_decode(exact, bytes - draw(&at, 2), &most, &rows, NULL) < 0) refused++;
        free(exact);
        assert_true(rows.used_n <= ROWS && rows.arrive_n <= SLOTS);
        for (uint32_t i = 0; i < rows.used_n; i++)
            assert_true(rows.place[i] < ROWS && rows.slot[i] < SLOTS);
    }
    assert_true(refused > 10000);
    drps_handed_free(&rows);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_where_their_uses_say),
        cmocka_unit_test(test_plans_that_cannot_hand_on_are_refused),
        cmocka_unit_test(test_the_rest_of_a_plan_is_as_without),
        cmocka_unit_test(test_hostile_records_are_refused_or_within_bounds),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
