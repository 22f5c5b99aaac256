/* Frames of one peer, in their order, to messages. It needs memory alone; drps_link.h has the idea.
 */
#include "net/drps_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void drps_link_destroy(struct drps_link *link)
{
    for (size_t i = 0; i < WIRE_PARTS; i++)
        if (link->parts[i].message) drps_net_message_free(&link->parts[i].message->pub);
}

int drps_link_number(struct drps_link *link, const struct wire_head *head, struct drps_err *err)
{
    if (head->sequence < link->sequence) return 0;
    if (head->sequence > link->sequence)
        return drps_err_set(err, DRPS_E_PROTO,
                            "frame %llu came where %llu was due: the connection broke and frames "
                            "are lost",
                            (unsigned long long)head->sequence, (unsigned long long)link->sequence);
    link->sequence++;
    return 1;
}

static int may_begin(const struct drps_link *link, const struct drps_link_rules *rules,
                     const struct wire_head *h, struct drps_err *err)
{
    if (h->offset != 0)
        return drps_err_set(err, DRPS_E_PROTO, "piece at %llu of a message that has not begun",
                            (unsigned long long)h->offset);
    if (h->message_bytes > rules->message_bytes[h->part])
        return drps_err_set(err, DRPS_E_PROTO, "message of %llu bytes, at most %llu are taken",
                            (unsigned long long)h->message_bytes,
                            (unsigned long long)rules->message_bytes[h->part]);
    if (link->parts[h->part].begun - rules->taken[h->part] >= rules->queue_messages)
        return drps_err_set(err, DRPS_E_PROTO, "more than %u messages wait", rules->queue_messages);
    return 0;
}

static void label(struct net_message *m, const struct wire_head *h)
{
    m->part = h->part;
    m->pub.from = h->from;
    m->pub.type = h->type;
    m->pub.tag = h->tag;
    m->pub.round = h->round;
}

static int continues(const struct net_message *m, uint64_t have, const struct wire_head *h)
{
    return h->offset == have && h->message_bytes == m->pub.bytes && h->type == m->pub.type &&
           h->tag == m->pub.tag && h->round == m->pub.round;
}

int drps_link_add(struct drps_link *link, const struct drps_link_rules *rules,
                  const struct wire_head *h, const void *payload, size_t bytes,
                  drps_link_adopt adopt, void *frame, struct net_message **message_out,
                  struct drps_err *err)
{
    *message_out = NULL;
    struct net_message *m = link->parts[h->part].message;
    if (!m) {
        const int rc = may_begin(link, rules, h, err);
        if (rc < 0) return rc;
        link->parts[h->part].begun++;
        if (adopt && bytes == h->message_bytes && (m = adopt(frame))) {
            label(m, h);
            *message_out = m;
            return 0;
        }
        m = drps_net_message_new(h->message_bytes);
        if (!m)
            return drps_err_set(err, -ENOMEM, "no memory for a message of %llu bytes",
                                (unsigned long long)h->message_bytes);
        label(m, h);
        link->parts[h->part].message = m;
        link->parts[h->part].have = 0;
    } else if (!continues(m, link->parts[h->part].have, h)) {
        return drps_err_set(err, DRPS_E_PROTO, "piece at %llu does not continue the message before",
                            (unsigned long long)h->offset);
    }
    if (bytes) memcpy(m->room + h->offset, payload, bytes);
    link->parts[h->part].have += bytes;
    if (link->parts[h->part].have == h->message_bytes) {
        link->parts[h->part].message = NULL;
        *message_out = m;
    }
    return 0;
}
