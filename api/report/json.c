/* Numbers that JSON has no form for get one; a result becomes a text. */
#include "api/report/drps_json.h"

#include <errno.h>
#include <math.h>

json_t *drps_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *drps_json_count(uint64_t value)
{
    return json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value);
}

int drps_json_text(json_t *root, char **text_out, struct drps_err *err)
{
    char *text = root && text_out ? json_dumps(root, DRPS_JSON_FLAGS) : NULL;
    const int failed = !root || (text_out && !text);
    json_decref(root);
    if (text_out) *text_out = text;
    return failed ? drps_err_set(err, -ENOMEM, "no memory for the JSON output") : 0;
}
