#!/bin/sh
# Makes the folder that is published as a function app: deploy/functions/build.sh FOLDER
set -eu
folder=${1:?name the folder to make}
root=$(cd "$(dirname "$0")/../.." && pwd)
[ ! -e "$folder" ] || { echo "$folder exists; name another folder" >&2; exit 2; }
mkdir -p "$folder"
for package in docflow workflows activities adapters workers; do
  (cd "$root" && find "$package" -type f ! -name '*.pyc') | while read -r file; do
    mkdir -p "$folder/$(dirname "$file")"
    cp "$root/$file" "$folder/$file"
  done
done
cp "$root/deploy/functions/host.json" "$root/deploy/functions/function_app.py" "$folder"
cp "$root/requirements-functions.lock" "$folder/requirements.txt"
