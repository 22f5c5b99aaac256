# shellcheck shell=bash
# Sets whose features have fields, as libffm text. Source it after lib.sh, with `data` set.

criteo() { # PART: entries of the one-hot sample with the fields that fields.tsv gives to ranges of ids
    awk 'NR == FNR { if ($2 ~ /^[0-9]+$/) first[n++] = $2; next }
         { printf "%d", ($1 > 0); f = 0
           for (i = 2; i <= NF; i++) { split($i, e, ":"); while (f + 1 < n && e[1] + 0 >= first[f + 1]) f++; printf " %d:%s", f, $i } print "" }' \
        <(xzcat "$data/criteo-sample/fields.tsv.xz") <(xzcat "$data/criteo-sample/criteo.$1.libsvm.xz")
}

ipinyou() { # PART: the field of an id is what its name has before the colon
    awk 'NR == FNR { f = $1; sub(/:.*/, "", f); if (!(f in number)) number[f] = n++; field[$NF] = number[f]; next }
         { printf "%s", $1; for (i = 2; i <= NF; i++) { split($i, e, ":"); printf " %d:%s", field[e[1]], $i } print "" }' \
        <(xzcat "$data/ipinyou/featindex.fm.txt.xz") <(xzcat "$data/ipinyou/$1.fm.txt.xz")
}

frappe() { # PART: the field of a feature is its place in the line
    xzcat "$data/frappe/frappe.$1.libfm.xz" | awk '{ printf "%s", $1; for (i = 2; i <= NF; i++) printf " %d:%s", i - 2, $i; print "" }'
}
