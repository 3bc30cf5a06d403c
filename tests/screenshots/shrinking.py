"""Makes pictures small: 256 colours of a page's own, and the best compression that zlib has.

Pages are flat colours and the edges of letters, so nobody sees what is lost. The browser counts the
colours, since it can read its own picture; the file is written here (PNG, ISO/IEC 15948). Must not:
be used on photographs. Called by `taking`.
"""

import base64
import struct
import zlib

from playwright.sync_api import Page

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_PALETTE_OF_8_BITS = (8, 3, 0, 0, 0)
_BEST = 9

_COUNT = """
async (picture) => {
  const bytes = Uint8Array.from(atob(picture), (each) => each.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes], {type: "image/png"}));
  const {width, height} = bitmap;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const data = context.getImageData(0, 0, width, height).data;
  const counts = new Map();
  const colourAt = (at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];
  for (let at = 0; at < data.length; at += 4) {
    const colour = colourAt(at);
    counts.set(colour, (counts.get(colour) || 0) + 1);
  }
  const ranked = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([colour]) => colour);
  const palette = ranked.slice(0, 256);
  const square = (a, b, shift) => (((a >> shift) & 255) - ((b >> shift) & 255)) ** 2;
  const distance = (a, b) => square(a, b, 16) + square(a, b, 8) + square(a, b, 0);
  const places = new Map(palette.map((colour, index) => [colour, index]));
  for (const colour of ranked.slice(256)) {
    let nearest = 0;
    palette.forEach((each, index) => {
      if (distance(colour, each) < distance(colour, palette[nearest])) nearest = index;
    });
    places.set(colour, nearest);
  }
  const parts = [];
  for (let row = 0; row < height; row += 1) {
    const line = new Uint8Array(width);
    for (let x = 0; x < width; x += 1) line[x] = places.get(colourAt((row * width + x) * 4));
    parts.push(String.fromCharCode(...line));
  }
  return {width, height, palette, places: btoa(parts.join(""))};
}
"""


def shrunk(page: Page, picture: bytes) -> bytes:
    """The same picture as a smaller PNG; `page` is one that may be empty, of the same browser."""
    counted = page.evaluate(_COUNT, base64.b64encode(picture).decode())
    width, height = counted["width"], counted["height"]
    places = base64.b64decode(counted["places"])
    # Each line begins with its filter: none, which suits a palette best.
    lines = (places[start : start + width] for start in range(0, width * height, width))
    body = zlib.compress(b"".join(b"\0" + line for line in lines), _BEST)
    palette = b"".join(colour.to_bytes(3, "big") for colour in counted["palette"])
    head = struct.pack(">2I5B", width, height, *_PALETTE_OF_8_BITS)
    chunks = ((b"IHDR", head), (b"PLTE", palette), (b"IDAT", body), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
