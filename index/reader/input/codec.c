/* Compression is recognised by magic bytes, never by file name. */
#include "index/reader/input/codec.h"

#include <string.h>

static const struct drps_codec codec_bzip2 = {
    .name = "bzip2", .missing = "bzip2 input is not supported: pipe it (bzip2 -dc FILE | ... -)"};
static const struct drps_codec codec_lz4 = {
    .name = "lz4", .missing = "lz4 input is not supported: pipe it (lz4 -dc FILE | ... -)"};
static const struct drps_codec codec_zip = {
    .name = "zip", .missing = "zip archives are not supported: unpack it first"};

static const struct {
    const struct drps_codec *codec;
    size_t n;
    uint8_t magic[DRPS_CODEC_MAGIC_BYTES];
    uint8_t mask0; /* bits of the first byte that count */
} magics[] = {
    {&drps_codec_gzip, 2, {0x1f, 0x8b}, 0xff},
    {&drps_codec_zstd, 4, {0x28, 0xb5, 0x2f, 0xfd}, 0xff},
    {&drps_codec_zstd, 4, {0x50, 0x2a, 0x4d, 0x18}, 0xf0}, /* a skippable frame in front (pzstd) */
    {&drps_codec_xz, 6, {0xfd, '7', 'z', 'X', 'Z', 0x00}, 0xff},
    {&codec_bzip2, 3, {'B', 'Z', 'h'}, 0xff},
    {&codec_lz4, 4, {0x04, 0x22, 0x4d, 0x18}, 0xff},
    {&codec_zip, 4, {'P', 'K', 0x03, 0x04}, 0xff},
};

const struct drps_codec *drps_codec_find(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
        if (n < magics[i].n || (head[0] & magics[i].mask0) != magics[i].magic[0]) continue;
        if (memcmp(head + 1, magics[i].magic + 1, magics[i].n - 1) == 0) return magics[i].codec;
    }
    return NULL;
}
