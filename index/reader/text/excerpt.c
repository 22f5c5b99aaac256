/* Text that is not known to be printable, for messages. */
#include "index/reader/text/drps_excerpt.h"

#include <string.h>

char *drps_excerpt(const char *p, const char *end, char *buf, size_t cap)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;

    for (const char *q = p; q < end; q++) {
        unsigned char c = (unsigned char)*q;
        if (n + 8 > cap) { /* room for one escape, the dots and the end */
            memcpy(buf + n, "...", 3);
            n += 3;
            break;
        }
        if (c >= 0x20 && c < 0x7f) {
            buf[n++] = (char)c;
        } else {
            memcpy(buf + n, "\\x", 2);
            buf[n + 2] = hex[c >> 4];
            buf[n + 3] = hex[c & 15];
            n += 4;
        }
    }
    buf[n] = '\0';
    return buf;
}
