# Shared by quickstart and check: which Debian packages drps needs, and how to get the missing ones.
# shellcheck shell=bash
# shellcheck disable=SC2034  # the lists are used by the scripts that source this file

build_packages=(
    build-essential cmake pkg-config
    librocksdb-dev libleveldb-dev libxxhash-dev libjansson-dev libinih-dev liburing-dev
    zlib1g-dev libzstd-dev liblzma-dev xz-utils libzmq3-dev
    libmicrohttpd-dev libncurses-dev libopenmpi-dev
    libopenblas-pthread-dev # which several threads may call at a time; it is told to use none of its own
)
test_packages=(
    libcmocka-dev lld mandoc zsh
    python3-cffi python3-numpy python3-scipy python3-sklearn python3-pandas python3-matplotlib python3-pytest python3-pip # the Python package
    prometheus tmux # what reads the numbers to watch, and a terminal for drps-top
    chromium chromium-driver # browsers' view of reports
    openmpi-bin slurm-wlm python3-kubernetes python3-yaml # ranks that others start
    debootstrap lintian # a root to install packages in, and who looks at them
    libmetis-dev # the graph partitioner that benchmarks compare with
    python3-onnx liblinear-tools # programs that read what drps writes, and the other way round
)
clang_packages=(clang libclang-rt-14-dev) # the clang build, and the runtime of its thread sanitizer

say() {
    printf '\n== %s\n' "$*"
}

# need_packages PACKAGE...: install what is missing as root; otherwise name it and fail.
need_packages() {
    local package missing=()
    if ! command -v dpkg-query >/dev/null; then
        echo "Not a Debian system; these packages are needed, by whatever name: $*"
        return 0
    fi
    for package in "$@"; do
        if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
            missing+=("$package")
        fi
    done
    if ((${#missing[@]} == 0)); then
        echo "All $# packages are installed."
        return 0
    fi
    if ((EUID != 0)); then
        {
            echo "Missing packages: ${missing[*]}"
            echo "Install them with:"
            echo "    sudo apt-get install --no-install-recommends ${missing[*]}"
        } >&2
        return 1
    fi
    echo "Installing ${missing[*]}"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}
