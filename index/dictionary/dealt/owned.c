/* The keys that this rank owns: of all ranks that have them, with what all have counted. */
#include <errno.h>
#include <stdlib.h>

#include "base/drps_alloc.h"
#include "index/dictionary/dealt/dealt.h"

int drps_owned_open(struct owned *o, const struct dealt *d, struct swap *keys, struct drps_err *err)
{
    *o = (struct owned){.options = d->options,
                        .asked = drps_array_new(d->ranks->count, sizeof(*o->asked))};
    if (!o->asked) return drps_err_set(err, -ENOMEM, "no memory for merging names");
    return drps_key_merge_open(&o->merge, d, keys, DEALT_KEYS, err);
}

void drps_owned_close(struct owned *o)
{
    drps_key_merge_close(&o->merge);
    free(o->asked);
    *o = (struct owned){0};
}

int drps_owned_next(struct owned *o, struct drps_err *err)
{
    const struct dealt_record *r;
    int rc = 0;
    for (uint32_t i = 0; i < o->asked_n && rc == 0; i++)
        rc = drps_key_merge_go_on(&o->merge, o->asked[i], err);
    o->asked_n = 0;
    while (rc == 0 && (r = drps_key_merge_top(&o->merge))) {
        if (o->asked_n && r->k.key != o->at.key) break;
        if (o->asked_n)
            rc = drps_dict_join(o->options, &o->at, &r->k, err);
        else
            o->at = r->k;
        o->asked[o->asked_n++] = drps_key_merge_pop(&o->merge);
    }
    return rc < 0 ? rc : o->asked_n > 0;
}
