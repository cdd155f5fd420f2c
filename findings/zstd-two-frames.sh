#!/usr/bin/env bash
# Two zstd frames one after the other are one valid file (RFC 8878, section 3). Codex compresses old rollouts with zstd.
# Guess: every library returns the content of both frames, or an error.
# Seen: zstandard 0.25.0 returns the first frame alone and no error from decompress() and decompressobj(), and both frames from
# open(); backports.zstd 1.8.0 (the standard library of Python 3.14) and fzstd 0.1.1 return both; zstd-codec 0.1.5 returns null from
# Simple and both from Streaming.
set -euo pipefail
directory=$(mktemp -d); trap 'rm -rf "$directory"' EXIT; cd "$directory"
python3 -m venv env && env/bin/pip install --quiet --disable-pip-version-check zstandard==0.25.0 backports.zstd==1.8.0
npm install --silent --no-audit --no-fund fzstd@0.1.1 zstd-codec@0.1.5
cat >seen.py <<'PY'
import io
import zstandard
from backports import zstd

frames = b"".join(zstandard.ZstdCompressor().compress(text) for text in (b"first ", b"second"))
open("frames.zst", "wb").write(frames)
print("zstandard decompress", zstandard.ZstdDecompressor().decompress(frames).decode().strip())
print("zstandard decompressobj", zstandard.ZstdDecompressor().decompressobj().decompress(frames).decode().strip())
print("zstandard open", zstandard.open(io.BytesIO(frames)).read().decode())
print("backports.zstd", zstd.decompress(frames).decode())
PY
cat >seen.cjs <<'JS'
const frames = require("fs").readFileSync("frames.zst");
console.log("fzstd", Buffer.from(require("fzstd").decompress(frames)).toString());
require("zstd-codec").ZstdCodec.run((zstd) => {
  console.log("zstd-codec Simple", new zstd.Simple().decompress(frames));
  console.log("zstd-codec Streaming", Buffer.from(new zstd.Streaming().decompress(frames)).toString());
});
JS
{ env/bin/python seen.py; node seen.cjs; } | tee seen
diff seen - <<'END'
zstandard decompress first
zstandard decompressobj first
zstandard open first second
backports.zstd first second
fzstd first second
zstd-codec Simple null
zstd-codec Streaming first second
END
