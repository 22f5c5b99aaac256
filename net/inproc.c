/*
 * The transport of ranks in one process: a message is put into the receiver's inbox. Its payload is
 * copied once, or read where it lies, if the sender has said how it learns that it was. The ranks
 * share one lock; each waits on a condition of its own.
 */
#include <errno.h>
#include <stdlib.h>

#include "net/drps_transport.h"

struct hub {
    pthread_mutex_t lock;
    uint32_t count, open;
    struct inproc_net *nets[]; /* [count]; NULL: closed */
};

struct inproc_net {
    struct drps_net net; /* first: callers hold a pointer to it */
    struct hub *hub;     /* shared; the last one to close frees it */
};

static struct hub *hub_of(struct drps_net *net)
{
    return ((struct inproc_net *)net)->hub;
}

/* The receiver exists: the lock has been held since it was found not to have left. */
static void carry(struct drps_net *net, struct net_out *out)
{
    struct drps_net *to = &hub_of(net)->nets[out->head.to]->net;
    drps_net_deliver(to, drps_net_out_deliver(out));
}

static void took(struct drps_net *net, uint32_t from, unsigned part)
{
    struct inproc_net *sender = hub_of(net)->nets[from];
    if (!sender) return;
    sender->net.peers[net->o.rank].credit[part]++;
    pthread_cond_broadcast(&sender->net.changed);
}

static void hub_free(struct hub *hub)
{
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

static void leave(struct drps_net *net, uint32_t linger_ms, const struct drps_err *why)
{
    (void)linger_ms; /* messages are in their inboxes already */
    struct hub *hub = hub_of(net);
    pthread_mutex_lock(&hub->lock);
    hub->nets[net->o.rank] = NULL;
    for (uint32_t r = 0; r < hub->count; r++)
        if (hub->nets[r])
            drps_net_left(&hub->nets[r]->net, net->o.rank, why ? why->text : "",
                          why && !drps_err_may_pass(why->code));
    const int last = --hub->open == 0;
    pthread_mutex_unlock(&hub->lock);
    drps_net_destroy(net);
    free(net);
    if (last) hub_free(hub);
}

static const struct net_ops inproc_ops = {NET_LENDS, carry, NULL, took, leave};

static int open_rank(struct hub *hub, struct drps_net_options *o, uint32_t rank,
                     struct drps_err *err)
{
    struct inproc_net *in = calloc(1, sizeof(*in));
    if (!in) return drps_err_set(err, -ENOMEM, "no memory for rank %u", rank);
    o->rank = rank;
    in->hub = hub;
    const int rc = drps_net_init(&in->net, &inproc_ops, o, &hub->lock, err);
    if (rc < 0) {
        free(in);
        return rc;
    }
    hub->nets[rank] = in;
    hub->open++;
    return 0;
}

int drps_net_open_inproc(const struct drps_net_options *options, struct drps_net **nets_out,
                         struct drps_err *err)
{
    struct drps_net_options o = *options;
    o.rank = 0;
    int rc = drps_net_options_check(&o, err);
    if (rc < 0) return rc;
    struct hub *hub = calloc(1, sizeof(*hub) + o.count * sizeof(struct inproc_net *));
    if (!hub) return drps_err_set(err, -ENOMEM, "no memory for %u ranks", o.count);
    pthread_mutex_init(&hub->lock, NULL);
    hub->count = o.count;
    for (uint32_t r = 0; r < o.count && rc == 0; r++)
        rc = open_rank(hub, &o, r, err);
    for (uint32_t r = 0; r < o.count && rc == 0; r++)
        nets_out[r] = &hub->nets[r]->net;
    if (rc < 0 && hub->open == 0)
        hub_free(hub);
    else if (rc < 0)
        for (uint32_t r = 0, n = hub->open; r < n; r++) /* the last one frees the hub */
            drps_net_close(&hub->nets[r]->net, 0, NULL);
    return rc;
}
