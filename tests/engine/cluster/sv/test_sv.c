/* What ranks with all rows send each other, and how gradients are added up: messages come back as
 * they were, those that are not of their size are refused, and sums are those of a plain loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_rng.h"
#include "engine/cluster/drps_messages.h"
#include "engine/cluster/sv/message.h"
#include "engine/cluster/sv/sums.h"
#include "index/plan/codec/drps_list.h"

enum { DIM = 3, MOST = 40, ROWS = 100 };

static uint64_t seed = 20261124, drawn;

static uint64_t below(uint64_t n)
{
    return drps_rng_at(seed, drawn++) % n;
}

/* Strictly increasing numbers below ROWS; returns how many. */
static size_t draw_ids(uint32_t *ids)
{
    size_t n = 0;
    for (uint32_t id = 0; id < ROWS && n < MOST; id++)
        if (below(4) == 0) ids[n++] = id;
    return n;
}

/* ---- Messages ---- */

struct written {
    struct sv_message parts;
    unsigned char list[512], body[64];
    uint32_t ids[MOST];
    size_t n;
    uint64_t data[1024]; /* aligned */
    struct drps_net_message message;
};

static void write_message(int is_sparse, int touches, struct written *w)
{
    memset(w, 0, sizeof(*w));
    w->n = draw_ids(w->ids);
    for (size_t i = 0; i < sizeof(w->body); i++)
        w->body[i] = (unsigned char)below(256);
    w->parts = (struct sv_message){.n = is_sparse ? (uint32_t)w->n : 1 + (uint32_t)below(20),
                                   .dim = DIM,
                                   .is_sparse = is_sparse,
                                   .has_touches = touches,
                                   .list = {w->list, drps_list_encode(w->ids, w->n, w->list)},
                                   .body = {w->body, is_sparse ? 0 : 1 + (size_t)below(60)}};
    assert_true(sv_message_bytes(&w->parts) <= sizeof(w->data));
    memset(w->data, 0xee, sizeof(w->data));
    sv_message_begin(&w->parts, w->data);
    for (size_t i = 0; i < w->parts.n * (size_t)DIM; i++)
        w->parts.values[i] = (float)i;
    for (uint32_t i = 0; is_sparse && touches && i < w->parts.n; i++)
        w->parts.touches[i] = i + 1;
    w->message = (struct drps_net_message){.from = 1,
                                           .type = DRPS_MESSAGE_VECTORS,
                                           .data = w->data,
                                           .bytes = sv_message_bytes(&w->parts)};
}

static void test_messages_come_back_as_they_were(void **state)
{
    struct written w;
    (void)state;
    for (int i = 0; i < 200; i++) {
        const int is_sparse = i % 2, touches = i / 2 % 2;
        uint32_t ids[MOST];
        size_t n;
        write_message(is_sparse, touches, &w);
        struct sv_message m = {.dim = DIM, .is_sparse = is_sparse, .has_touches = touches};
        assert_int_equal(sv_message_read(&m, &w.message, NULL), 0);
        assert_int_equal(m.n, w.parts.n);
        assert_memory_equal(m.values, w.parts.values, m.n * DIM * sizeof(float));
        if (is_sparse && touches)
            assert_memory_equal(m.touches, w.parts.touches, m.n * sizeof(uint32_t));
        assert_int_equal(m.body.bytes, w.parts.body.bytes);
        assert_memory_equal(m.body.data, w.body, m.body.bytes);
        assert_int_equal(sv_message_ids(&m, ROWS, MOST, ids, &n, NULL), 0);
        assert_int_equal(n, w.n);
        assert_memory_equal(ids, w.ids, n * sizeof(*ids));
    }
}

/* A batch on its way to whoever computes it has no values yet. */
static void test_a_message_may_have_no_values(void **state)
{
    struct written w;
    struct sv_message m = {.dim = DIM};
    (void)state;
    for (int i = 0; i < 50; i++) {
        write_message(0, 0, &w);
        w.parts.n = 0;
        memset(w.data, 0xee, sizeof(w.data));
        sv_message_begin(&w.parts, w.data);
        w.message.bytes = sv_message_bytes(&w.parts);
        assert_int_equal(sv_message_read(&m, &w.message, NULL), 0);
        assert_int_equal(m.n, 0);
        assert_int_equal(m.list.bytes, w.parts.list.bytes);
        assert_memory_equal(m.list.data, w.list, m.list.bytes);
        assert_int_equal(m.body.bytes, w.parts.body.bytes);
        assert_memory_equal(m.body.data, w.body, m.body.bytes);
    }
}

