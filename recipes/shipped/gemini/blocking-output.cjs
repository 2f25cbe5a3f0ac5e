// gemini exits without waiting for its output, and what a full pipe has not taken is lost with it:
// the record that says how the run went. With writes that block there is nothing to wait for.
for (const stream of [process.stdout, process.stderr]) {
  stream._handle?.setBlocking?.(true);
}
