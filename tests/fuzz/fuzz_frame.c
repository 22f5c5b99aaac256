/*
 * Fuzz target of frames and of putting them together: any bytes give errors or messages within the
 * agreed bounds, with the bytes that were sent.
 *
 * Input: frames one after another, each a byte of flags (1: make version and checksum right, and
 * the sequence due, so that the bytes behind them are reached), a byte n, a header of 72 bytes and
 * n bytes of payload. A short rest is a frame that is cut.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/drps_link.h"
#include "support/fuzz_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 600, QUEUE = 2 };

struct run {
    struct drps_link link;
    uint64_t taken[WIRE_PARTS];
    uint8_t sent[WIRE_PARTS][LIMIT]; /* of the message that is under way */
    int broken;
};

/* Decode as the header says it is, and write it again with what makes it a valid one. */
static void repair(uint8_t *head, const uint8_t *payload, size_t bytes, uint64_t sequence)
{
    struct wire_head h = {.type = head[6], .part = head[7]};
    memcpy(&h.job_id, head + 8, 8);
    memcpy(&h.from, head + 16, 2);
    memcpy(&h.to, head + 18, 2);
    memcpy(&h.tag, head + 20, 4);
    memcpy(&h.round, head + 32, 8);
    memcpy(&h.message_bytes, head + 40, 8);
    memcpy(&h.offset, head + 48, 8);
    memcpy(&h.incarnation, head + 56, 8);
    h.sequence = sequence;
    drps_wire_encode(&h, payload, bytes, head);
}

static void check_message(struct run *run, struct net_message *m)
{
    CHECK(m->part < WIRE_PARTS && m->pub.bytes <= LIMIT);
    CHECK(m->pub.bytes == 0 || memcmp(m->pub.data, run->sent[m->part], m->pub.bytes) == 0);
    run->taken[m->part]++;
    drps_net_message_free(&m->pub);
}

static void add(struct run *run, const struct wire_head *h, const uint8_t *payload, size_t bytes)
{
    static const uint64_t limits[WIRE_PARTS] = {LIMIT, LIMIT, LIMIT, LIMIT};
    const struct drps_link_rules rules = {limits, run->taken, QUEUE};
    struct drps_err err = DRPS_ERR_INIT;
    struct net_message *m;
    const int rc = drps_link_add(&run->link, &rules, h, payload, bytes, NULL, NULL, &m, &err);
    CHECK((rc == 0) == (err.code == 0) && (rc == 0 || !m));
    if (rc < 0) {
        CHECK(rc == DRPS_E_PROTO && err.text[0]);
        run->broken = 1;
        return;
    }
    CHECK(h->offset + bytes <= LIMIT);
    if (bytes) memcpy(run->sent[h->part] + h->offset, payload, bytes);
    if (m) check_message(run, m);
}

static void frame(struct run *run, const uint8_t *head, size_t head_bytes, const uint8_t *payload,
                  size_t bytes)
{
    struct drps_err err = DRPS_ERR_INIT;
    struct wire_head h;
    struct wire_hello hello;
    uint8_t again[WIRE_HEAD_BYTES];
    const int rc = drps_wire_decode(head, head_bytes, payload, bytes, &h, &err);
    CHECK((rc == 0) == (err.code == 0));
    if (rc < 0) {
        CHECK((rc == DRPS_E_FORMAT || rc == DRPS_E_VERSION || rc == DRPS_E_PROTO) && err.text[0]);
        return;
    }
    drps_wire_encode(&h, payload, bytes, again);
    CHECK(memcmp(head, again, sizeof(again)) == 0);
    const int next = drps_link_number(&run->link, &h, &err);
    if (next < 0) run->broken = 1;
    if (next != 1) return;
    if (h.type == WIRE_HELLO) (void)!drps_wire_hello_decode(payload, bytes, &hello, NULL);
    if (!drps_wire_is_control(h.type)) add(run, &h, payload, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct run run;
    memset(&run, 0, sizeof(run));
    while (size >= 2 && !run.broken) {
        const int fix = data[0] & 1;
        size_t n = data[1];
        data += 2;
        size -= 2;
        const size_t head_bytes = size < WIRE_HEAD_BYTES ? size : WIRE_HEAD_BYTES;
        if (n > size - head_bytes) n = size - head_bytes;
        uint8_t *head = malloc(head_bytes ? head_bytes : 1); /* exact, for sanitizers */
        CHECK(head);
        memcpy(head, data, head_bytes);
        if (fix && head_bytes == WIRE_HEAD_BYTES)
            repair(head, data + head_bytes, n, run.link.sequence);
        frame(&run, head, head_bytes, data + head_bytes, n);
        free(head);
        data += head_bytes + n;
        size -= head_bytes + n;
    }
    drps_link_destroy(&run.link);
    return 0;
}

#ifdef DRPS_FUZZ_MAIN
#include "support/fuzz_main.h"
#endif
