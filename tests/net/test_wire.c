/* Frames and links: what is accepted, and that nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/drps_endian.h"
#include "net/drps_link.h"
#include "net/drps_wire.h"
#include "support/scratch.h"

static const uint8_t payload[] = "values";

static struct wire_head a_head(void)
{
    return (struct wire_head){.type = 17,
                              .part = DRPS_NET_SERVER,
                              .from = 2,
                              .to = 513,
                              .tag = 0x04030201,
                              .job_id = 0x1122334455667788,
                              .sequence = 5,
                              .round = 9,
                              .message_bytes = 106,
                              .offset = 100,
                              .incarnation = 0x0123456789abcdef};
}

static int decode(const uint8_t *head, size_t n, const void *data, size_t bytes,
                  struct wire_head *out)
{
    struct drps_err err = DRPS_ERR_INIT;
    const int rc = drps_wire_decode(head, n, data, bytes, out, &err);
    assert_true((rc == 0) == (err.code == 0));
    return rc;
}

static void test_wire_bytes_are_those_of_the_documentation(void **state)
{
    static const uint8_t expected[WIRE_HEAD_BYTES - 8] = {
        'D',  'R',  'P',  'W',  2,    0,    17,   1,    /* magic, version, type, part */
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, /* job */
        2,    0,    1,    2,    1,    2,    3,    4,    /* from, to, tag */
        5,    0,    0,    0,    0,    0,    0,    0,    /* sequence */
        9,    0,    0,    0,    0,    0,    0,    0,    /* round */
        106,  0,    0,    0,    0,    0,    0,    0,    /* message */
        100,  0,    0,    0,    0,    0,    0,    0,    /* offset */
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, /* incarnation */
    };
    const struct wire_head head = a_head();
    struct wire_head back;
    uint8_t bytes[WIRE_HEAD_BYTES], again[WIRE_HEAD_BYTES];
    (void)state;
    drps_wire_encode(&head, payload, 6, bytes);
    assert_memory_equal(bytes, expected, sizeof(expected));
    assert_int_equal(decode(bytes, sizeof(bytes), payload, 6, &back), 0);
    drps_wire_encode(&back, payload, 6, again);
    assert_memory_equal(again, bytes, sizeof(bytes));
}

static void test_wire_refuses_every_flipped_bit_and_every_cut(void **state)
{
    const struct wire_head head = a_head();
    struct wire_head back;
    uint8_t bytes[WIRE_HEAD_BYTES], data[6];
    (void)state;
    memcpy(data, payload, sizeof(data));
    drps_wire_encode(&head, data, sizeof(data), bytes);
    for (size_t bit = 0; bit < 8 * (WIRE_HEAD_BYTES + sizeof(data)); bit++) {
        uint8_t *at =
            bit < 8 * WIRE_HEAD_BYTES ? bytes + bit / 8 : data + bit / 8 - WIRE_HEAD_BYTES;
        *at ^= (uint8_t)(1u << bit % 8);
        const int rc = decode(bytes, sizeof(bytes), data, sizeof(data), &back);
        const int in_version = bit / 8 == 4 || bit / 8 == 5;
        assert_int_equal(rc, in_version ? DRPS_E_VERSION : DRPS_E_FORMAT);
        *at ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t n = 0; n < WIRE_HEAD_BYTES; n++) {
        uint8_t *exact = malloc(n + 1); /* so that a sanitizer sees a read beyond the end */
        assert_non_null(exact);
        memcpy(exact, bytes, n);
        uint8_t *cut = realloc(exact, n ? n : 1);
        assert_int_equal(decode(cut, n, data, sizeof(data), &back), DRPS_E_FORMAT);
        free(cut);
    }
    for (size_t n = 0; n < sizeof(data); n++)
        assert_int_equal(decode(bytes, sizeof(bytes), data, n, &back), DRPS_E_FORMAT);
    assert_int_equal(decode(bytes, sizeof(bytes), data, sizeof(data), &back), 0);
}

