#!/usr/bin/env bash
# Build the sdist, the wheel from the sdist, and try the wheel in an environment that holds nothing else.
#
#   packaging/try_wheel.sh PYTHON "torch==2.13.0 ..."
#
# PYTHON is that of a source install with the package `build`; what the wheel's own environment writes must be what
# that one writes, byte for byte. The second argument is what pip is given for PyTorch (TORCH of the Makefile).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
top=$PWD python=$1 torch=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

rm -rf dist
"$python" -m build --outdir dist . > "$folder/build.log" 2>&1 || { cat "$folder/build.log"; exit 1; }
sdist=$(ls dist/*.tar.gz) wheel=$(ls dist/*.whl)

# What a test or a workflow needs must lie in the sdist; what a run made must not.
tar --list --file "$sdist" > "$folder/files"
for part in src/seqray/zoo_models/ecoli-promoter.safetensors tests/test_packaging.py workflows/scan/workflow/Snakefile \
    packaging/bioconda/meta.yaml docs/formats.md configs/example.yaml data/example/regions.fa CITATION.cff; do
    grep -q "^seqray-[^/]*/$part\$" "$folder/files" || { echo "$sdist lacks $part" >&2; exit 1; }
done
if grep -E '__pycache__|/\.snakemake/|/runs/|/\.venv/' "$folder/files"; then
    echo "$sdist holds what a run made" >&2
    exit 1
fi

"$python" -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --disable-pip-version-check install --quiet --no-compile)
# shellcheck disable=SC2086  # several words: options for pip
"${pip[@]}" $torch
"${pip[@]}" -c constraints.txt "$wheel"

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"  # few sequences: threads would only wait for each other

# Far from the checkout; without a network where the kernel lets us go without one.
offline=()
if unshare --map-root-user --net true 2> /dev/null; then offline=(unshare --map-root-user --net); fi
cp data/example/{promoters,regions}.fa "$folder"
outputs() {
    local folder=$1 python=$2
    mkdir -p "$folder"
    for file in promoters regions; do cp "$folder/../$file.fa" "$folder"; done
    cd "$folder"
    ${offline[@]+"${offline[@]}"} "$python" -m seqray models > models.txt
    ${offline[@]+"${offline[@]}"} "$python" -m seqray models verify > verified.txt
    ${offline[@]+"${offline[@]}"} "$python" -m seqray predict promoters.fa --model ecoli-promoter --quiet --out predictions.tsv
    ${offline[@]+"${offline[@]}"} "$python" -m seqray scan regions.fa --model ecoli-promoter --quiet --out calls.gff3 --out calls.tsv
    ${offline[@]+"${offline[@]}"} "$python" -c "import seqray; print(seqray.__file__)" > where
    cd "$top"
}
source=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
outputs "$folder/wheel" "$folder/venv/bin/python"
outputs "$folder/source" "$source"
grep -q "^$folder/venv/" "$folder/wheel/where" || { echo "the wheel was not what ran" >&2; exit 1; }
rm "$folder"/{wheel,source}/where
diff -r "$folder/wheel" "$folder/source"

printf '%s: %s bytes\n' "$sdist" "$(($(wc -c < "$sdist")))" "$wheel" "$(($(wc -c < "$wheel")))"
network="network at hand"
if ((${#offline[@]})); then network="without a network"; fi
echo "installed alone, $network: models, models verify, predict and scan give the bytes of the source install"
