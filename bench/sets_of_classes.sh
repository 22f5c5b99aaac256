# shellcheck shell=bash
# shellcheck disable=SC2154 # what the script that sources this sets
# Sets of several classes, a training and a test file each, in the current folder: news, tfidf and mnist. Source it after lib.sh, with `data` set.

# 20 News Groups: word counts, and their tf-idf (1 + log of the count, times 1 + log((1 + n) / (1 + documents with the word)), lengths 1).
tfidf() { # TRAINING-FILE FILE
    awk 'FNR == 1 {file++}
        file == 1 {n++; for (i = 2; i <= NF; i++) {split($i, a, ":"); df[a[1]]++}}
        file == 2 {
            sum = 0
            for (i = 2; i <= NF; i++) {
                split($i, a, ":"); id[i] = a[1]; x[i] = (1 + log(a[2])) * (1 + log((1 + n) / (1 + df[a[1]])))
                sum += x[i] * x[i]
            }
            printf "%s", $1
            for (i = 2; i <= NF; i++) printf " %s:%.5g", id[i], x[i] / sqrt(sum)
            print ""}' "$1" "$2"
}
xz -dc "$data/20news/20news.train.libsvm.xz" >news.train
xz -dc "$data/20news/20news.test.libsvm.xz" >news.test
tfidf news.train news.train >tfidf.train
tfidf news.train news.test >tfidf.test
. "$(dirname "${BASH_SOURCE[0]}")/digits.sh"
digits_text train >mnist.train
digits_text t10k >mnist.test