static void test_wire_refuses_fields_that_do_not_fit_together(void **state)
{
    static const struct {
        const char *name;
        struct wire_head head;
        size_t bytes;
    } cases[] = {
        {"type 0", {.type = 0, .incarnation = 1}, 0},
        {"unknown type of net's own", {.type = WIRE_TYPES, .incarnation = 1}, 0},
        {"part", {.type = 16, .part = WIRE_PARTS, .incarnation = 1}, 0},
        {"beyond the message", {.type = 16, .message_bytes = 5, .incarnation = 1}, 6},
        {"offset beyond", {.type = 16, .message_bytes = 5, .offset = 6, .incarnation = 1}, 0},
        {"offset and bytes wrap",
         {.type = 16, .message_bytes = 5, .offset = UINT64_MAX - 2, .incarnation = 1},
         6},
        {"message too large",
         {.type = 16, .message_bytes = DRPS_NET_MESSAGE_MAX + 1, .incarnation = 1},
         6},
        {"empty piece", {.type = 16, .message_bytes = 5, .incarnation = 1}, 0},
        {"piece too large",
         {.type = 16, .message_bytes = 1 << 24, .incarnation = 1},
         WIRE_PIECE_BYTES + 1},
        {"control in pieces", {.type = WIRE_BYE, .message_bytes = 7, .incarnation = 1}, 6},
        {"group type for a part",
         {.type = WIRE_GATHER, .part = DRPS_NET_WORKER, .incarnation = 1},
         0},
        {"caller's type for the group", {.type = 16, .part = WIRE_GROUP, .incarnation = 1}, 0},
        {"caller's type for no process", {.type = 16}, 0},
        {"ping for no process", {.type = WIRE_PING}, 0},
        {"greeting for a process", {.type = WIRE_HELLO, .incarnation = 1}, 0},
        {"greeting that is not the first", {.type = WIRE_HELLO, .sequence = 1}, 0},
    };
    uint8_t bytes[WIRE_HEAD_BYTES], *data = calloc(1, WIRE_PIECE_BYTES + 1);
    struct wire_head back;
    (void)state;
    assert_non_null(data);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        drps_wire_encode(&cases[i].head, data, cases[i].bytes, bytes);
        const int rc = decode(bytes, sizeof(bytes), data, cases[i].bytes, &back);
        if (rc != DRPS_E_PROTO) fail_msg("%s: %d", cases[i].name, rc);
    }
    free(data);
}

static void test_wire_names_another_version_and_its_sender(void **state)
{
    const struct wire_head head = a_head();
    struct wire_head back;
    struct drps_err err = DRPS_ERR_INIT;
    uint8_t bytes[WIRE_HEAD_BYTES];
    (void)state;
    drps_wire_encode(&head, NULL, 0, bytes);
    bytes[4] = 7;
    assert_int_equal(drps_wire_decode(bytes, 18, NULL, 0, &back, &err), DRPS_E_VERSION);
    assert_non_null(strstr(err.text, "speaks version 7"));
    assert_int_equal(back.from, head.from);
    assert_int_equal(back.job_id, head.job_id);
}

static void test_wire_greeting_keeps_its_fields(void **state)
{
    const struct wire_hello hello = {3, 8, 77, {1, UINT64_C(1) << 35, 3}, {1, 2, 3, [31] = 9}};
    struct wire_hello back;
    struct drps_err err = DRPS_ERR_INIT;
    uint8_t bytes[WIRE_HELLO_BYTES];
    (void)state;
    drps_wire_hello_encode(&hello, bytes);
    assert_int_equal(drps_wire_hello_decode(bytes, sizeof(bytes), &back, &err), 0);
    assert_memory_equal(&back, &hello, sizeof(hello));
    assert_int_equal(drps_wire_hello_decode(bytes, sizeof(bytes) - 1, &back, &err), DRPS_E_PROTO);
    bytes[16 + 7] = 1; /* of the worker's messages */
    assert_int_equal(drps_wire_hello_decode(bytes, sizeof(bytes), &back, NULL), DRPS_E_PROTO);
    bytes[16 + 7] = 0;
    bytes[8] = 0; /* the incarnation */
    assert_int_equal(drps_wire_hello_decode(bytes, sizeof(bytes), &back, NULL), DRPS_E_PROTO);
}

/* --- links --- */

static const uint64_t limits[WIRE_PARTS] = {100, 100, 100, 100};
static const uint64_t none_taken[WIRE_PARTS];
static const struct drps_link_rules rules = {limits, none_taken, 2};

static void test_link_takes_each_frame_once_and_misses_none(void **state)
{
    struct drps_link link = {0};
    struct drps_err err = DRPS_ERR_INIT;
    (void)state;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(drps_link_number(&link, &(struct wire_head){.sequence = i}, &err), 1);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(drps_link_number(&link, &(struct wire_head){.sequence = i}, &err), 0);
    assert_int_equal(drps_link_number(&link, &(struct wire_head){.sequence = 4}, &err),
                     DRPS_E_PROTO);
    assert_non_null(strstr(err.text, "frame 4 came where 3 was due"));
    assert_int_equal(drps_link_number(&link, &(struct wire_head){.sequence = 3}, NULL), 1);
    drps_link_destroy(&link);
}