static void test_messages_of_another_size_are_refused(void **state)
{
    struct written w;
    (void)state;
    for (int i = 0; i < 200; i++) {
        const struct sv_message empty = {.dim = DIM, .is_sparse = i % 2};
        struct sv_message m = empty;
        write_message(i % 2, 0, &w);
        for (int more = -8; more <= 8; more += 16) {
            struct drps_net_message other = w.message;
            other.bytes += (size_t)more;
            m = empty;
            assert_int_equal(sv_message_read(&m, &other, NULL), DRPS_E_PROTO);
        }
        for (size_t part = 0; part < 4; part++) { /* of the head */
            uint32_t head[4];
            memcpy(head, w.data, sizeof(head));
            const uint32_t before = head[part];
            head[part] = part == 3 ? 1 : UINT32_MAX - (uint32_t)below(9);
            memcpy(w.data, head, sizeof(head));
            m = empty;
            assert_int_equal(sv_message_read(&m, &w.message, NULL), DRPS_E_PROTO);
            head[part] = before;
            memcpy(w.data, head, sizeof(head));
        }
        for (size_t bytes = 0; bytes < 16; bytes++) {
            struct drps_net_message other = w.message;
            other.bytes = bytes;
            m = empty;
            assert_int_equal(sv_message_read(&m, &other, NULL), DRPS_E_PROTO);
        }
    }
}

static void test_lists_of_rows_that_are_not_there_are_refused(void **state)
{
    struct written w;
    uint32_t ids[MOST];
    size_t n;
    (void)state;
    do
        write_message(0, 0, &w);
    while (w.n < 2);
    struct sv_message m = {.dim = DIM};
    assert_int_equal(sv_message_read(&m, &w.message, NULL), 0);
    assert_int_equal(sv_message_ids(&m, w.ids[w.n - 1], MOST, ids, &n, NULL), DRPS_E_PROTO);
    assert_int_equal(sv_message_ids(&m, w.ids[w.n - 1] + 1, MOST, ids, &n, NULL), 0);
    assert_int_equal(sv_message_ids(&m, ROWS, w.n - 1, ids, &n, NULL), DRPS_E_PROTO);
    m.list.bytes--;
    assert_true(sv_message_ids(&m, ROWS, MOST, ids, &n, NULL) < 0);
    m.list.bytes = 3;
    assert_true(sv_message_ids(&m, ROWS, MOST, ids, &n, NULL) < 0);
}

/* ---- Sums ---- */

static void test_sums_are_those_of_a_plain_loop(void **state)
{
    enum { RANKS = 5 };
    struct sums s;
    (void)state;
    assert_int_equal(sums_open(&s, ROWS, DIM, 1, NULL), 0);
    for (int round = 0; round < 50; round++) {
        uint32_t ids[RANKS][MOST], touches[RANKS][MOST], count[ROWS] = {0};
        float grads[RANKS][MOST * DIM], plain[ROWS][DIM] = {{0}};
        size_t n[RANKS], rows = 0;
        sums_begin(&s);
        for (int r = 0; r < RANKS; r++) {
            n[r] = r == 2 ? 0 : draw_ids(ids[r]);
            for (size_t i = 0; i < n[r]; i++) {
                touches[r][i] = 1 + (uint32_t)below(9);
                for (int k = 0; k < DIM; k++)
                    grads[r][i * DIM + (size_t)k] = (float)below(1000) / 7;
            }
            sums_unite(&s, ids[r], n[r]);
        }
        sums_zero(&s);
        for (int r = 0; r < RANKS; r++) {
            sums_add(&s, ids[r], n[r], grads[r], touches[r]);
            for (size_t i = 0; i < n[r]; i++) {
                count[ids[r][i]] += touches[r][i];
                for (int k = 0; k < DIM; k++)
                    plain[ids[r][i]][k] += grads[r][i * DIM + (size_t)k];
            }
        }
        for (uint32_t id = 0; id < ROWS; id++) {
            if (!count[id]) continue;
            assert_int_equal(s.ids[rows], id);
            assert_int_equal(s.touches[rows], count[id]);
            assert_memory_equal(s.grads + rows * DIM, plain[id], sizeof(plain[id]));
            rows++;
        }
        assert_int_equal(s.n, rows);
    }
    sums_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_come_back_as_they_were),
        cmocka_unit_test(test_a_message_may_have_no_values),
        cmocka_unit_test(test_messages_of_another_size_are_refused),
        cmocka_unit_test(test_lists_of_rows_that_are_not_there_are_refused),
        cmocka_unit_test(test_sums_are_those_of_a_plain_loop),
    };
    if (argc > 1) seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
