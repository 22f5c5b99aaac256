/* Settings of hashing are checked here, put into words, and written to manifests and read again. */
#include "index/hashing/drps_hashing.h"

#include <stdio.h>
#include <string.h>

#include "base/folder/drps_manifest.h"

enum { BINS = 256 };

const char *const *drps_hash_kinds(void)
{
    static const char *const names[] = {
        [DRPS_HASH_SIGNED] = "signed", [DRPS_HASH_OPH] = "oph", NULL};
    return names;
}

void drps_hashing_complete(struct drps_hashing *h)
{
    if (!h->bits || h->kind != DRPS_HASH_OPH || h->bins) return;
    h->bins = h->bits > 8 ? BINS : UINT32_C(1) << (h->bits - 1);
}

int drps_hashing_check(const struct drps_hashing *h, struct drps_err *err)
{
    if (!h->bits && !h->bins && h->kind == DRPS_HASH_SIGNED) return 0;
    if (!h->bits)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "a kind of hashing, or bins of a sample, are given, but not into how "
                            "many bits features are hashed: give 1 to %d bits",
                            DRPS_HASH_BITS_MOST);
    if (h->bits > DRPS_HASH_BITS_MOST)
        return drps_err_set(err, DRPS_E_CONFIG, "features are hashed into 1 to %d bits, not %u",
                            DRPS_HASH_BITS_MOST, h->bits);
    if (h->kind != DRPS_HASH_OPH)
        return h->bins ? drps_err_set(err, DRPS_E_CONFIG,
                                      "bins of a sample are for one-permutation hashing, oph")
                       : 0;
    const uint32_t half = UINT32_C(1) << (h->bits - 1);
    const uint32_t most = half < DRPS_HASH_BINS_MOST ? half : DRPS_HASH_BINS_MOST;
    if (most < DRPS_HASH_BINS_LEAST)
        return drps_err_set(err, DRPS_E_CONFIG,
                            "one-permutation hashing, oph, needs 2 bits or more, not %u", h->bits);
    if (h->bins >= DRPS_HASH_BINS_LEAST && h->bins <= most && !(h->bins & (h->bins - 1))) return 0;
    return drps_err_set(err, DRPS_E_CONFIG,
                        "the bins of a sample are a power of two from %d to %u (with %u bits), not "
                        "%u",
                        DRPS_HASH_BINS_LEAST, most, h->bits, h->bins);
}

int drps_hashing_same(const struct drps_hashing *a, const struct drps_hashing *b)
{
    return a->bits == b->bits && a->kind == b->kind && a->bins == b->bins;
}

const char *drps_hashing_text(const struct drps_hashing *h, char text[DRPS_HASHING_TEXT_BYTES])
{
    const char *kind = drps_hash_kinds()[h->kind];
    if (h->kind == DRPS_HASH_OPH)
        (void)snprintf(text, DRPS_HASHING_TEXT_BYTES, "%s, %u of 2^%u bins a sample", kind, h->bins,
                       h->bits);
    else
        (void)snprintf(text, DRPS_HASHING_TEXT_BYTES, "%s, 2^%u bins", kind, h->bits);
    return text;
}

void drps_hashing_put(void *manifest, const struct drps_hashing *h)
{
    json_t **j = manifest;
    if (!h->bits) return;
    json_t *of = json_object();
    drps_manifest_put(&of, "kind", json_string(drps_hash_kinds()[h->kind]));
    drps_manifest_put(&of, "bits", json_integer(h->bits));
    if (h->bins) drps_manifest_put(&of, "bins", json_integer(h->bins));
    drps_manifest_put(j, "hashing", of);
}

int drps_hashing_get(const void *manifest, const char *path, struct drps_hashing *out,
                     struct drps_err *err)
{
    const json_t *of = json_object_get((const json_t *)manifest, "hashing");
    struct drps_err why = DRPS_ERR_INIT;
    char kind[16];
    size_t k = 0;
    *out = (struct drps_hashing){.bits = 0};
    if (!of) return 0;
    int rc = drps_manifest_get_text(of, "kind", path, kind, sizeof(kind), err);
    if (rc == 0) rc = drps_manifest_get_u32(of, "bits", path, &out->bits, err);
    if (rc == 0 && json_object_get(of, "bins"))
        rc = drps_manifest_get_u32(of, "bins", path, &out->bins, err);
    if (rc < 0) return rc;
    while (drps_hash_kinds()[k] && strcmp(drps_hash_kinds()[k], kind) != 0)
        k++;
    if (!drps_hash_kinds()[k])
        return drps_err_set(err, DRPS_E_CORRUPT,
                            "%s: features are hashed by '%s', which is unknown", path, kind);
    out->kind = (enum drps_hash_kind)k;
    if (out->bits && drps_hashing_check(out, &why) == 0) return 0;
    return drps_err_set(err, DRPS_E_CORRUPT, "%s: hashing: %s", path,
                        out->bits ? why.text : "into 0 bits");
}