/* Two messages to different parts at once, cut at random. */
static void test_link_puts_messages_together(void **state)
{
    struct random_source r = random_begin("link");
    (void)state;
    for (int lap = 0; lap < 200; lap++) {
        struct drps_link link = {0};
        uint64_t at[2] = {0, 0};
        int whole = 0;
        while (whole < 2) {
            const uint8_t part = (uint8_t)random_below(&r, 2);
            const uint64_t total = part ? 100 : 37;
            if (at[part] == total) continue;
            const uint64_t n = 1 + random_below(&r, total - at[part]);
            uint8_t data[100];
            for (uint64_t i = 0; i < n; i++)
                data[i] = (uint8_t)(at[part] + i + part);
            const struct wire_head head = {.type = 20,
                                           .part = part,
                                           .from = 1,
                                           .tag = 5,
                                           .round = 7,
                                           .message_bytes = total,
                                           .offset = at[part]};
            struct net_message *m;
            assert_int_equal(
                drps_link_add(&link, &rules, &head, data, (size_t)n, NULL, NULL, &m, NULL), 0);
            at[part] += n;
            assert_true((m != NULL) == (at[part] == total));
            if (!m) continue;
            assert_int_equal(m->part, part);
            assert_int_equal(m->pub.type, 20);
            assert_int_equal(m->pub.tag, 5);
            assert_int_equal(m->pub.round, 7);
            assert_int_equal(m->pub.bytes, total);
            for (uint64_t i = 0; i < total; i++)
                assert_int_equal(((const uint8_t *)m->pub.data)[i], (uint8_t)(i + part));
            drps_net_message_free(&m->pub);
            whole++;
        }
        drps_link_destroy(&link);
    }
}

static void test_link_refuses_what_was_not_agreed(void **state)
{
    static const struct wire_head first = {.type = 20, .message_bytes = 50};
    static const struct {
        const char *name;
        int after_first; /* 10 bytes of it */
        struct wire_head head;
    } cases[] = {
        {"larger than the receiver takes", 0, {.type = 20, .message_bytes = 101}},
        {"begins in the middle", 0, {.type = 20, .message_bytes = 50, .offset = 10}},
        {"a gap", 1, {.type = 20, .message_bytes = 50, .offset = 11}},
        {"a piece again", 1, {.type = 20, .message_bytes = 50, .offset = 0}},
        {"another size", 1, {.type = 20, .message_bytes = 51, .offset = 10}},
        {"another type", 1, {.type = 21, .message_bytes = 50, .offset = 10}},
        {"another round", 1, {.type = 20, .message_bytes = 50, .offset = 10, .round = 1}},
        {"another tag", 1, {.type = 20, .message_bytes = 50, .offset = 10, .tag = 1}},
    };
    static const uint8_t data[10];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct drps_link link = {0};
        struct net_message *m;
        if (cases[i].after_first)
            assert_int_equal(drps_link_add(&link, &rules, &first, data, 10, NULL, NULL, &m, NULL),
                             0);
        const int rc = drps_link_add(&link, &rules, &cases[i].head, data, 10, NULL, NULL, &m, NULL);
        if (rc != DRPS_E_PROTO || m) fail_msg("%s: %d", cases[i].name, rc);
        drps_link_destroy(&link);
    }
}

static void test_link_refuses_more_messages_than_may_wait(void **state)
{
    static const struct wire_head head = {.type = 20, .part = 1};
    uint64_t taken[WIRE_PARTS] = {0};
    const struct drps_link_rules counted = {limits, taken, 2};
    struct drps_link link = {0};
    struct net_message *m;
    (void)state;
    for (int i = 0; i < 5; i++) {
        const int rc = drps_link_add(&link, &counted, &head, NULL, 0, NULL, NULL, &m, NULL);
        assert_int_equal(rc, i == 2 || i == 4 ? DRPS_E_PROTO : 0);
        if (m) drps_net_message_free(&m->pub);
        if (i == 2) taken[1] = 1; /* room for one more */
    }
    drps_link_destroy(&link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_bytes_are_those_of_the_documentation),
        cmocka_unit_test(test_wire_refuses_every_flipped_bit_and_every_cut),
        cmocka_unit_test(test_wire_refuses_fields_that_do_not_fit_together),
        cmocka_unit_test(test_wire_names_another_version_and_its_sender),
        cmocka_unit_test(test_wire_greeting_keeps_its_fields),
        cmocka_unit_test(test_link_takes_each_frame_once_and_misses_none),
        cmocka_unit_test(test_link_puts_messages_together),
        cmocka_unit_test(test_link_refuses_what_was_not_agreed),
        cmocka_unit_test(test_link_refuses_more_messages_than_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
