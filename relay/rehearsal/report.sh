if command -v python3 >/dev/null 2>&1; then python3 - <<'PYTHON'
import hashlib, os
lines = []
for folder, folders, names in os.walk("."):
    folders[:] = sorted(name for name in folders if name != ".git")
    for name in sorted(names):
        path = os.path.relpath(os.path.join(folder, name), ".")
        if path == "REPORT.md" or os.path.islink(path) or not os.path.isfile(path):
            continue
        if len(lines) == 50:
            break
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        shown = path.encode("utf-8", "replace").decode()
        lines.append(f"- `{shown}`: {os.path.getsize(path)} bytes, sha256 {digest.hexdigest()}")
listing = "\n".join(lines) or "No files."
with open("REPORT.md", "w", encoding="utf-8") as report:
    report.write(f"# Rehearsal\n\nFiles in the working directory:\n\n{listing}\n")
print(listing)
PYTHON
else
listing=$(find . -name .git -prune -o -type f ! -path ./REPORT.md -print | sort | head -n 50 |
  while IFS= read -r file; do
    size=$(wc -c < "$file" | tr -d ' ')
    digest=$(sha256sum < "$file" | cut -d ' ' -f 1)
    printf -- '- `%s`: %s bytes, sha256 %s\n' "${file#./}" "$size" "$digest"
  done)
printf '# Rehearsal\n\nFiles in the working directory:\n\n%s\n' "${listing:-No files.}" > REPORT.md
printf '%s\n' "${listing:-No files.}"
fi
